"""One comparison: what was measured of a candidate and its baseline, and what that says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from farm.core.base.ids import CellId, FactsId, MatrixId, SeriesId
from farm.core.base.microseconds import from_microseconds
from farm.core.results.looks.basis import IntervalBasis, compare_by_basis
from farm.core.results.looks.look import Look
from farm.core.results.metric_comparison import MetricComparison, MetricsByBlock, compare_metrics
from farm.core.results.pairing import (
    Exclusion,
    RoundPair,
    SharedBaseline,
    block_key,
    block_of,
    paired_rounds,
    used_pairs,
)
from farm.core.results.speedup import PairedMeans, Speedup, paired_means, speedup_of
from farm.core.results.statistics.families import AlarmShare
from farm.core.results.statistics.pair_distance import pair_distance
from farm.core.results.statistics.past_variance import VariancePrior
from farm.services.matrices.cell_setups import CellSetups
from farm.services.results.past_pairs import PastPairKey
from farm.store.devices.devices import Device
from farm.store.matrices.matrices import CellRow, Matrix
from farm.store.results.measurements import Measurement
from farm.wire.documents.results.speedups import SpeedupView

#: Of a pair that was not planned.
NEVER_TOGETHER = "never started in one block, and only starts of one block are compared"
UsedRounds = tuple[tuple[RoundPair, ...], tuple[Exclusion, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedupInputs:
    """A candidate with what was measured of it and of its baseline, not compared yet."""

    matrix: Matrix
    baseline: CellRow
    candidate: CellRow
    #: Of the baseline.
    its: SharedBaseline[Measurement]
    #: Of the candidate, oldest first.
    own: Sequence[Measurement]
    builds: Mapping[FactsId, int]
    #: At the candidate, oldest first; empty unless the matrix grows.
    looks: Sequence[Look]
    #: All rounds of both that were planned are run.
    is_complete: bool
    setups: CellSetups
    #: By cell; empty unless the matrix names metrics.
    metrics: Mapping[CellId, MetricsByBlock]
    #: What earlier matrices say of the variance of this pair.
    prior: VariancePrior | None = None
    #: False: a person chose the baseline, which the matrix has not planned for this candidate.
    is_planned: bool = True
    #: The matrices whose rounds are in it, the newest first: each was a look at the same question.
    matrices: tuple[MatrixId, ...]
    #: What `pairs` has found, by `across_controls`.
    _found: dict[bool, UsedRounds] = field(init=False, default_factory=dict, compare=False, repr=False)

    @property
    def sides(self) -> tuple[Sequence[Measurement], Sequence[Measurement]]:
        """Return what was measured of baseline and candidate, oldest first."""
        return self.its.starts, self.own

    @property
    def duplicates(self) -> Sequence[Measurement]:
        """Return what was measured of the baseline's duplicates, which join it."""
        return self.its.duplicates

    @property
    def series(self) -> tuple[SeriesId | None, SeriesId | None]:
        """Return the series that are compared, in any matrix; None for a side without a measurement."""
        baseline, candidate = (side[-1].series_id if side else None for side in self.sides)
        return baseline, candidate

    @property
    def key(self) -> PastPairKey | None:
        """Return what identifies the pair in other matrices; None where a side was never measured."""
        baseline, candidate = self.series
        if baseline is None or candidate is None:
            return None
        return baseline, candidate, len({measurement.cell_id for measurement in self.duplicates})

    def with_prior(self, prior: VariancePrior | None) -> "SpeedupInputs":
        """Return the same with what earlier matrices say, and with the rounds that `pairs` has found."""
        own = replace(self, prior=prior)
        own._found.update(self._found)
        return own

    def pairs(self, *, across_controls: bool = False) -> UsedRounds:
        """Return the rounds to compare, and the blocks that are left out of them."""
        if (found := self._found.get(across_controls)) is None:
            options = {"across_controls": across_controls, "is_over": self.is_complete}
            pairs, excluded = paired_rounds(self.its.joined, self.own, builds=self.builds, **options)
            found = self._found[across_controls] = tuple(pairs), tuple(excluded)
        return found

    def with_confidence(self, means: PairedMeans, confidence: float) -> Speedup:
        """Return the comparison over rounds, with an interval of a confidence.

        The past moderates no matrix that grows: it may change itself, and with it what was seen at a look.
        """
        spec = self.matrix.spec
        prior = self.prior if isinstance(spec.rounds, int) else None
        return speedup_of(means, margin=spec.equivalence_margin, confidence=confidence, prior=prior)

    def judge(self, *, across_controls: bool = False) -> tuple[Speedup, IntervalBasis, list[RoundPair]]:
        """Return the comparison, the rule of its interval, and the rounds that it is made of."""
        pairs, excluded = self.pairs(across_controls=across_controls)
        rounds = self.matrix.spec.rounds
        # Reruns were not planned as one, and looks were at another baseline.
        as_planned = len(self.matrices) == 1 and (self.is_planned or isinstance(rounds, int))
        result, basis = compare_by_basis(
            partial(self.with_confidence, paired_means(pairs, excluded)),
            rounds if as_planned else len(pairs),
            self.looks,
            is_complete=self.is_complete and as_planned,
        )
        if not self.is_planned:
            blocks = [{*map(block_key, side)} for side in self.sides]
            if all(blocks) and blocks[0].isdisjoint(blocks[1]):
                result = replace(result, reason=NEVER_TOGETHER)
        return result, basis, used_pairs(pairs, result.excluded)

    def means(self, *, across_controls: bool = False) -> PairedMeans:
        """Return what the comparison says without its interval."""
        return paired_means(*self.pairs(across_controls=across_controls))

    def view(
        self, device: Device, *, across_controls: bool = False, aa_alarms: AlarmShare | None = None
    ) -> SpeedupView:
        """Return the comparison on its device; with the alarms of its A/A pairs where it is one."""
        result, basis, pairs = self.judge(across_controls=across_controls)
        last_us = max((m.measured_us for side in self.sides for m in side), default=None)
        facts = device.facts
        is_aa = self.candidate.replica > 1
        return SpeedupView.of(
            result,
            self.matrix,
            self.candidate,
            self.setups.setup(self.candidate),
            harness=self.candidate.harness,
            baseline_cell_id=self.baseline.cell_id,
            device_label=device.label,
            device_model=facts.device_model if facts else None,
            soc=facts.soc if facts else None,
            baseline=self.baseline.label,
            candidate=self.candidate.label,
            baseline_setup=self.setups.setup(self.baseline),
            speedup=result.ratio,
            speedup_of_all=result.ratio_of_all,
            excluded=len(result.excluded),
            left_out=result.exclusion_counts,
            distance=pair_distance([pair.minutes_apart for pair in pairs]),
            interval=basis,
            margin=self.matrix.spec.equivalence_margin,
            matrices=self.matrices,
            aa=is_aa,
            aa_alarms=aa_alarms if is_aa else None,
            virtual=facts.virtual if facts else False,
            metrics=self._compare_metrics(pairs),
            measured_until=self.matrix.created_at if last_us is None else from_microseconds(last_us),
            **self._minima(pairs),
            **self.setups.clocks(self.baseline, self.candidate),
        )

    def _compare_metrics(self, pairs: Sequence[RoundPair]) -> tuple[MetricComparison, ...]:
        if not self.matrix.spec.metrics:
            return ()
        return tuple(
            compare_metrics(
                self.matrix.spec.metrics,
                [block_of(pair) for pair in pairs],
                baseline=self.metrics.get(self.baseline.cell_id, {}),
                candidate=self.metrics.get(self.candidate.cell_id, {}),
            )
        )

    def _minima(self, pairs: Sequence[RoundPair]) -> dict[str, float | None]:
        """Return the shortest iteration of both sides over the rounds that count."""
        blocks = {block_of(pair) for pair in pairs}
        sides = {"baseline_min_ns": (*self.sides[0], *self.duplicates), "candidate_min_ns": self.sides[1]}
        return {
            name: min(
                (m.min_ns for m in side if block_key(m) in blocks and m.min_ns is not None),
                default=None,
            )
            for name, side in sides.items()
        }
