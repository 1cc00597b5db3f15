"""When a cell is looked at, and when it needs no further rounds."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.matrices.rounds import SequentialRounds
from farm.core.results.looks.basis import IntervalKind, compare_by_basis, rounds_of_last_look
from farm.core.results.looks.look import (
    Compare,
    Look,
    LookStop,
    half_width,
    missing_rounds,
    take_look,
    unusable_look,
)
from farm.core.results.looks.spending import SPENT_ERROR
from farm.core.results.speedup import Speedup
from farm.core.results.statistics.interval import CONFIDENCE
from farm.core.runs.measurement import SampleKind, Verdict

PLAN = SequentialRounds()


def seen(usable: int, *, width: float = 0.1, ratio: float = 1.0) -> Compare:
    """A comparison of so many rounds with an interval of a width, wider for more confidence."""

    def compare(confidence: float) -> Speedup:
        reach = width * -math.log(1 - confidence)
        has_interval = usable >= 5
        low, high = ratio * math.exp(-reach), ratio * math.exp(reach)
        verdict = Verdict.FASTER if low > 1 else Verdict.SLOWER if high < 1 else Verdict.UNDECIDED
        return Speedup(
            ratio=ratio,
            ci_low=low if has_interval else None,
            ci_high=high if has_interval else None,
            verdict=verdict if has_interval else Verdict.UNDECIDED,
            reason="",
            rounds=usable,
            pairs=usable,
            excluded=(),
            baseline_ns=ratio,
            candidate_ns=1.0,
            kind=SampleKind.SAMPLES,
            detectable=0.01 if has_interval else None,
            p_value=None,
            not_slower=None,
            ratio_of_all=ratio,
            moderated_by=0,
        )

    return compare


def looks_at(usable: Sequence[int], plan: SequentialRounds = PLAN) -> list[Look]:
    """The looks of a cell that had so many usable rounds, in all that were run, one after the other."""
    past: list[Look] = []
    for count in usable:
        look = take_look(plan, past, seen(count), rounds=count)
        if look is not None:
            past.append(look)
    return past


@pytest.mark.parametrize(
    ("plan", "schedule"),
    [
        (SequentialRounds(), (5, 8, 12, 20, 40)),
        (SequentialRounds(at_least=10), (10, 12, 20, 40)),
        (SequentialRounds(at_least=6, at_most=15), (6, 8, 12, 15)),
        (SequentialRounds(at_least=40, at_most=100), (40, 100)),
    ],
)
def test_looks_are_planned_within_the_bounds(plan: SequentialRounds, schedule: tuple[int, ...]) -> None:
    assert plan.schedule == schedule


def test_all_looks_together_spend_the_whole_error_and_no_more() -> None:
    looks = looks_at(PLAN.schedule)
    assert [look.number for look in looks] == [1, 2, 3, 4, 5]
    assert looks[-1].spent == SPENT_ERROR
    assert looks[-1].stopped is LookStop.LAST


def test_rounds_that_do_not_count_put_the_look_off() -> None:
    assert take_look(PLAN, [], seen(4), rounds=5) is None
    assert missing_rounds(PLAN, [], 4) == 1
    (first,) = looks_at([5])
    assert take_look(PLAN, [first], seen(7), rounds=9) is None
    assert missing_rounds(PLAN, [first], 7) == 1


def test_the_last_look_spends_what_is_left_however_many_rounds_count() -> None:
    looks = looks_at([5, 8])
    last = take_look(PLAN, looks, seen(30), rounds=40)
    assert last is not None
    assert (last.spent, last.stopped) == (SPENT_ERROR, LookStop.LAST)


def test_a_verdict_stops_a_cell_and_a_narrow_interval_only_where_that_is_asked() -> None:
    faster = take_look(PLAN, [], seen(5, ratio=2.0), rounds=5)
    assert faster is not None
    assert faster.stopped is LookStop.DECIDED
    narrow = SequentialRounds(until=0.01)
    assert (look := take_look(narrow, [], seen(5, ratio=2.0), rounds=5)) is not None
    assert look.stopped is None
    assert (look := take_look(narrow, [], seen(5, width=0.001), rounds=5)) is not None
    assert look.stopped is LookStop.NARROW
    assert half_width(look.ci_low, look.ci_high) <= 0.01


def test_a_cell_without_usable_rounds_stops_and_one_that_had_some_keeps_its_interval() -> None:
    look = take_look(PLAN, [], seen(0), rounds=5)
    assert look is not None
    assert (look.stopped, look.level) == (LookStop.UNUSABLE, None)
    (first,) = looks_at([5])
    assert take_look(PLAN, [first], seen(5), rounds=14) is None
    later = take_look(PLAN, [first], seen(5), rounds=15)
    assert later is not None
    assert later.stopped is LookStop.UNUSABLE
    assert rounds_of_last_look([first, later]) == 5
    result, basis = compare_by_basis(seen(5), PLAN, [first, later], is_complete=True)
    assert (result.ci_low, basis.look, basis.stopped) == (first.ci_low, 1, LookStop.UNUSABLE)


def test_nothing_new_at_the_end_leaves_the_last_look_as_it_is() -> None:
    looks = looks_at([5, 8])
    last = take_look(PLAN, looks, seen(8), rounds=40)
    assert last is not None
    assert (last.stopped, last.level) == (LookStop.LAST, None)
    assert rounds_of_last_look([*looks, last]) == 8


def test_a_cell_that_no_device_survives_stops_at_once() -> None:
    assert unusable_look([], rounds=5).stopped is LookStop.UNUSABLE


def test_before_the_first_look_there_is_a_ratio_and_no_interval() -> None:
    result, basis = compare_by_basis(seen(6, ratio=2.0), PLAN, [], is_complete=False)
    assert (result.ratio, result.ci_low, result.verdict) == (2.0, None, Verdict.UNDECIDED)
    assert "first look is at 5 usable rounds" in result.reason
    assert (basis.kind, basis.look, basis.looks) == (IntervalKind.LOOK, 0, 5)


def test_a_planned_number_of_rounds_has_its_one_look_at_the_end() -> None:
    result, basis = compare_by_basis(seen(10), 10, [], is_complete=True)
    assert (basis.kind, basis.confidence) == (IntervalKind.PLANNED, CONFIDENCE)
    early, basis = compare_by_basis(seen(10), 10, [], is_complete=False)
    assert basis.kind is IntervalKind.ANYTIME
    assert half_width(early.ci_low, early.ci_high) > half_width(result.ci_low, result.ci_high)


@given(st.lists(st.integers(0, 60), max_size=12).map(sorted))
def test_whatever_counts_the_error_is_spent_once(usable: list[int]) -> None:
    past: list[Look] = []
    for rounds, count in zip(range(5, 41, 3), usable, strict=False):
        if past and past[-1].stopped:
            break
        look = take_look(PLAN, past, seen(min(count, rounds)), rounds=rounds)
        if look is not None:
            past.append(look)
        elif count >= 1:
            assert missing_rounds(PLAN, past, min(count, rounds)) >= 1
    spent = [look.spent for look in past if look.spent is not None]
    assert spent == sorted(spent)
    assert sum(spent[-1:]) <= SPENT_ERROR
    assert [look.number for look in past] == list(range(1, len(past) + 1))
    assert all(look.stopped is None for look in past[:-1])
