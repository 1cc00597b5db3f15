"""Documents about speedups: one comparison on one device, and what a gate says of it."""

from datetime import datetime

from farm.core.base.ids import CellId, DeviceId, MatrixId
from farm.core.models.variant import SlowPath
from farm.core.results.looks.basis import IntervalBasis
from farm.core.results.metric_comparison import MetricComparison
from farm.core.results.speedup import ExclusionCount
from farm.core.results.statistics.families import AlarmShare
from farm.core.results.statistics.gate import GateOutcome
from farm.core.results.statistics.pair_distance import PairDistance
from farm.core.runs.measurement import Verdict
from farm.wire.base import Wire
from farm.wire.documents.matrices.cell_setup import CellSetup

#: Comparisons that one answer lists at most.
MAX_SPEEDUPS_PAGE = 2000


class SpeedupView(CellSetup):
    """GET /api/v1/speedups: one candidate against its baseline on one device.

    What is run (model, precision, flags, digests, ...) is the candidate's; `baseline_setup` is the same of
    the baseline.
    """

    matrix_id: MatrixId
    #: The candidate's cell, whose explanation shows the source of the numbers; and its baseline's.
    cell_id: CellId
    baseline_cell_id: CellId
    device_id: DeviceId
    device_label: str | None
    device_model: str | None
    soc: str | None
    #: The labels of the two cells.
    baseline: str
    candidate: str
    baseline_setup: CellSetup
    #: What the clocks of candidate and baseline cover; None where both are of one harness. They differ, too,
    #: where a definition does not say the same.
    clock_covers: str | None = None
    baseline_clock_covers: str | None = None
    clocks_differ: bool = False
    #: The tokens of candidate and baseline, of language models; None unless they differ, or may: two tools
    #: can make different numbers of them of one text.
    tokens: str | None = None
    baseline_tokens: str | None = None
    tokens_differ: bool = False
    #: Baseline time over candidate time, geometric mean over rounds.
    speedup: float | None
    #: The confidence interval of the speedup: 95 % over all looks together.
    ci_low: float | None
    ci_high: float | None
    #: The rule of the interval, and the looks that were had.
    interval: IntervalBasis
    #: Rounds that entered; one pair in each, but of an A/A pair one in each block; blocks left out.
    rounds: int
    pairs: int
    excluded: int
    #: The reasons why rounds are left out, and of which side they are.
    left_out: tuple[ExclusionCount, ...]
    #: The speedup over all rounds in which both sides were timed, those that are left out among them; and
    #: whether it differs from `speedup` by more than half of the interval's width.
    speedup_of_all: float | None
    selection_matters: bool
    #: The minutes between the beginnings of both sides, over the rounds that entered; None where the device
    #: hides its boots, or an older release measured.
    distance: PairDistance | None
    #: What `verdict` is judged against, as a fraction.
    margin: float
    verdict: Verdict
    #: The reason of the verdict, where it needs one.
    reason: str | None
    #: Nanoseconds, geometric means over the rounds that entered.
    baseline_ns: float | None
    candidate_ns: float | None
    #: Candidate minus baseline: negative when the candidate is faster.
    difference_ns: float | None
    #: The shortest iterations over the rounds that entered; None where the harness prints none.
    baseline_min_ns: float | None
    candidate_min_ns: float | None
    #: The smallest true difference so many rounds would probably show, as a fraction: by the past variance of
    #: the pair where it is known, and never less than the margin.
    detectable: float | None
    #: The chance of a speedup at least so far from 1 where there is no difference.
    p_value: float | None
    #: Whether the interval rules out that the candidate is slower by more than the margin.
    not_slower: bool | None
    #: Earlier matrices whose variance of this pair moderates the interval.
    moderated_by: int
    #: The standard error of the logarithm of the speedup, and its degrees of freedom; None without an
    #: interval, and of a farm of an earlier release.
    log_error: float | None = None
    degrees: float | None = None
    #: The matrices whose rounds entered, the newest first: each was one look at the same question.
    matrices: tuple[MatrixId, ...]
    #: True for a duplicate of the baseline: its verdict shows how far the other rows can be trusted.
    aa: bool
    #: Of an A/A pair: how many of such pairs of the device had an interval that left out 1, in its last 50
    #: matrices with one.
    aa_alarms: AlarmShare | None
    virtual: bool
    #: The metrics besides the time that the matrix names.
    metrics: tuple[MetricComparison, ...]
    measured_until: datetime

    @property
    def baseline_harness(self) -> str:
        """Return the harness of the baseline."""
        return self.baseline_setup.harness

    @property
    def baseline_unoptimized(self) -> bool:
        """Return whether the baseline's file is one that phones could run faster."""
        return self.baseline_setup.unoptimized

    @property
    def baseline_slow_path(self) -> SlowPath | None:
        """Return what the baseline's file shows of a way of computing that is known to be slow."""
        return self.baseline_setup.slow_path


class GateRowView(Wire):
    """What a gate says of one comparison."""

    cell_id: CellId
    device_id: DeviceId
    device_label: str | None
    baseline: str
    candidate: str
    outcome: GateOutcome
    #: Baseline time over candidate time, and its interval.
    speedup: float | None
    ci_low: float | None
    ci_high: float | None
    rounds: int
    #: Rounds that would probably decide it; 0 where none would or need, None for more than 1000.
    further_rounds: int | None
    #: Why a side was not measured, as the matrix says; None where it does not.
    problem: str | None = None


class GateView(Wire):
    """What `--gate not-slower` says of a matrix; the exit code is that of its outcome."""

    matrix_id: MatrixId | None
    outcome: GateOutcome
    #: By how much a candidate may be slower, as a fraction.
    margin: float
    #: Cells that are passed or slower, and cells that the matrix asks for, those that cannot run among them.
    answered: int
    asked: int
    #: Cells that cannot run, other than those that the matrix excludes: with any, nothing passes.
    not_run: int = 0
    #: Rounds that would probably decide all that are undecided; None for more than 1000.
    further_rounds: int | None
    rows: tuple[GateRowView, ...]
