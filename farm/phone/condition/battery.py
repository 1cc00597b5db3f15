"""What `dumpsys battery` prints (AOSP: BatteryService.dumpInternal), with what vendors add."""

from dataclasses import dataclass

from farm.phone.adb.decoding import complete_lines, whole_number

#: android.os.BatteryManager: BATTERY_STATUS_CHARGING, DISCHARGING, NOT_CHARGING, FULL; 1 is unknown.
_CHARGING_BY_STATUS = {2: True, 3: False, 4: False, 5: True}
#: In the order in which Android decides what a phone is plugged into.
_PLUG_BY_KEY = {
    "AC powered": "ac",
    "USB powered": "usb",
    "Wireless powered": "wireless",
    "Dock powered": "dock",
}

#: Somebody ran `dumpsys battery set` or `unplug`: until its `reset` all values are what was set, or old.
_MADE_UP = "UPDATES STOPPED"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatteryStatus:
    """None where the phone does not say."""

    level_pct: int | None = None
    temperature_c: float | None = None
    #: Full and on the charger counts as charging.
    charging: bool | None = None
    #: `ac`, `usb`, `wireless`, `dock`, or `none`.
    plugged: str | None = None


def battery_status(text: str) -> BatteryStatus:
    """The first value of each key counts: vendors add keys of their own behind.

    Values that are not the battery's own are none; without a battery there is only what it is plugged into.
    A last line without a line end may be cut, and does not count.
    """
    if _MADE_UP in text:
        return BatteryStatus()
    said = _fields(text)
    plugged = _plugged(said)
    if said.get("present") == "false":
        return BatteryStatus(plugged=plugged)
    values = {key: number for key, value in said.items() if (number := whole_number(value)) is not None}
    level, scale = values.get("level"), values.get("scale", 100)
    tenths = values.get("temperature")
    return BatteryStatus(
        level_pct=_percentage(level, scale),
        temperature_c=_celsius(tenths, values.get("voltage")),
        charging=_CHARGING_BY_STATUS.get(values.get("status", 1)),
        plugged=plugged,
    )


def _fields(text: str) -> dict[str, str]:
    """Values by key; keys may be whole sentences, and values missing."""
    found: dict[str, str] = {}
    for line in complete_lines(text):
        key, colon, value = line.strip().partition(":")
        if colon and value.strip():
            found.setdefault(key, value.strip())
    return found


def _plugged(said: dict[str, str]) -> str | None:
    """None without any plug, unless the lines of both kinds that every Android has say so.

    Some vendors have further kinds: a Moto Z may be powered by what is clipped to its back.
    """
    powered = [key for key, value in said.items() if key.endswith(" powered") and value == "true"]
    plugs = [plug for key, plug in _PLUG_BY_KEY.items() if key in powered]
    if plugs:
        return plugs[0]
    is_told = all(said.get(key) == "false" for key in ("AC powered", "USB powered"))
    return "none" if is_told and not powered else None


def _celsius(tenths: int | None, millivolts: int | None) -> float | None:
    """No cell has less than a volt: that is what emulators and boxes without a battery make up, often 0.

    Boxes count their temperature in degrees, then.
    """
    if tenths is None or not -500 < tenths < 1500:
        return None
    made_up = tenths == 0 if millivolts is None else millivolts < 1000 and abs(tenths) < 100
    return None if made_up else tenths / 10


def _percentage(level: int | None, scale: int) -> int | None:
    if level is None or scale <= 0 or not 0 <= level <= scale:
        return None
    return round(100 * level / scale)
