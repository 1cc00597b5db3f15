"""A gate passes, fails or stays open, and fails without a difference in none of hundreds."""

import math
import random
from dataclasses import dataclass

import pytest

from farm.core.errors import Blame
from farm.core.results.statistics.gate import GATE_ERROR, GateOutcome, judge_gate
from farm.core.results.statistics.interval import log_interval

MARGIN = 0.03


@dataclass(frozen=True)
class Comparison:
    """A comparison as the farm has it."""

    baseline_ns: float | None = None
    candidate_ns: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    rounds: int = 0
    log_error: float | None = None
    degrees: float | None = None


def compared(*logs: float) -> Comparison:
    """The comparison of rounds by their log ratios; without an interval below five."""
    mean = math.fsum(logs) / len(logs)
    if len(logs) < 5:
        return Comparison(baseline_ns=math.exp(mean), candidate_ns=1.0, rounds=len(logs))
    interval = log_interval(logs)
    return Comparison(
        baseline_ns=math.exp(mean),
        candidate_ns=1.0,
        ci_low=math.exp(interval.low),
        ci_high=math.exp(interval.high),
        rounds=len(logs),
        log_error=interval.standard_error,
        degrees=interval.degrees,
    )


def rounds(mean: float, *, count: int = 10, noise: float = 0.01) -> Comparison:
    """Rounds that lie on both sides of a mean, at equal distances."""
    return compared(*(mean + noise * (-1) ** round for round in range(count)))


SAME, SLOWER, OPEN, NOTHING = rounds(0.0), rounds(-0.2), rounds(-0.03), Comparison()


@pytest.mark.parametrize(
    ("comparisons", "outcome"),
    [
        ([], GateOutcome.NOT_MEASURED),
        ([NOTHING], GateOutcome.NOT_MEASURED),
        ([NOTHING, NOTHING], GateOutcome.NOT_MEASURED),
        ([SAME], GateOutcome.PASSED),
        ([SAME, rounds(0.3)], GateOutcome.PASSED),
        ([SAME, NOTHING], GateOutcome.UNDECIDED),
        ([SAME, OPEN], GateOutcome.UNDECIDED),
        ([SAME, OPEN, NOTHING, SLOWER], GateOutcome.SLOWER),
        ([compared(0.0, 0.0)], GateOutcome.UNDECIDED),
        ([compared(*[-0.2] * 6)], GateOutcome.SLOWER),
        ([compared(*[0.0] * 6)], GateOutcome.PASSED),
    ],
)
def test_the_whole_is_the_worst_of_what_is_known(comparisons: list[Comparison], outcome: GateOutcome) -> None:
    assert judge_gate(comparisons, margin=MARGIN)[0] is outcome


def test_within_the_margin_a_slower_candidate_passes() -> None:
    outcome, _ = judge_gate([rounds(-0.02, noise=0.005)], margin=MARGIN)
    assert outcome is GateOutcome.PASSED


def test_an_interval_beyond_the_margin_alone_is_no_failure() -> None:
    open_row = rounds(-0.06, noise=0.03)
    assert open_row.ci_high is not None
    assert open_row.ci_high < 1 / (1 + MARGIN)
    outcome, [row] = judge_gate([open_row], margin=MARGIN)
    assert outcome is GateOutcome.UNDECIDED
    assert row.further_rounds is not None
    assert row.further_rounds > 0


@pytest.mark.parametrize("mean", [-0.06, -0.045, -0.02, -0.01])
def test_so_many_further_rounds_decide_if_all_stays_as_it_is(mean: float) -> None:
    outcome, [row] = judge_gate([rounds(mean, noise=0.04)], margin=MARGIN)
    assert outcome is GateOutcome.UNDECIDED
    assert row.further_rounds is not None
    more = row.further_rounds + row.further_rounds % 2
    decided, _ = judge_gate([rounds(mean, count=10 + more, noise=0.04)], margin=MARGIN)
    assert decided in (GateOutcome.PASSED, GateOutcome.SLOWER)


def test_few_rounds_ask_for_an_interval_first_and_the_margin_itself_for_no_number() -> None:
    assert judge_gate([compared(0.0, 0.1)], margin=MARGIN)[1][0].further_rounds == 3
    assert judge_gate([rounds(-math.log1p(MARGIN))], margin=MARGIN)[1][0].further_rounds is None


def test_none_of_two_hundred_gates_without_a_difference_fails() -> None:
    source = random.Random(7)
    for noise in (0.02, 0.2):
        for _ in range(200):
            gate = [compared(*(source.gauss(0.0, noise) for _ in range(5))) for _ in range(8)]
            assert judge_gate(gate, margin=0.02)[0] is not GateOutcome.SLOWER


def test_a_candidate_at_the_margin_passes_in_as_few_as_its_interval_says() -> None:
    source, passed, count = random.Random(8), 0, 2000
    for _ in range(count):
        logs = [-math.log1p(MARGIN) + source.gauss(0.0, 0.02) for _ in range(10)]
        passed += judge_gate([compared(*logs)], margin=MARGIN)[0] is GateOutcome.PASSED
    assert passed / count <= 0.025 + 2 * math.sqrt(0.025 * 0.975 / count)


def test_a_failure_is_rarer_the_more_comparisons_there_are() -> None:
    distance = -math.log1p(MARGIN) - 0.045
    assert judge_gate([rounds(distance)], margin=MARGIN)[0] is GateOutcome.SLOWER
    assert judge_gate([rounds(distance)], margin=MARGIN, family=10**9)[0] is GateOutcome.UNDECIDED
    assert GATE_ERROR * 200 <= 0.1


def test_exit_codes_are_of_their_own() -> None:
    codes = [party.exit_code for party in (*Blame, *GateOutcome)]
    assert sorted(codes) == [0, *range(2, 10)]
