import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.results.pairing import RoundPair
from farm.core.results.speedup import Verdict, speedup
from farm.core.results.statistics.verdict import DIRECTED
from farm.core.runs.measurement import Quality, SampleKind
from tests.support.sample_measurement import MeasuredValue

SIDES_NS = st.lists(
    st.tuples(st.floats(1e2, 1e10), st.floats(1e2, 1e10)),
    min_size=1,
    max_size=20,
)
SWAPPED = {
    Verdict.FASTER: Verdict.SLOWER,
    Verdict.FASTER_SIZE_OPEN: Verdict.SLOWER_SIZE_OPEN,
    Verdict.FASTER_WITHIN: Verdict.SLOWER_WITHIN,
    Verdict.SLOWER: Verdict.FASTER,
    Verdict.SLOWER_SIZE_OPEN: Verdict.FASTER_SIZE_OPEN,
    Verdict.SLOWER_WITHIN: Verdict.FASTER_WITHIN,
    Verdict.SAME: Verdict.SAME,
    Verdict.UNDECIDED: Verdict.UNDECIDED,
}


def pairs_of(sides_ns: list[tuple[float, float]]) -> list[RoundPair]:
    return [
        RoundPair(
            round=index, block=0, baseline=measured(index, baseline), candidate=measured(index, candidate)
        )
        for index, (baseline, candidate) in enumerate(sides_ns)
    ]


def measured(round: int, value_ns: float) -> MeasuredValue:
    return MeasuredValue(round=round, value_ns=value_ns, kind=SampleKind.SAMPLES, quality=Quality.VALID)


@given(SIDES_NS, st.randoms(use_true_random=False))
def test_the_order_of_rounds_does_not_matter(
    sides_ns: list[tuple[float, float]], source: random.Random
) -> None:
    pairs = pairs_of(sides_ns)
    shuffled = source.sample(pairs, len(pairs))
    assert speedup(shuffled) == speedup(pairs)


@given(SIDES_NS)
def test_swapping_the_sides_inverts_the_ratio_and_the_verdict(sides_ns: list[tuple[float, float]]) -> None:
    there = speedup(pairs_of(sides_ns))
    back = speedup(pairs_of([(candidate, baseline) for baseline, candidate in sides_ns]))
    assert there.ratio is not None
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.verdict is SWAPPED[there.verdict]
    if there.ci_low is not None:
        assert back.ci_high == pytest.approx(1 / there.ci_low)


@given(SIDES_NS, st.floats(1e-3, 1e3))
def test_scaling_both_sides_changes_nothing(sides_ns: list[tuple[float, float]], factor: float) -> None:
    plain = speedup(pairs_of(sides_ns))
    scaled = speedup(pairs_of([(factor * baseline, factor * candidate) for baseline, candidate in sides_ns]))
    assert scaled.ratio == pytest.approx(plain.ratio)
    if plain.ci_low is not None:
        assert scaled.ci_low == pytest.approx(plain.ci_low, rel=1e-6)
        assert scaled.ci_high == pytest.approx(plain.ci_high, rel=1e-6)


@given(SIDES_NS)
def test_the_interval_contains_the_ratio(sides_ns: list[tuple[float, float]]) -> None:
    answer = speedup(pairs_of(sides_ns))
    assert answer.rounds == len(sides_ns)
    if len(sides_ns) < 5:
        assert answer.ci_low is answer.ci_high is None
        return
    assert answer.ratio is not None
    assert answer.ci_low is not None
    assert answer.ci_high is not None
    assert answer.ci_low <= answer.ratio <= answer.ci_high


@given(SIDES_NS, st.floats(0.8, 0.99), st.floats(0.8, 0.99))
def test_an_interval_of_more_confidence_contains_one_of_less(
    sides_ns: list[tuple[float, float]], one: float, other: float
) -> None:
    narrow, wide = (speedup(pairs_of(sides_ns), confidence=confidence) for confidence in sorted((one, other)))
    if narrow.ci_low is not None:
        assert narrow.ci_high is not None
        assert wide.ci_low is not None
        assert wide.ci_high is not None
        # But for the rounding of confidences that are next to each other.
        assert wide.ci_low <= narrow.ci_low * (1 + 1e-12)
        assert narrow.ci_high <= wide.ci_high * (1 + 1e-12)


@pytest.mark.parametrize("rounds", [5, 12])
def test_the_interval_covers_the_truth_in_95_of_100_experiments(rounds: int) -> None:
    source, truth, experiments = random.Random(7), 1.3, 2000
    covered = 0
    for _ in range(experiments):
        answer = speedup(pairs_of(noisy_sides(source, rounds, truth)))
        assert answer.ci_low is not None
        assert answer.ci_high is not None
        covered += answer.ci_low <= truth <= answer.ci_high
    # Two standard errors of the estimate are 1 %.
    assert 0.94 <= covered / experiments <= 0.96


@pytest.mark.parametrize("noise", [0.02, 0.2])
def test_an_a_a_pair_rarely_comes_out_faster_or_slower(noise: float) -> None:
    source, experiments = random.Random(8), 2000
    verdicts = [speedup(pairs_of(noisy_sides(source, 5, 1.0, noise))).verdict for _ in range(experiments)]
    wrong = sum(verdict in DIRECTED for verdict in verdicts)
    assert wrong / experiments <= 0.06


def test_the_detectable_effect_is_found_in_80_of_100_experiments() -> None:
    source, noise, rounds, experiments = random.Random(9), 0.05, 10, 1000
    answers = [speedup(pairs_of(noisy_sides(source, rounds, 1.0, noise))) for _ in range(200)]
    typical = math.sqrt(sum(math.log1p(a.detectable or 0) ** 2 for a in answers) / len(answers))
    sides = [noisy_sides(source, rounds, math.exp(typical), noise) for _ in range(experiments)]
    found = sum(speedup(pairs_of(side)).verdict in DIRECTED for side in sides)
    assert 0.75 <= found / experiments <= 0.85


def noisy_sides(
    source: random.Random, rounds: int, truth: float, noise: float = 0.05
) -> list[tuple[float, float]]:
    """Times with log-normal noise, and a drift that both sides of a round share."""
    sides = []
    for index in range(rounds):
        drift = 1e7 * math.exp(0.1 * index)
        baseline = drift * truth * math.exp(source.gauss(0, noise))
        sides.append((baseline, drift * math.exp(source.gauss(0, noise))))
    return sides
