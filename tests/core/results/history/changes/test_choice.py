"""The choice among candidates: which planned tests of a day stand."""

from dataclasses import replace

import pytest

from farm.core.results.history.changes.breaks import VersionBreak
from farm.core.results.history.changes.choice import Candidate, significance, strongest
from farm.core.results.history.changes.differences import Difference
from farm.core.results.history.changes.planned.conditions import PLANNED_ABSOLUTE, PLANNED_NARROW
from farm.core.results.history.changes.points import Cause

BREAK = VersionBreak(cause=Cause.OS, version="o2", day=10)


def planned(z: float, *, is_part: bool = False) -> Candidate:
    return Candidate(
        cause=Cause.OS,
        scope={"os": "o2"},
        tick_by_row={0: 10},
        day=10,
        z=z,
        size=0.05,
        threshold=PLANNED_NARROW if is_part else PLANNED_ABSOLUTE,
        break_=BREAK,
        is_planned=True,
        is_part=is_part,
    )


def test_a_build_that_is_tested_in_many_parts_does_not_hide_its_own_change() -> None:
    whole = planned(3.9)
    tests = [whole, *(planned(0.5, is_part=True) for _ in range(14))]
    assert strongest(tests, stands=significance(tests)) is whole


def test_strong_parts_of_other_builds_do_not_let_a_build_stand_that_does_not_among_builds() -> None:
    tests = [
        planned(3.3),
        *(planned(0.5) for _ in range(14)),
        *(planned(6.0, is_part=True) for _ in range(14)),
    ]
    assert not significance(tests).admits(tests[0])


def test_among_many_builds_of_a_day_the_same_score_is_chance() -> None:
    tests = [planned(3.3), *(planned(0.5) for _ in range(14))]
    assert strongest(tests, stands=significance(tests)) is None


@pytest.mark.parametrize(("z", "is_told"), [(4.1, False), (4.3, True)])
def test_a_part_needs_its_own_score(z: float, is_told: bool) -> None:
    part = planned(z, is_part=True)
    tests = [planned(0.5), part, *(planned(0.5, is_part=True) for _ in range(13))]
    assert (strongest(tests, stands=significance(tests)) is part) is is_told


@pytest.mark.parametrize(
    ("shift", "error", "is_wider"),
    [(0.06, 0.01, True), (0.01, 0.01, False), (0.01, 0.2, True)],
)
def test_a_wider_scope_is_named_where_its_further_series_moved_or_cannot_tell(
    shift: float, error: float, is_wider: bool
) -> None:
    """Noise of a shared baseline may make the mean of more series less precise than that of a part."""
    own = Difference(0.1, 0.004**2, 0.1, 20.0, 5, 20)
    further = Difference(shift, error**2, shift, 20.0, 5, 20)
    part = replace(planned(9.0, is_part=True), evidence={0: own}, precision=60_000.0)
    whole = replace(
        planned(8.0), tick_by_row={0: 10, 1: 10}, evidence={0: own, 1: further}, precision=59_000.0
    )
    tests = [whole, part]
    assert (strongest(tests, stands=significance(tests)) is whole) is is_wider
