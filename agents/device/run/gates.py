"""Gates and screen state around a run: wait until the device is fit, keep it awake, restore it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from shlex import quote

from agents.adb.client import AdbDevice
from agents.device.conditions import SCREEN_LINES, read_condition
from agents.device.paths import stay_on_record, work_folder
from farm.clock import Clock
from farm.core.devices.condition import Condition, Gates, closed_gates
from farm.core.devices.controls import Controls, Screen
from farm.core.devices.screen_state import ScreenState
from farm.phone.condition.screen import screen_state

_DEADLINE_S = 10.0
#: A bit mask of chargers.
_STAY_ON = "global stay_on_while_plugged_in"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateWait:
    """The result of waiting for the gates."""

    #: The last condition before the run.
    condition: Condition
    waited_s: float
    #: Reason to defer the run, as text; empty when the device is fit.
    shut: tuple[str, ...]


WaitCallback = Callable[[str | None], None]
"""Called with what a run waits for, as text, and with None once it waits no more."""


def ignore_wait(_waiting_for: str | None) -> None:
    """Ignore what a run waits for."""


async def wait_for_gates(
    device: AdbDevice,
    gates: Gates,
    *,
    clock: Clock,
    interval_s: float,
    tell: WaitCallback = ignore_wait,
    controls: Controls | None = None,
) -> GateWait:
    """Read the condition every `interval_s` until the gates are open, or `gates.wait_s` have passed.

    With `controls`, the device must match them, too.
    """
    began_s = clock.monotonic()
    while True:
        condition = await read_condition(device, clock.now())
        shut, waited_s = closed_gates(condition, gates, controls), clock.monotonic() - began_s
        if not shut or waited_s >= gates.wait_s:
            tell(None)
            return GateWait(condition=condition, waited_s=waited_s, shut=tuple(shut))
        tell("; ".join(shut))
        await asyncio.sleep(min(interval_s, gates.wait_s - waited_s))


_WAKE, _SLEEP = "input keyevent KEYCODE_WAKEUP", "input keyevent KEYCODE_SLEEP"
_KEY_BY_SCREEN = {Screen.ON: _WAKE, Screen.OFF: _SLEEP, Screen.LEAVE: "true"}
#: Sets `screen` to on, off or -, as farm.phone.condition.screen reads it. A display's own state has priority.
_READ_SCREEN = (
    f"case $(dumpsys power | grep -E '{SCREEN_LINES}') in *state=ON*|*state=VR*) screen=on ;; "
    "*state=OFF*|*state=DOZE*) screen=off ;; *akefulness*=Awake*|*akefulness*=Dreaming*) screen=on ;; "
    "*akefulness*=[12]*) screen=on ;; *akefulness*=*) screen=off ;; *) screen=- ;; esac"
)


async def keep_device_awake(device: AdbDevice, controls: Controls) -> ScreenState:
    """Keep the device awake while plugged in, and set its screen, where the device can.

    The previous state is recorded on the device first, once, so that any clean-up restores it: ours, that of
    a later process, or another host's. A state that cannot be recorded is not changed.
    """
    if not controls.stay_awake and controls.screen is Screen.LEAVE:
        return ScreenState()
    record = quote(stay_on_record(device.work_root))
    note = (
        f"mkdir -p {quote(work_folder(device.work_root))}; [ -s {record} ] || {{ {_READ_SCREEN}; "
        f'echo "$(settings get {_STAY_ON}) $screen" >{record}.new && mv -f {record}.new {record}; }}'
    )
    stay = "svc power stayon true; " if controls.stay_awake else ""
    result = await device.shell(
        f"{{ {{ {note}; }} && {{ {stay}{_KEY_BY_SCREEN[controls.screen]}; }}; }} >/dev/null 2>&1; "
        f'{{ read -r found <{record} && echo "$found"; }} 2>/dev/null',
        deadline_s=_DEADLINE_S,
    )
    return screen_state(result.text)


async def restore_screen_state(device: AdbDevice) -> None:
    """Restore the state that `keep_device_awake` replaced; does nothing when there is no record."""
    record = quote(stay_on_record(device.work_root))
    # `settings get` prints null for an unset value; earlier releases recorded no screen.
    put_back = (
        f"back=0; case $before in null) settings delete {_STAY_ON} ;; "
        f"'' | *[!0-9]*) ;; *) settings put {_STAY_ON} $before ;; esac || back=1; "
        f"case $screen in on) {_WAKE} ;; off) {_SLEEP} ;; esac; [ $back = 0 ]"
    )
    command = f"[ ! -s {record} ] || {{ read -r before screen <{record}; {put_back}; }} && rm -f {record}"
    await device.shell(f"{{ {command}; }} >/dev/null 2>&1", deadline_s=_DEADLINE_S)
