"""Temperatures at which a device begins to throttle: the thresholds in `dumpsys thermalservice`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from farm.core.devices.condition import ThermalStatus
from farm.phone.adb.decoding import lines

#: AIDL and HAL 2.0 as Java prints them, and as the HAL's own struct does, with a word for the type.
_FORMS = (
    re.compile(
        r"\s*TemperatureThreshold\{mType=(-?\d{1,4}), mName=(.+), mHotThrottlingThresholds=\[([^\]]*)\].*",
        re.ASCII,
    ),
    re.compile(r"\s*\{\.type = (\w+), \.name = (.+), \.hotThrottlingThresholds = \[([^\]]*)\].*", re.ASCII),
)
_VALUE = re.compile(r"\s*(-?\d{1,9}(?:\.\d{1,12})?)\s*", re.ASCII)
_SKIN = ("3", "SKIN")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThermalLimits:
    """The thresholds of one sensor."""

    name: str
    is_skin: bool
    #: The temperature from which on each status holds; unknown ones are missing.
    from_c: Mapping[ThermalStatus, float]


def thermal_limits(text: str) -> list[ThermalLimits]:
    """Return the sensors that have any threshold for heat, in order; a line that is cut off is left out."""
    return [limits for line in lines(text) if (limits := _limits(line)) is not None and limits.from_c]


def skin_limit_c(text: str) -> float | None:
    """Return the lowest skin temperature at which the device begins to throttle; None where it names none.

    A threshold of NONE does not count: some devices list one, several degrees below that of LIGHT.
    """
    skin_limits_c = (
        limit_c
        for limits in thermal_limits(text)
        for status, limit_c in limits.from_c.items()
        if limits.is_skin and status is not ThermalStatus.NONE
    )
    return min(skin_limits_c, default=None)


def _limits(line: str) -> ThermalLimits | None:
    for form in _FORMS:
        if match := form.fullmatch(line):
            kind, name, listed = match.groups()
            return ThermalLimits(name=name, is_skin=kind in _SKIN, from_c=_by_status(listed))
    return None


def _by_status(listed: str) -> dict[ThermalStatus, float]:
    """Return the thresholds by status, from NONE on; NaN stands for none, and 0.0 on some devices."""
    words = listed.split(",")
    # More values than statuses: the locale's decimal sign is a comma, too.
    words = words if len(words) <= len(ThermalStatus) else []
    matches = zip(ThermalStatus, map(_VALUE.fullmatch, words), strict=False)
    return {status: float(match[1]) for status, match in matches if match and 0.0 < float(match[1]) < 200.0}
