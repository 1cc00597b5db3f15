"""Settings and controls of a device: `settings list`, controls.sh, and files that stop the charging."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from farm.core.devices.controls import ControlState
from farm.core.upkeep.charging import ChargeWindow
from farm.phone.adb.decoding import lines, whole_number

#: File below devices/system/cpu, value before, requested value, value now; `-` where there is none.
_ROW = re.compile(
    r"(?:cpufreq/(policy\d{1,3})/scaling_(\w+)|(cpu\d{1,3})/(online)) (\S+) (\S+) (\S+)", re.ASCII
)
_NAME_BY_FILE = {"governor": "governor", "min_freq": "min_hz", "max_freq": "max_hz", "online": "online"}
_SETTING = re.compile(r"([A-Za-z_][\w.\-/]*)=(.*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    before: str | None
    requested: str
    now: str | None


def control_states(text: str) -> tuple[ControlState, ...]:
    """Return the settings as they were read back at once."""
    return tuple(
        ControlState(
            name=row.name,
            requested=row.requested,
            before=row.before,
            actual_before=row.now,
            problem=None if row.before is not None else "the device does not have it",
        )
        for row in _rows(text)
    )


def with_read_back(states: Sequence[ControlState], text: str) -> tuple[ControlState, ...]:
    """Return the settings with the values after the run; those missing in the text stay unknown."""
    now_by_name = {row.name: row.now for row in _rows(text)}
    return tuple(
        replace(state, actual_after=now_by_name[state.name]) if state.name in now_by_name else state
        for state in states
    )


def _rows(text: str) -> Iterator[_Row]:
    for line in lines(text):
        match = _ROW.fullmatch(line)
        if match is None or (file := match[2] or match[4]) not in _NAME_BY_FILE:
            continue
        name = f"{match[1] or match[3]}.{_NAME_BY_FILE[file]}"
        before, requested, now = (_value(match[number], in_hz=file.endswith("_freq")) for number in (5, 6, 7))
        if requested is not None:
            yield _Row(name, before, requested, now)


def _value(text: str, *, in_hz: bool) -> str | None:
    """Convert a value: frequencies are in kilohertz in those files, and in hertz everywhere else."""
    if text == "-":
        return None
    kilohertz = whole_number(text)
    return str(kilohertz * 1000) if in_hz and kilohertz is not None else text


def settings_list(text: str, namespace: str) -> dict[str, str]:
    """Return values by `NAMESPACE/KEY`; a key with the value `null` is missing, as in `settings get`."""
    rows = (_SETTING.fullmatch(line) for line in lines(text))
    return {f"{namespace}/{row[1]}": row[2] for row in rows if row and row[2] != "null"}


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
