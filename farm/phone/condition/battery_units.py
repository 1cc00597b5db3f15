"""Units and sign of a battery's current, voltage and charge in sysfs, where devices do not agree on them.

Linux documents microamperes, microvolts and microampere-hours (Documentation/ABI/testing/sysfs-class-power),
and Android a positive current for one into the battery (BatteryManager.BATTERY_PROPERTY_CURRENT_NOW). Drivers
of Samsung, Huawei and Oppo report `current_now` in milliamperes, with `voltage_now` in microvolts; that of
Oppo reports a discharge as positive.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from statistics import median

from farm.core.runs.trace import DISCHARGING

#: Above this a number can only be in the smaller unit: no battery of a phone gives 20 A.
_MOST_MILLIAMPERES = 20_000
_MOST_MILLIVOLTS = 100_000
_LEAST_MILLIVOLTS = 1_000
#: Of a phone's battery, in mAh.
_MOST_MILLIAMPERE_HOURS = 20_000
#: A fuel gauge counts in steps: a smaller change decides nothing.
_LEAST_CHANGE_AH = 0.001
_MICRO, _MILLI = 1e-6, 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class BatteryReading:
    """What the files hold at one moment, in the device's units."""

    uptime_s: float
    current: int | None
    charge_ah: float | None
    charger: str | None


def volts(value: int) -> float | None:
    """Return a voltage in volts; None where it is none of a battery."""
    if value > _MOST_MILLIVOLTS:
        return value * _MICRO
    return value * _MILLI if value >= _LEAST_MILLIVOLTS else None


def ampere_hours(value: int) -> float:
    """Return the charge of a battery in ampere-hours."""
    return value * (_MILLI if abs(value) < _MOST_MILLIAMPERE_HOURS else _MICRO)


def amperes_per_unit(readings: Sequence[BatteryReading]) -> float | None:
    """Return the factor from `current_now` to amperes into the battery; None where none is certain.

    The unit is µA where any number is above 20,000. Else the charge counter decides, if it moved by 1 mAh or
    more: the unit whose sum over the run is closer to that. Else it is mA if the battery feeds the device: no
    phone measures on 20 mA. A full battery on its charger may have any small current, in either unit.

    The sign is that which makes the current of a discharging battery negative, else that of the counter's
    change, else as reported.
    """
    known = [(reading, reading.current) for reading in readings if reading.current is not None]
    discharging = [current for reading, current in known if reading.charger == DISCHARGING]
    change_ah, total = _change(readings)
    if any(abs(current) > _MOST_MILLIAMPERES for _, current in known):
        unit = _MICRO
    elif total and abs(change_ah) >= _LEAST_CHANGE_AH:
        unit = min((_MICRO, _MILLI), key=lambda unit: abs(log(abs(change_ah / (total * unit)))))
    elif discharging and any(discharging):
        unit = _MILLI
    else:
        return None
    if discharging and (middle := median(discharging)) != 0:
        return -unit if middle > 0 else unit
    return -unit if total and abs(change_ah) >= _LEAST_CHANGE_AH and change_ah * total < 0 else unit


def _change(readings: Sequence[BatteryReading]) -> tuple[float, float]:
    """Return the change of the counter in Ah, and the sum of the current over the same time, in units x h."""
    counted = [reading for reading in readings if reading.charge_ah is not None]
    if len(counted) < 2:
        return 0.0, 0.0
    first, last = counted[0], counted[-1]
    inside = [
        (reading.uptime_s, reading.current)
        for reading in readings
        if reading.current is not None and first.uptime_s <= reading.uptime_s <= last.uptime_s
    ]
    total = sum(
        (later_s - earlier_s) * (earlier + later) / 2
        for (earlier_s, earlier), (later_s, later) in pairwise(inside)
    )
    assert first.charge_ah is not None
    assert last.charge_ah is not None
    return last.charge_ah - first.charge_ah, total / 3600
