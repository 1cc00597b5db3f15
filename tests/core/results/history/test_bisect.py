"""The search for a version: positions, versions that cannot run, and what is judged."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.results.history.bisect import (
    LogChange,
    VersionResult,
    judge_version,
    most_comparisons,
    narrow,
    sought_half_width,
)


def searched(versions: int, first_bad: int, not_run: frozenset[int] = frozenset()) -> tuple[int, int, int]:
    """The range that a search ends with, and its comparisons with that of the ends."""
    results: dict[int, VersionResult] = {}
    while (place := narrow(versions, results).next) is not None:
        assert place not in results
        assert 0 < place < versions - 1
        results[place] = VersionResult.BAD if place >= first_bad else VersionResult.GOOD
        if place in not_run:
            results[place] = VersionResult.NOT_RUN
    end = narrow(versions, results)
    return end.last_good, end.first_bad, 1 + len(results)


@given(st.data())
def test_the_first_bad_version_is_found_in_the_logarithm_of_their_number(data: st.DataObject) -> None:
    versions = data.draw(st.integers(2, 300))
    first_bad = data.draw(st.integers(1, versions - 1))
    last_good, found, comparisons = searched(versions, first_bad)
    assert (last_good, found) == (first_bad - 1, first_bad)
    assert comparisons <= most_comparisons(versions)


def test_sixty_four_versions_take_seven_comparisons() -> None:
    assert most_comparisons(64) == 7
    assert {searched(64, first_bad)[1] for first_bad in range(1, 64)} == set(range(1, 64))
    assert max(searched(64, first_bad)[2] for first_bad in range(1, 64)) == 7
    assert most_comparisons(2) == 1


@given(st.data())
def test_versions_that_cannot_run_leave_a_range_and_are_never_blamed_alone(data: st.DataObject) -> None:
    versions = data.draw(st.integers(3, 100))
    first_bad = data.draw(st.integers(1, versions - 1))
    not_run = data.draw(st.frozensets(st.integers(1, versions - 2)))
    last_good, found, _ = searched(versions, first_bad, not_run)
    assert last_good < first_bad <= found
    # All between cannot run: no comparison is left that would say more.
    assert set(range(last_good + 1, found)) <= not_run
    assert last_good not in not_run
    assert found not in not_run


def test_a_long_stretch_that_cannot_run_is_left_behind_by_wide_steps() -> None:
    _, found, comparisons = searched(64, 60, frozenset(range(20, 50)))
    assert found == 60
    assert comparisons <= 10


def test_a_search_ends_with_a_range_when_several_versions_are_undecided() -> None:
    results = dict.fromkeys((30, 31, 32), VersionResult.UNDECIDED)
    end = narrow(64, {**results, 16: VersionResult.GOOD})
    assert (end.last_good, end.first_bad, end.next) == (16, 63, None)


BAD_END = LogChange(value=0.10, half_width=0.02)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (-0.03, VersionResult.GOOD),
        (0.0, VersionResult.GOOD),
        (0.029, VersionResult.GOOD),
        (0.045, VersionResult.UNDECIDED),
        (0.055, VersionResult.UNDECIDED),
        (0.071, VersionResult.BAD),
        (0.10, VersionResult.BAD),
        (0.20, VersionResult.BAD),
    ],
)
def test_a_version_is_like_the_end_that_it_is_nearer_to(value: float, result: VersionResult) -> None:
    version = LogChange(value=value, half_width=0.02)
    assert judge_version(version, BAD_END, change=0.1) is result
    mirrored = LogChange(value=-value, half_width=0.02)
    bad = LogChange(value=-BAD_END.value, half_width=0.02)
    assert judge_version(mirrored, bad, change=-0.1) is result


def test_a_wide_interval_decides_nothing_near_the_middle() -> None:
    wide = LogChange(value=0.08, half_width=0.07)
    assert judge_version(wide, BAD_END, change=0.1) is VersionResult.UNDECIDED


def test_ends_that_do_not_differ_again_decide_nothing() -> None:
    version = LogChange(value=0.2, half_width=0.01)
    same = LogChange(value=0.01, half_width=0.02)
    turned = LogChange(value=-0.1, half_width=0.02)
    assert judge_version(version, same, change=0.1) is VersionResult.UNDECIDED
    assert judge_version(version, turned, change=0.1) is VersionResult.UNDECIDED


def test_intervals_reach_a_quarter_of_the_change_within_the_bounds_of_a_matrix() -> None:
    assert sought_half_width([math.log(1.1)]) == pytest.approx(1.1**0.25 - 1)
    assert sought_half_width([0.2, 0.0]) == pytest.approx(math.expm1(0.025))
    assert sought_half_width([-1e-9]) == 0.0001
    assert sought_half_width([100.0]) == 1.0


def test_a_speedup_below_one_is_a_slower_version() -> None:
    change = LogChange.of_speedup(0.5, 0.4, 0.625)
    assert change is not None
    assert change.value == pytest.approx(math.log(2))
    assert change.half_width == pytest.approx(math.log(1.5625) / 2)
    assert LogChange.of_speedup(0.5, None, None) is None
