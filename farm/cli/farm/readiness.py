"""Waiting until virtual phones can be given work, and saying what is waited for."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from farm.cli.shell.formatting import join_or_dash
from farm.core.base.ids import DeviceId
from farm.core.devices.device import Admin, Health, Presence
from farm.core.errors import DeviceTimeout
from farm.wire.documents.devices import DeviceView

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient

READY_TIMEOUT_S = 180.0
POLL_S = 0.5


def wait_for_devices(
    farm: "FarmClient", count: int, console: Console, *, patience_s: float = READY_TIMEOUT_S
) -> Sequence[DeviceId]:
    """The virtual phones that can be given work, once there are `count` of them.

    Raises:
        DeviceTimeout: there were not enough of them in time; the message says what each waits for.
    """
    deadline_s = time.monotonic() + patience_s
    with console.status("waiting for the phones") as status:
        while True:
            phones = [device for device in farm.devices() if device.virtual]
            ready = [phone.device_id for phone in phones if is_ready(phone)]
            if len(ready) >= count:
                return ready
            if time.monotonic() > deadline_s:
                raise _timeout_error(phones, count, patience_s)
            status.update(f"waiting for the phones: {waiting_text(phones)}")
            time.sleep(POLL_S)


def is_ready(phone: DeviceView) -> bool:
    """Whether it may be given benchmarks, now or once it is free, by what an agent of now says."""
    is_well = phone.presence is Presence.ONLINE and phone.health is Health.GOOD
    return is_well and phone.is_reachable and phone.admin is Admin.ACTIVE


def waiting_text(phones: Sequence[DeviceView]) -> str:
    """What every phone that is not ready waits for."""
    waiting = [f"{phone.device_id}: {_reason(phone)}" for phone in phones if not is_ready(phone)]
    return join_or_dash(waiting) if waiting else "none has been seen yet" if not phones else "all are ready"


def _reason(phone: DeviceView) -> str:
    return phone.waiting_for[0] if phone.waiting_for else f"{phone.presence}, {phone.health}"


def _timeout_error(phones: Sequence[DeviceView], count: int, patience_s: float) -> DeviceTimeout:
    ready = sum(1 for phone in phones if is_ready(phone))
    return DeviceTimeout(
        f"{ready} of {count} virtual phones were ready after {patience_s:.0f} s ({waiting_text(phones)})",
        hint="a farm that runs already needs them too: stop it, then `farm up --virtual 2`",
    )
