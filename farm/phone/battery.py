"""What `dumpsys battery` prints (AOSP: BatteryService.dumpInternal), with what vendors add."""

from dataclasses import dataclass

from farm.phone.text import lines, whole_number

#: android.os.BatteryManager: BATTERY_STATUS_CHARGING, DISCHARGING, NOT_CHARGING, FULL; 1 is unknown.
_CHARGING_BY_STATUS = {2: True, 3: False, 4: False, 5: True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Battery:
    """None where the phone does not say."""

    level_pct: int | None = None
    temperature_c: float | None = None
    #: Full and on the charger counts as charging.
    charging: bool | None = None


def battery(text: str) -> Battery:
    """The first value of each key counts: vendors add keys of their own behind. No battery, no values."""
    if any(line.strip() == "present: false" for line in lines(text)):
        return Battery()
    values = _numbers(text)
    level, scale = values.get("level"), values.get("scale", 100)
    tenths = values.get("temperature")
    # A voltage of 0 is what emulators without a battery say; their temperature of 0 is no reading either.
    real = tenths is not None and not (tenths == 0 and values.get("voltage", 0) == 0)
    return Battery(
        level_pct=_percentage(level, scale),
        temperature_c=tenths / 10 if tenths is not None and real and abs(tenths) < 2000 else None,
        charging=_CHARGING_BY_STATUS.get(values.get("status", 1)),
    )


def _numbers(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in lines(text):
        key, colon, value = line.strip().partition(":")
        if colon and (number := whole_number(value)) is not None:
            found.setdefault(key, number)
    return found


def _percentage(level: int | None, scale: int) -> int | None:
    if level is None or scale <= 0 or not 0 <= level <= scale:
        return None
    return round(100 * level / scale)
