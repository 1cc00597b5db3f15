"""How far apart the two sides of a pair began: in minutes, in degrees, and in boots."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from farm.core.jobs.retry import CHRONIC_AFTER

RESTARTED = "the device restarted between the baseline and the candidate"

#: Sides of a pair begin at most so far apart, °C. A device that cools between two runs of a block by more has
#: another heat budget for the second; gates alone let pass whatever is below their limits.
MAX_START_APART_C = 5.0


class RunStart(Protocol):
    """What a device showed of itself right before a run; None where it hides that."""

    @property
    def start_skin_c(self) -> float | None: ...
    @property
    def start_battery_c(self) -> float | None: ...
    @property
    def boot_id(self) -> str | None: ...
    @property
    def start_uptime_s(self) -> float | None:
        """Return the time since that boot, with the time that the device slept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDistance:
    """The minutes between the beginnings of both sides, over pairs of one row."""

    median_min: float
    largest_min: float
    #: Pairs whose distance is known.
    pairs: int


def difference_of_starts(baseline: RunStart, candidate: RunStart) -> str | None:
    """Return why two runs do not go together; None where they do, and where the device hides it."""
    if restarted_between(baseline.boot_id, candidate.boot_id):
        return RESTARTED
    for name, one_c, other_c in (
        ("skin", baseline.start_skin_c, candidate.start_skin_c),
        ("battery", baseline.start_battery_c, candidate.start_battery_c),
    ):
        if one_c is not None and other_c is not None and abs(one_c - other_c) > MAX_START_APART_C:
            temperatures = (
                f"the {name} had {one_c:.1f} °C before the baseline, {other_c:.1f} °C before the candidate"
            )
            return f"{temperatures}: at most {MAX_START_APART_C:.0f} °C apart"
    return None


def is_always_apart(pairs: Sequence[tuple[RunStart, RunStart]]) -> bool:
    """Tell whether none of many pairs of two cells could count for how its sides began.

    Their device does not start them alike, and running them again does not change that.
    """
    return len(pairs) >= CHRONIC_AFTER and all(difference_of_starts(*pair) for pair in pairs)


def restarted_between(boot_id: str | None, other_boot_id: str | None) -> bool | None:
    """Tell whether the device restarted between the runs of two boots; None where it hides them."""
    if boot_id is None or other_boot_id is None:
        return None
    return boot_id != other_boot_id


def minutes_apart(one: RunStart, other: RunStart) -> float | None:
    """Return the minutes between two beginnings, by the device's own clock.

    None where the device restarted in between, or hides its boots: each boot's clock begins at 0.
    """
    if restarted_between(one.boot_id, other.boot_id) is not False:
        return None
    if one.start_uptime_s is None or other.start_uptime_s is None:
        return None
    return abs(one.start_uptime_s - other.start_uptime_s) / 60


def pair_distance(minutes: Sequence[float | None]) -> PairDistance | None:
    """Return the distances of pairs in short; None where none of them is known."""
    known = [distance for distance in minutes if distance is not None]
    if not known:
        return None
    return PairDistance(median_min=median(known), largest_min=max(known), pairs=len(known))
