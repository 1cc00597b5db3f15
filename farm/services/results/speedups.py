"""Compute speedups per device, from the accepted measurements of a matrix."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, FactsId, MatrixId, SeriesId
from farm.core.base.microseconds import from_microseconds
from farm.core.errors import NotFound
from farm.core.results.history.chosen_labels import PairChoice
from farm.core.results.looks.basis import IntervalBasis, compare_by_basis, rounds_of_last_look
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
from farm.database.known_at import as_known_at
from farm.services.matrices.cell_setups import CellSetups, cell_setups
from farm.services.matrices.views import first_page_size
from farm.services.results.history.chosen_cells import ChosenCell, candidate_filter, chosen_cells
from farm.services.results.past_pairs import PastPairKey, aa_alarms, variance_priors
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.jobs.counts import incomplete_cells
from farm.store.matrices import matrices
from farm.store.matrices.candidates import page_of_candidates
from farm.store.matrices.matrices import CellRow, Matrix, get_matrix
from farm.store.results import measurements
from farm.store.results.looks import looks_of_cells
from farm.store.results.measurements import Measurement
from farm.store.results.past_pairs import duplicates_of
from farm.store.results.provenance import builds_of_each
from farm.wire.documents.results.speedups import MAX_SPEEDUPS_PAGE, SpeedupView

#: For queries of the rows behind another one.
AFTER_HINT = "`after` is the cell_id of the last comparison on the page before"
#: Of a pair that was not planned.
NEVER_TOGETHER = "never started in one block, and only starts of one block are compared"
#: The most comparisons of one page.
PAGE = MAX_SPEEDUPS_PAGE
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


def list_speedups(
    connection: Connection,
    matrix_id: MatrixId,
    *,
    device: str | None = None,
    model: str | None = None,
    across_controls: bool = False,
    choice: PairChoice | None = None,
    at: datetime | None = None,
    after: CellId | None = None,
    limit: int = PAGE,
) -> list[SpeedupView]:
    """Return a page of the comparisons of a matrix, by the places of their candidates; none at the end.

    Args:
        device: only on this device: its id, its label, or the beginning of either.
        model: only of this model.
        across_controls: whether rounds count in which the phone was controlled in different degrees.
        choice: only these pairs, which the matrix may not have planned.
        at: as known then: by what was measured, and not retracted or parsed again later.
        after: only those behind the one of this candidate.
        limit: so many at most, and fewer where a matrix has many rounds.

    Raises:
        NotFound: there is no such matrix, or was none then, or no such device, model, baseline or candidate.
        InvalidInput: several devices begin so, or several baselines are named so.
    """
    among = candidate_filter(connection, device=device, model=model)
    matrix = get_matrix(connection, matrix_id, at=at)
    as_known_at(connection, at)
    behind = -1 if after is None else _candidate(connection, matrix_id, after).index
    size = min(limit, first_page_size(matrix))
    if choice is None:
        candidates = page_of_candidates(connection, matrix_id, among, after=behind, limit=size)
        compared = comparisons_of(connection, matrix, candidates)
    else:
        chosen = chosen_cells(connection, matrix_id, among, choice, after=behind, limit=size)
        compared = chosen_comparisons(connection, matrix, chosen)
    compared = with_priors(connection, compared)
    return speedup_views(connection, compared, across_controls=across_controls)


def speedup_views(
    connection: Connection, compared: Iterable[SpeedupInputs], *, across_controls: bool = False
) -> list[SpeedupView]:
    """Return comparisons, those of A/A pairs with the alarms of their device."""
    inputs = list(compared)
    device_by_id = devices.devices_by_id(connection, {item.candidate.device_id for item in inputs})
    alarms = aa_alarms(connection, {own.candidate.device_id for own in inputs if own.candidate.replica > 1})
    return [
        item.view(
            device_by_id[item.candidate.device_id],
            across_controls=across_controls,
            aa_alarms=alarms.get(item.candidate.device_id),
        )
        for item in inputs
    ]


def with_priors(connection: Connection, compared: Sequence[SpeedupInputs]) -> list[SpeedupInputs]:
    """Return comparisons with what the matrices before theirs say of the variance of each pair."""
    priors = variance_priors(
        connection, {(item.key, item.matrices[-1]) for item in compared if item.key is not None}
    )
    return [
        item if item.key is None else item.with_prior(priors.get((item.key, item.matrices[-1])))
        for item in compared
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPair:
    """A candidate, its planned or chosen baseline, and the matrix of both."""

    matrix: Matrix
    baseline: CellRow
    candidate: CellRow
    #: Whether the matrix planned this pair.
    is_planned: bool = True


def comparisons_of(
    connection: Connection, matrix: Matrix, candidates: Sequence[CellRow], *, all_rounds: bool = False
) -> list[SpeedupInputs]:
    """Return the candidates of a matrix with their baselines; those without one are left out.

    Of a matrix that grows, rounds behind the last look are left out, too, unless all of them are asked for.
    """
    chosen = [ChosenCell(cell=cell, is_planned=True) for cell in candidates]
    return chosen_comparisons(connection, matrix, chosen, all_rounds=all_rounds)


def chosen_comparisons(
    connection: Connection, matrix: Matrix, chosen: Sequence[ChosenCell], *, all_rounds: bool = False
) -> list[SpeedupInputs]:
    """Return the comparisons of cells with the baselines that were chosen for them."""
    with_one = [(own, own.cell.baseline_index) for own in chosen if own.cell.baseline_index is not None]
    wanted = {index for _, index in with_one}
    baselines = {cell.index: cell for cell in matrices.cells_at(connection, matrix.matrix_id, wanted)}
    pairs = [
        CellPair(matrix=matrix, baseline=baselines[index], candidate=own.cell, is_planned=own.is_planned)
        for own, index in with_one
    ]
    return compared_pairs(connection, pairs, all_rounds=all_rounds)


def compared_pairs(
    connection: Connection, pairs: Sequence[CellPair], *, all_rounds: bool = False
) -> list[SpeedupInputs]:
    """Return what was measured of pairs, of many matrices by as many statements as of one."""
    if not pairs:
        return []
    cells = [cell for pair in pairs for cell in (pair.baseline, pair.candidate)]
    baselines = {_place(pair.baseline) for pair in pairs if pair.matrix.spec.aa}
    duplicates = duplicates_of(connection, baselines)
    cell_ids = {cell.cell_id for cell in cells} | {cell_id for own in duplicates.values() for cell_id in own}
    measured: defaultdict[CellId, list[Measurement]] = defaultdict(list)
    for measurement in measurements.accepted_of_cells(connection, cell_ids):
        measured[measurement.cell_id].append(measurement)
    snapshots: defaultdict[tuple[MatrixId, DeviceId, bool], set[FactsId | None]] = defaultdict(set)
    for pair in pairs:
        for cell in (pair.baseline, pair.candidate):
            snapshots[_sample(pair)] |= {value.facts_id for value in measured.get(cell.cell_id, ())}
    builds = dict(zip(snapshots, builds_of_each(connection, snapshots.values()), strict=True))
    setups = cell_setups(connection, cells)
    with_metrics = {
        cell.cell_id for pair in pairs if pair.matrix.spec.metrics for cell in (pair.baseline, pair.candidate)
    }
    metrics = measurements.metrics_of_cells(connection, with_metrics) if with_metrics else {}
    # The looks of a matrix that grows were at the baselines that it planned.
    growing = [
        pair.candidate.cell_id
        for pair in pairs
        if pair.is_planned and not isinstance(pair.matrix.spec.rounds, int)
    ]
    looks = looks_of_cells(connection, growing) if growing else {}
    incomplete = incomplete_cells(connection, cell_ids)
    shared: dict[tuple[CellId, bool, int], SharedBaseline[Measurement]] = {}

    def until(last: int, *of_cells: CellId) -> list[Measurement]:
        return [value for cell_id in of_cells for value in measured.get(cell_id, ()) if value.round <= last]

    def inputs_of(pair: CellPair) -> SpeedupInputs:
        both = (pair.baseline.cell_id, pair.candidate.cell_id)
        own_looks = looks.get(pair.candidate.cell_id, ())
        last_look = rounds_of_last_look(own_looks) if pair.is_planned and not all_rounds else None
        last = last_look or pair.matrix.spec.round_range[1]
        key = pair.baseline.cell_id, pair.candidate.replica == 1, last
        if key not in shared:
            joining = duplicates.get(_place(pair.baseline), ()) if pair.candidate.replica == 1 else ()
            shared[key] = SharedBaseline(starts=until(last, both[0]), duplicates=until(last, *joining))
        return SpeedupInputs(
            matrix=pair.matrix,
            baseline=pair.baseline,
            candidate=pair.candidate,
            its=shared[key],
            own=until(last, both[1]),
            matrices=(pair.matrix.matrix_id,),
            builds=builds[_sample(pair)],
            looks=own_looks,
            is_complete=incomplete.isdisjoint(both),
            setups=setups,
            metrics={cell_id: metrics[cell_id] for cell_id in both if cell_id in metrics},
            is_planned=pair.is_planned,
        )

    return [inputs_of(pair) for pair in pairs]


def _place(cell: CellRow) -> tuple[MatrixId, int]:
    return cell.matrix_id, cell.index


def _sample(pair: CellPair) -> tuple[MatrixId, DeviceId, bool]:
    """Return what the builds of a pair are numbered within."""
    return pair.matrix.matrix_id, pair.candidate.device_id, pair.is_planned


def _candidate(connection: Connection, matrix_id: MatrixId, cell_id: CellId) -> CellRow:
    cell = matrices.find_cell(connection, cell_id)
    if cell is None or cell.matrix_id != matrix_id:
        raise NotFound(f"matrix {matrix_id} has no cell {cell_id}", hint=AFTER_HINT)
    return cell
