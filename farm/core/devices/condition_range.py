"""Ranges of device conditions around several runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from farm.core.devices.condition import Condition

_Value = Callable[[Condition], float | None]

#: The reported conditions by name; units are in the names.
_VALUES: Mapping[str, _Value] = MappingProxyType(
    {
        "thermal_status": lambda condition: condition.thermal_status,
        "skin_c": lambda condition: condition.skin_c,
        "battery_c": lambda condition: condition.battery_c,
        "battery_level_pct": lambda condition: condition.battery_level_pct,
        "load_1m": lambda condition: condition.load_1m,
        "memory_available_bytes": lambda condition: condition.memory_available_bytes,
    }
)

ConditionPair = tuple[Condition | None, Condition | None]
"""The phone right before and right after a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionRange:
    """The lowest and highest value before and after some runs; None where no phone said."""

    name: str
    before: tuple[float, float] | None
    after: tuple[float, float] | None
    #: The number of runs with a value, before or after.
    known: int


def condition_ranges(runs: Sequence[ConditionPair]) -> tuple[ConditionRange, ...]:
    """Return one range for condition_range condition that any device reported."""
    ranges = (_range_of(name, value, runs) for name, value in _VALUES.items())
    return tuple(condition_range for condition_range in ranges if condition_range.known)


def _range_of(name: str, value: _Value, runs: Sequence[ConditionPair]) -> ConditionRange:
    values = [tuple(None if condition is None else value(condition) for condition in pair) for pair in runs]
    return ConditionRange(
        name=name,
        before=_min_max(before for before, _ in values),
        after=_min_max(after for _, after in values),
        known=sum(1 for pair in values if any(condition is not None for condition in pair)),
    )


def _min_max(values: Iterable[float | None]) -> tuple[float, float] | None:
    reported = [float(value) for value in values if value is not None]
    return (min(reported), max(reported)) if reported else None
