"""Before a run: wait until the phone is fit for measuring, and keep it awake."""

import asyncio
from dataclasses import dataclass

from agents.adb.client import AdbDevice
from agents.device.conditions import read_condition
from farm.clock import Clock
from farm.core.condition import Condition, Gates, closed_gates

_DEADLINE_S = 10.0
_STAY_ON = "global stay_on_while_plugged_in"
_READ_AWAKE = f"settings get {_STAY_ON}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """How the wait for the gates ended."""

    #: The last look, which the run is started on.
    condition: Condition
    waited_s: float
    #: Why the run must be put off, for a person; empty when the phone is fit.
    shut: tuple[str, ...]


async def wait_for_gates(
    device: AdbDevice, work_root: str, gates: Gates, *, clock: Clock, interval_s: float
) -> Readiness:
    """Look at the phone every `interval_s` until its gates are open, or `gates.wait_s` are over.

    Raises:
        DeviceError: the phone went away, or was too slow.
    """
    began_s = clock.monotonic()
    while True:
        condition = await read_condition(device, work_root, clock.now())
        shut, waited_s = closed_gates(condition, gates), clock.monotonic() - began_s
        if not shut or waited_s >= gates.wait_s:
            return Readiness(condition=condition, waited_s=waited_s, shut=tuple(shut))
        await asyncio.sleep(min(interval_s, gates.wait_s - waited_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class StayAwake:
    """Android's stay_on_while_plugged_in, a bit mask of chargers, as read; None where there is none."""

    before: str | None
    after: str | None


async def keep_awake(device: AdbDevice) -> StayAwake:
    """Turn the screen on and have it stay so while plugged in, where the phone can; read back what it did.

    Raises:
        DeviceError: the phone went away, or was too slow.
    """
    command = (
        f"({_READ_AWAKE}; svc power stayon true; input keyevent KEYCODE_WAKEUP; {_READ_AWAKE}) 2>/dev/null"
    )
    result = await device.shell(command, deadline_s=_DEADLINE_S)
    match result.stdout.decode(errors="replace").split():
        case [before, *_, after]:
            return StayAwake(before=before, after=after)
        case _:
            return StayAwake(before=None, after=None)


async def restore_awake(device: AdbDevice, awake: StayAwake) -> None:
    """Put back what `keep_awake` found.

    Raises:
        DeviceError: the phone went away, or was too slow.
    """
    if awake.before is None:
        return
    # `settings get` says null of what was never set.
    change = f"put {_STAY_ON} {awake.before}" if awake.before.isdigit() else f"delete {_STAY_ON}"
    await device.shell(f"settings {change}", deadline_s=_DEADLINE_S)
