"""Read what was measured of pairs of cells, of many matrices at once."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, FactsId, MatrixId
from farm.core.results.looks.basis import rounds_of_last_look
from farm.core.results.pairing import SharedBaseline
from farm.services.matrices.cell_setups import cell_setups
from farm.services.results.history.chosen_cells import ChosenCell
from farm.services.results.past_pairs import variance_priors
from farm.services.results.speedups.inputs import SpeedupInputs
from farm.store.jobs.counts import incomplete_cells
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CellRow, Matrix
from farm.store.results import measurements
from farm.store.results.looks import looks_of_cells
from farm.store.results.measurements import Measurement
from farm.store.results.past_pairs import duplicates_of
from farm.store.results.provenance import builds_of_each


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


def with_priors(connection: Connection, compared: Sequence[SpeedupInputs]) -> list[SpeedupInputs]:
    """Return comparisons with what the matrices before theirs say of the variance of each pair."""
    priors = variance_priors(
        connection, {(item.key, item.matrices[-1]) for item in compared if item.key is not None}
    )
    return [
        item if item.key is None else item.with_prior(priors.get((item.key, item.matrices[-1])))
        for item in compared
    ]
