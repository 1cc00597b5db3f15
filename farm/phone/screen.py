"""Whether the screen is on, by what `dumpsys power` prints (AOSP: PowerManagerService.dumpInternal)."""

import re

from farm.phone.text import lines

_DISPLAY = re.compile(r"\s*Display Power:\s*state=(\w+).*", re.ASCII)
_WAKEFULNESS = re.compile(r"\s*(?:mWakefulness|Wakefulness)\s*[=:]\s*(\w+).*", re.ASCII)
#: android.view.Display and PowerManagerInternal. Dozing may show a clock, and slows the phone as sleep does.
_ON_BY_DISPLAY = {"ON": True, "VR": True, "OFF": False, "DOZE": False, "DOZE_SUSPEND": False}
_ON_BY_WAKEFULNESS = {"Awake": True, "Asleep": False, "Dozing": False, "Dreaming": True}


def screen_on(text: str) -> bool | None:
    """By the display's own state; by the phone's wakefulness where that is not told. None: neither is."""
    said = _first(_DISPLAY, text)
    if said in _ON_BY_DISPLAY:
        return _ON_BY_DISPLAY[said]
    return _ON_BY_WAKEFULNESS.get(_first(_WAKEFULNESS, text) or "")


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = (pattern.fullmatch(line) for line in lines(text))
    return next((match[1] for match in found if match), None)
