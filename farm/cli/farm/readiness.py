"""Wait until virtual devices can be given work, and show what they wait for."""

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
    farm: "FarmClient", count: int, console: Console, *, timeout_s: float = READY_TIMEOUT_S
) -> Sequence[DeviceId]:
    """Wait until `count` virtual devices can be given work, and return their ids.

    Raises:
        DeviceTimeout: too few were ready in time; the message contains what each waits for.
    """
    deadline_s = time.monotonic() + timeout_s
    with console.status("waiting for the devices") as status:
        while True:
            devices = [device for device in farm.devices() if device.virtual]
            ready = [device.device_id for device in devices if is_ready(device)]
            if len(ready) >= count:
                return ready
            if time.monotonic() > deadline_s:
                raise _timeout_error(devices, count, timeout_s)
            status.update(f"waiting for the devices: {waiting_text(devices)}")
            time.sleep(POLL_S)


def is_ready(device: DeviceView) -> bool:
    """Return whether the device may get jobs, now or once it is free."""
    is_healthy = device.presence is Presence.ONLINE and device.health is Health.GOOD
    return is_healthy and device.is_reachable and device.admin is Admin.ACTIVE


def waiting_text(devices: Sequence[DeviceView]) -> str:
    """Return what each device that is not ready waits for."""
    waiting = [f"{device.device_id}: {_reason(device)}" for device in devices if not is_ready(device)]
    return join_or_dash(waiting) if waiting else "all are ready" if devices else "none has connected yet"


def _reason(device: DeviceView) -> str:
    return device.waiting_for[0] if device.waiting_for else f"{device.presence}, {device.health}"


def _timeout_error(devices: Sequence[DeviceView], count: int, timeout_s: float) -> DeviceTimeout:
    ready = sum(1 for device in devices if is_ready(device))
    return DeviceTimeout(
        f"{ready} of {count} virtual devices were ready after {timeout_s:.0f} s ({waiting_text(devices)})",
        hint="a farm that is already running needs virtual devices: stop it, then run `farm up --virtual 2`",
    )
