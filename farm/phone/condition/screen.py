"""Screen and wakefulness in `dumpsys power` (AOSP: PowerManagerService.dumpInternal)."""

import re

from farm.core.devices.screen_state import ScreenState
from farm.phone.adb.decoding import first_match, lines

_DISPLAY = re.compile(r"\s*Display Power:\s*state=(\w+).*", re.ASCII)
#: Samsung prints `getWakefulnessLocked()=Awake`, some devices with Android's number for it.
_WAKEFULNESS = re.compile(
    r"\s*(?:mWakefulness|Wakefulness|getWakefulnessLocked\(\))\s*[=:]\s*(\w+).*", re.ASCII
)
#: A bit for each kind of charger; 0: it never stays awake.
_STAY_ON = re.compile(r"\s*mStayOnWhilePluggedInSetting\s*=\s*(\d{1,5})\s*", re.ASCII)
#: Saved on the device before any change: the setting, null where it never was set; the screen.
_FOUND = re.compile(r"\s*(\d{1,5}|null)(?: (on|off|-))?\s*", re.ASCII)
#: android.view.Display and PowerManagerInternal. Dozing may show a clock, and slows the device as sleep does.
_ON_BY_DISPLAY = {"ON": True, "VR": True, "OFF": False, "DOZE": False, "DOZE_SUSPEND": False}
_ON_BY_WAKEFULNESS = {"Awake": True, "Asleep": False, "Dozing": False, "Dreaming": True} | {
    "0": False,
    "1": True,
    "2": True,
    "3": False,
}


def screen_on(text: str) -> bool | None:
    """Return the display's own state, or else the device's wakefulness; None where neither is reported."""
    value = _first(_DISPLAY, text)
    if value in _ON_BY_DISPLAY:
        return _ON_BY_DISPLAY[value]
    return _ON_BY_WAKEFULNESS.get(_first(_WAKEFULNESS, text) or "")


def stay_awake(text: str) -> bool | None:
    """Return whether the device is set to stay awake on a charger; None where it is not reported."""
    value = _first(_STAY_ON, text)
    return None if value is None else int(value) != 0


def screen_state(text: str) -> ScreenState:
    """Return the state that was saved on the device before it was kept awake; unknown for any other text."""
    noted = first_match(_FOUND, lines(text))
    if noted is None:
        return ScreenState()
    return ScreenState(
        stay_awake=noted[1] not in ("null", "0"), screen_on={"on": True, "off": False}.get(noted[2] or "-")
    )


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    match = first_match(pattern, lines(text))
    return None if match is None else match[1]
