"""Where kernels of phones let root stop the charging: files of sysfs, which differ by maker."""

from dataclasses import dataclass

from farm.core.upkeep.charging import ChargeWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeSwitch:
    """A file below /sys, with what is written to stop charging, and to go on."""

    path: str
    stop: str
    go: str


_SUPPLY = "class/power_supply"
_TOP = "{top}"

#: The surest first: those that only stop the charging come before those that cut the phone from its input.
CHARGE_SWITCHES: tuple[ChargeSwitch, ...] = (
    # Google, from the Pixel 3 on: charges up to this level.
    ChargeSwitch(path="devices/platform/google,charger/charge_stop_level", stop=_TOP, go="100"),
    ChargeSwitch(path=f"{_SUPPLY}/battery/charge_control_end_threshold", stop=_TOP, go="100"),
    ChargeSwitch(path=f"{_SUPPLY}/battery/battery_charging_enabled", stop="0", go="1"),
    ChargeSwitch(path=f"{_SUPPLY}/battery/charging_enabled", stop="0", go="1"),
    # OnePlus and Oppo.
    ChargeSwitch(path=f"{_SUPPLY}/battery/mmi_charging_enable", stop="0", go="1"),
    ChargeSwitch(path=f"{_SUPPLY}/battery/charge_disable", stop="1", go="0"),
    # Samsung: batt_slate_mode lives off the cable without charging, store_mode keeps 60 to 70 %.
    ChargeSwitch(path=f"{_SUPPLY}/battery/batt_slate_mode", stop="1", go="0"),
    ChargeSwitch(path=f"{_SUPPLY}/battery/store_mode", stop="1", go="0"),
    # Huawei.
    ChargeSwitch(path="class/hw_power/charger/charge_data/enable_charger", stop="0", go="1"),
    # Qualcomm: the phone runs off its battery.
    ChargeSwitch(path=f"{_SUPPLY}/battery/input_suspend", stop="1", go="0"),
)


def stop_value(switch: ChargeSwitch, window: ChargeWindow) -> str:
    """What stops the charging, where the window's top is what a kernel takes."""
    return switch.stop.replace(_TOP, str(window.high_pct))
