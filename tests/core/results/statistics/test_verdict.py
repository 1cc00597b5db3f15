import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.results.statistics.verdict import DIRECTED, is_not_slower, verdict_on, verdict_text
from farm.core.runs.measurement import Verdict

ENDS = st.tuples(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5)).map(sorted)
MARGINS = st.floats(0, 0.5)
SWAPPED = {
    Verdict.FASTER: Verdict.SLOWER,
    Verdict.FASTER_SIZE_OPEN: Verdict.SLOWER_SIZE_OPEN,
    Verdict.FASTER_WITHIN: Verdict.SLOWER_WITHIN,
    Verdict.SAME: Verdict.SAME,
    Verdict.UNDECIDED: Verdict.UNDECIDED,
}
SWAPPED |= {after: before for before, after in SWAPPED.items()}


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.03, 1.10, Verdict.FASTER),
        (1.01, 1.10, Verdict.FASTER_SIZE_OPEN),
        (1.005, 1.015, Verdict.FASTER_WITHIN),
        (0.99, 1.01, Verdict.SAME),
        (0.99, 1.10, Verdict.UNDECIDED),
        (0.90, 1.10, Verdict.UNDECIDED),
        (0.985, 0.995, Verdict.SLOWER_WITHIN),
        (0.90, 0.99, Verdict.SLOWER_SIZE_OPEN),
        (0.90, 0.97, Verdict.SLOWER),
    ],
)
def test_each_region_of_an_interval_has_its_verdict(low: float, high: float, verdict: Verdict) -> None:
    assert verdict_on(math.log(low), math.log(high), margin=0.02)[0] is verdict


@given(ENDS, MARGINS)
def test_swapping_the_sides_mirrors_the_verdict(ends: list[float], margin: float) -> None:
    low, high = ends
    there, back = verdict_on(low, high, margin=margin)[0], verdict_on(-high, -low, margin=margin)[0]
    assert back is SWAPPED[there]


@given(ENDS, MARGINS, MARGINS)
def test_a_wider_margin_never_makes_what_is_the_same_anything_else(
    ends: list[float], one: float, other: float
) -> None:
    narrow, wide = sorted((one, other))
    if verdict_on(*ends, margin=narrow)[0] is Verdict.SAME:
        assert verdict_on(*ends, margin=wide)[0] is Verdict.SAME


@given(ENDS, MARGINS, MARGINS)
def test_no_margin_turns_a_direction_around(ends: list[float], one: float, other: float) -> None:
    directions = {
        str(verdict).partition("_")[0]
        for margin in (one, other)
        if (verdict := verdict_on(*ends, margin=margin)[0]) in DIRECTED
    }
    assert len(directions) <= 1


@given(ENDS, MARGINS)
def test_what_passes_the_gate_is_never_called_slower(ends: list[float], margin: float) -> None:
    if is_not_slower(ends[0], margin=margin):
        assert verdict_on(*ends, margin=margin)[0] is not Verdict.SLOWER


def test_verdicts_are_told_with_the_margin() -> None:
    assert verdict_text(Verdict.SLOWER_WITHIN, margin=0.02) == "slower, within 2 %"
    assert verdict_text(Verdict.FASTER_SIZE_OPEN, margin=0.02) == "faster, size open"
    assert verdict_text(Verdict.UNDECIDED, margin=0.02) == "undecided"
