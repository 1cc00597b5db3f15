"""Files of sysfs in which root can stop the charging; they differ by maker."""

from dataclasses import dataclass

from farm.core.upkeep.charging import ChargeWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeSwitch:
    """A file below /sys, with the values that stop charging and resume it."""

    path: str
    stop: str
    go: str


_SUPPLY = "class/power_supply"
_TOP = "{top}"

#: The most reliable first: files that only stop the charging come before those that cut off the input.
CHARGE_SWITCHES: tuple[ChargeSwitch, ...] = (
    # Google, from the Pixel 3 on: charges up to this level.
    ChargeSwitch(path="devices/platform/google,charger/charge_stop_level", stop=_TOP, go="100"),
    ChargeSwitch(path=f"{_SUPPLY}/battery/charge_control_end_threshold", stop=_TOP, go="100"),
    ChargeSwitch(path=f"{_SUPPLY}/battery/battery_charging_enabled", stop="0", go="1"),
    ChargeSwitch(path=f"{_SUPPLY}/battery/charging_enabled", stop="0", go="1"),
    # OnePlus and Oppo.
    ChargeSwitch(path=f"{_SUPPLY}/battery/mmi_charging_enable", stop="0", go="1"),
    ChargeSwitch(path=f"{_SUPPLY}/battery/charge_disable", stop="1", go="0"),
    # Samsung: batt_slate_mode runs off the cable without charging, store_mode keeps 60 to 70 %.
    ChargeSwitch(path=f"{_SUPPLY}/battery/batt_slate_mode", stop="1", go="0"),
    ChargeSwitch(path=f"{_SUPPLY}/battery/store_mode", stop="1", go="0"),
    # Huawei.
    ChargeSwitch(path="class/hw_power/charger/charge_data/enable_charger", stop="0", go="1"),
    # Qualcomm: the device runs off its battery.
    ChargeSwitch(path=f"{_SUPPLY}/battery/input_suspend", stop="1", go="0"),
)


def stop_value(switch: ChargeSwitch, window: ChargeWindow) -> str:
    """Return the value that stops the charging, or the window's top where the kernel takes a level."""
    return switch.stop.replace(_TOP, str(window.high_pct))
