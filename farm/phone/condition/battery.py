"""Output of `dumpsys battery` (AOSP: BatteryService.dumpInternal), with vendors' additions."""

from dataclasses import dataclass

from farm.phone.adb.decoding import complete_lines, whole_number

#: android.os.BatteryManager: BATTERY_STATUS_CHARGING, DISCHARGING, NOT_CHARGING, FULL; 1 is unknown.
_CHARGING_BY_STATUS = {2: True, 3: False, 4: False, 5: True}
#: android.os.BatteryManager: BATTERY_HEALTH_*; 1 is unknown.
_HEALTH_BY_NUMBER = {
    2: "good",
    3: "overheat",
    4: "dead",
    5: "over voltage",
    6: "failure",
    7: "cold",
    8: "fair",
}
#: Some devices report microvolts.
_MAX_MILLIVOLTS = 100_000
#: In the order in which Android decides on the power source.
_PLUG_BY_KEY = {
    "AC powered": "ac",
    "USB powered": "usb",
    "Wireless powered": "wireless",
    "Dock powered": "dock",
}

#: After `dumpsys battery set` or `unplug`, and until its `reset`, all values are artificial or old.
_MADE_UP = "UPDATES STOPPED"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatteryStatus:
    """The state of a battery; None where the device does not report it."""

    level_pct: int | None = None
    temperature_c: float | None = None
    voltage_v: float | None = None
    #: `good`, or what is wrong with it: `overheat`, `dead`, `over voltage`, `failure`, `cold`, `fair`.
    health: str | None = None
    #: Full and on the charger counts as charging.
    charging: bool | None = None
    #: `ac`, `usb`, `wireless`, `dock`, or `none`.
    plugged: str | None = None


def battery_status(text: str) -> BatteryStatus:
    """Return the battery's state by the first value of each key: vendors append keys of their own.

    Artificial values count as missing; without a battery there is only the power source. A last line without
    a line end may be cut, and does not count.
    """
    if _MADE_UP in text:
        return BatteryStatus()
    fields = _fields(text)
    plugged = _plugged(fields)
    if fields.get("present") == "false":
        return BatteryStatus(plugged=plugged)
    values = {key: number for key, value in fields.items() if (number := whole_number(value)) is not None}
    level, scale = values.get("level"), values.get("scale", 100)
    tenths = values.get("temperature")
    return BatteryStatus(
        level_pct=_percentage(level, scale),
        temperature_c=_celsius(tenths, values.get("voltage")),
        voltage_v=_volts(values.get("voltage")),
        health=_HEALTH_BY_NUMBER.get(values.get("health", 1)),
        charging=_CHARGING_BY_STATUS.get(values.get("status", 1)),
        plugged=plugged,
    )


def _fields(text: str) -> dict[str, str]:
    """Return values by key; keys may be whole sentences, and values missing."""
    fields: dict[str, str] = {}
    for line in complete_lines(text):
        key, colon, value = line.strip().partition(":")
        if colon and value.strip():
            fields.setdefault(key, value.strip())
    return fields


def _plugged(fields: dict[str, str]) -> str | None:
    """Return the power source; None without any, unless the two lines that every Android has report it.

    Some vendors have further kinds: a Moto Z may be powered by a clip-on back.
    """
    powered = [key for key, value in fields.items() if key.endswith(" powered") and value == "true"]
    plugs = [plug for key, plug in _PLUG_BY_KEY.items() if key in powered]
    if plugs:
        return plugs[0]
    is_told = all(fields.get(key) == "false" for key in ("AC powered", "USB powered"))
    return "none" if is_told and not powered else None


def _celsius(tenths: int | None, millivolts: int | None) -> float | None:
    """Return the temperature; a cell below one volt is made up by an emulator or a box without a battery.

    Boxes count their temperature in degrees, then.
    """
    if tenths is None or not -500 < tenths < 1500:
        return None
    made_up = tenths == 0 if millivolts is None else millivolts < 1000 and abs(tenths) < 100
    return None if made_up else tenths / 10


def _volts(millivolts: int | None) -> float | None:
    """Return the voltage; a cell below one volt is made up."""
    if millivolts is None or millivolts < 1000:
        return None
    volts = millivolts / (1e6 if millivolts > _MAX_MILLIVOLTS else 1e3)
    return volts if 1.0 <= volts <= _MAX_MILLIVOLTS / 1e3 else None


def _percentage(level: int | None, scale: int) -> int | None:
    if level is None or scale <= 0 or not 0 <= level <= scale:
        return None
    return round(100 * level / scale)
