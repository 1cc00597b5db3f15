"""What XCTest prints of `measure` blocks."""

import re
from dataclasses import dataclass

_NUMBER = r"-?[0-9]{1,12}(?:\.[0-9]{1,12})?(?:[eE][+-]?[0-9]{1,3})?"
#: `[Time, seconds]`; newer Xcode writes `[Clock Monotonic Time, s]` and other metrics.
_MEASURED = re.compile(
    r"Test Case '(?P<name>[^'\n]{1,300})' measured \[(?P<metric>[^,\]\n]{1,80}), (?P<unit>[^\]\n]{1,20})\]"
    rf" average: (?P<mean>{_NUMBER}), relative standard deviation: (?P<rsd>{_NUMBER}|-?nan|inf)%,"
    r" values: \[(?P<values>[^\]\n]{0,5000})\]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One `measure` block's figures, in the unit that it prints."""

    test: str
    metric: str
    unit: str
    mean: float
    #: None of a mean of 0.
    relative_deviation_pct: float | None
    values: tuple[float, ...]


def measured(text: str) -> list[Measured]:
    """Every complete measure line, in the order printed."""
    return [
        Measured(
            test=found["name"],
            metric=found["metric"],
            unit=found["unit"],
            mean=float(found["mean"]),
            relative_deviation_pct=float(found["rsd"]) if re.fullmatch(_NUMBER, found["rsd"]) else None,
            values=tuple(float(value) for value in re.findall(_NUMBER, found["values"])),
        )
        for found in _MEASURED.finditer(text)
    ]
