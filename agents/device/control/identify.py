"""Showing a device's label on its screen, so that an operator finds it in a rack."""

import asyncio
from shlex import quote

from agents.adb.client import AdbDevice
from farm.core.errors import DeviceProtocol

#: Time the label is shown.
SHOW_S = 15.0
_DEADLINE_S = 30.0
#: One notification for all labels: a new one replaces the last.
_TAG = "benchfarm"
_BLINKS = 4

_SHOWN, _BLINKED = "shown", "blinked"


async def identify(device: AdbDevice, label: str, *, show_s: float = SHOW_S) -> str:
    """Wake the screen and show the label for a while, or blink where notifications cannot be posted.

    The notification stays in the device's shade; the shade is closed again. Returns a description of what was
    done.

    Raises:
        DeviceError: the device went away, was too slow, or could do neither.
    """
    result = await device.shell(_command(label), deadline_s=_DEADLINE_S)
    match result.stdout.split():
        case [b"shown"]:
            await asyncio.sleep(show_s)
            await device.shell("cmd statusbar collapse >/dev/null 2>&1", deadline_s=_DEADLINE_S)
            return f"woke the screen and showed {label!r} in its notifications for {show_s:g} s"
        case [b"blinked"]:
            return (
                f"turned the screen off and on {_BLINKS} times: it supports no notifications "
                "(Android 10 and later do)"
            )
        case _:
            raise DeviceProtocol(f"{device.serial} can neither show its label nor blink: {result.message}")


def _command(label: str) -> str:
    # `post` exists since Android 10; its text is one word of the command line.
    post = f"cmd notification post -S bigtext -t {_TAG} {_TAG} {quote(label)}"
    blink = "input keyevent KEYCODE_SLEEP && sleep 0.7 && input keyevent KEYCODE_WAKEUP && sleep 0.7"
    return (
        "input keyevent KEYCODE_WAKEUP >/dev/null; "
        "if cmd notification help 2>/dev/null | grep -q post && "
        f"{post} >/dev/null 2>&1 && cmd statusbar expand-notifications >/dev/null 2>&1; "
        f"then echo {_SHOWN}; "
        f"else {' && '.join([blink] * _BLINKS)} && echo {_BLINKED}; fi"
    )
