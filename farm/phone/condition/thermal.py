"""Output of `dumpsys thermalservice` (AOSP: ThermalManagerService.dumpInternal), HAL 1.0 to AIDL."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from farm.core.devices.condition import ThermalStatus
from farm.phone.adb.decoding import first_match, lines

_STATUS = re.compile(r"\s*Thermal Status:\s*(\d)", re.ASCII)
_TEMPERATURE = re.compile(
    r"\s*Temperature\{mValue=(-?\d{1,9}(?:\.\d{1,12})?(?:E-?\d{1,2})?), mType=(-?\d{1,4}), "
    r"mName=(.+), mStatus=-?\d{1,4}\}",
    re.ASCII,
)
_COOLING = re.compile(r"\s*CoolingDevice\{mValue=(-?\d{1,9}), mType=-?\d{1,4}, mName=(.+)\}", re.ASCII)
_HAL = re.compile(r"\s*ThermalHAL (AIDL \d{1,3}|\d{1,3}\.\d{1,3})\s+connected: yes\s*", re.ASCII)
_NOT_READY = "HAL Ready: false"
#: `cmd thermalservice override-status` was run, and not reset.
_OVERRIDDEN = "IsStatusOverride: true"
#: Not an error message in between: those have a colon within.
_HEADING = re.compile(r"[A-Z][^:]*:", re.ASCII)
#: Headings of current values, and of older ones.
_CURRENT, _CACHED = "Current temperatures", "Cached temperatures"
#: android.os.Temperature: TYPE_SKIN. Volts, amperes and percent are types 6 (BCL_VOLTAGE) to 8.
_SKIN, _NO_TEMPERATURES = 3, range(6, 9)
#: Where a vendor numbers types in its own way, as old Samsungs do, names are more reliable than numbers.
_NAMED_SKIN = re.compile(r"(?<![a-z0-9])skin(?![a-z])", re.ASCII | re.IGNORECASE)
_NAMED_OTHERWISE = re.compile(r"(ap|cp|pa|cpu|gpu|npu|usb|(sub)?bat(tery)?)\d*", re.ASCII | re.IGNORECASE)
#: Devices before HAL 2.0 count from 1, and name sensors after Android's own types.
_KIND_BY_NAME = {
    "TYPE_CPU": 0,
    "TYPE_GPU": 1,
    "TYPE_BATTERY": 2,
    "TYPE_SKIN": _SKIN,
    "TYPE_USB_PORT": 4,
    "TYPE_POWER_AMPLIFIER": 5,
}
#: AIDL and HAL 2.0 as Java prints them, and as the HAL's own struct does, with a word for the type.
_FORMS = (
    re.compile(
        r"\s*TemperatureThreshold\{mType=(-?\d{1,4}), mName=(.+), mHotThrottlingThresholds=\[([^\]]*)\].*",
        re.ASCII,
    ),
    re.compile(r"\s*\{\.type = (\w+), \.name = (.+), \.hotThrottlingThresholds = \[([^\]]*)\].*", re.ASCII),
)
_VALUE = re.compile(r"\s*(-?\d{1,9}(?:\.\d{1,12})?)\s*", re.ASCII)
_SKIN_TYPES = ("3", "SKIN")


@dataclass(frozen=True, slots=True, kw_only=True)
class Thermal:
    """Thermal status and temperatures; None where the device does not report them."""

    status: ThermalStatus | None = None
    #: Current, by sensor name; the service's cache where the device reports no current ones.
    temperatures_c: dict[str, float] = field(default_factory=dict)
    #: The hottest skin sensor of those.
    skin_c: float | None = None
    #: How far each cooling device limits its hardware now: 0 is not at all, the scale is its driver's.
    cooling: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Sensor:
    name: str
    kind: int
    value_c: float


def thermal(text: str) -> Thermal:
    """Parse status and temperatures; cached ones may be 20 to 35 degrees off, so they are the last resort."""
    sensors = list(_sensors(text, _CURRENT)) or list(_sensors(text, _CACHED))
    return Thermal(
        status=thermal_status(text),
        temperatures_c={sensor.name: sensor.value_c for sensor in sensors},
        skin_c=max((sensor.value_c for sensor in _skin(sensors)), default=None),
        cooling={match[2]: int(match[1]) for match in map(_COOLING.fullmatch, lines(text)) if match},
    )


def thermal_hal_version(text: str) -> str | None:
    """Return the version of the thermal HAL that the service is connected to: `2.0`, `AIDL 3`."""
    match = first_match(_HAL, lines(text))
    return None if match is None else match[1]


def thermal_status(text: str) -> ThermalStatus | None:
    """Return the device's thermal status; None for one that Android does not define.

    NONE is also printed before any HAL reported to the service, and then it means nothing; nor does any
    status that overrides the device's own.
    """
    if any(line.strip() == _OVERRIDDEN for line in lines(text)):
        return None
    match = first_match(_STATUS, lines(text))
    number = None if match is None else int(match[1])
    if number == ThermalStatus.NONE and any(line.strip() == _NOT_READY for line in lines(text)):
        return None
    return ThermalStatus(number) if number is not None and number in set(ThermalStatus) else None


def _sensors(text: str, heading: str) -> Iterator[_Sensor]:
    """Return the plausible readings under the first such heading."""
    inside = was_inside = False
    for line in lines(text):
        if match := _TEMPERATURE.fullmatch(line):
            kind = _KIND_BY_NAME.get(match[3], int(match[2]))
            sensor = _Sensor(match[3], kind, _celsius(float(match[1]), kind))
            if inside and _is_reading(sensor):
                yield sensor
        elif _HEADING.fullmatch(line.strip()):
            was_inside = was_inside or inside
            inside = line.strip().startswith(heading) and not was_inside


def _celsius(value: float, kind: int) -> float:
    """Return degrees; some vendors use thousandths, recognisable for sensors of a known type."""
    in_thousandths = kind >= 0 and kind not in _NO_TEMPERATURES and 10_000.0 <= value < 200_000.0
    return value / 1000 if in_thousandths else value


def _skin(sensors: Sequence[_Sensor]) -> list[_Sensor]:
    numbered = [
        sensor for sensor in sensors if sensor.kind == _SKIN and not _NAMED_OTHERWISE.fullmatch(sensor.name)
    ]
    return numbered or [sensor for sensor in sensors if _NAMED_SKIN.search(sensor.name)]


def _is_reading(sensor: _Sensor) -> bool:
    """Return whether a sensor is present and working: 0.0 and -99.9 stand for one that is not."""
    plausible = sensor.value_c != 0.0 and -50.0 < sensor.value_c < 200.0
    return plausible and sensor.kind not in _NO_TEMPERATURES


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
            return ThermalLimits(name=name, is_skin=kind in _SKIN_TYPES, from_c=_by_status(listed))
    return None


def _by_status(listed: str) -> dict[ThermalStatus, float]:
    """Return the thresholds by status, from NONE on; NaN stands for none, and 0.0 on some devices."""
    words = listed.split(",")
    # More values than statuses: the locale's decimal sign is a comma, too.
    words = words if len(words) <= len(ThermalStatus) else []
    matches = zip(ThermalStatus, map(_VALUE.fullmatch, words), strict=False)
    return {status: float(match[1]) for status, match in matches if match and 0.0 < float(match[1]) < 200.0}
