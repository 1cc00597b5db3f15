"""Everything that a cell's comparison with its baseline rests on, round by round."""

from collections.abc import Mapping, Sequence
from typing import assert_never

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId
from farm.core.errors import NotFound
from farm.core.results.looks.basis import IntervalBasis, IntervalKind
from farm.core.results.pairing import RoundPair, block_key, block_of
from farm.core.results.statistics.interval import CONFIDENCE
from farm.core.results.statistics.verdict import verdict_text
from farm.core.runs.measurement import COUNTED, DISTURBED
from farm.phone.condition.run_trace import run_trace
from farm.services.results.explanations.sides import (
    OrderByAttempt,
    PositionByJob,
    compared_cells,
    evidence_of,
    explain_device,
    explain_sides,
    positions_in_blocks,
)
from farm.services.results.speedups.listing import speedup_views
from farm.store.jobs.run_order import orders_of
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CellRow, Matrix
from farm.store.results import provenance
from farm.store.results.provenance import MeasuredRun
from farm.wire.documents.results.explain import CellExplanation, DisturbedRun, RoundView
from farm.wire.documents.results.speedups import SpeedupView


def explain_cell(connection: Connection, cell_id: CellId) -> CellExplanation:
    """Explain a cell: its baseline, and every round of the two.

    Raises:
        NotFound: there is no such cell.
    """
    cell = matrices.find_cell(connection, cell_id)
    if cell is None:
        raise NotFound(
            f"there is no cell {cell_id}", hint="`farm speedups` and `farm matrix show ID` number the cells"
        )
    matrix = matrices.get_matrix(connection, cell.matrix_id)
    cells = matrices.list_cells(connection, matrix.matrix_id, device_id=cell.device_id)
    baseline = next((row for row in cells if row.index == cell.baseline_index), None)
    # The one of its baseline with its replica, too, where there is one.
    replica = _replica(baseline or cell, cells)
    compared = compared_cells(connection, matrix, {row.cell_id: row for row in (cell, replica) if row})
    inputs = compared.get(cell.cell_id)
    result, _, pairs = inputs.judge() if inputs else (None, None, [])
    joining = {measurement.cell_id for measurement in inputs.duplicates} if inputs else set()
    of_baseline = [baseline.cell_id] if baseline else []
    runs = provenance.runs_of_cells(connection, [cell.cell_id, *of_baseline, *joining])
    orders = orders_of(connection, [run.attempt_id for run in runs])
    own = [run for run in runs if run.cell_id == cell.cell_id]
    its = [run for run in runs if run.cell_id in of_baseline]
    # Where the baseline's own run does not count, that of its duplicate stands for it.
    by_use = sorted(
        (run for run in runs if run.cell_id != cell.cell_id),
        key=lambda run: (run.quality in COUNTED, run.cell_id in of_baseline),
    )
    views = {view.cell_id: view for view in speedup_views(connection, compared.values())}
    view = views.get(cell.cell_id)
    sides = [(row, side) for row, side in ((cell, own), (baseline, its)) if row is not None]
    explained = explain_sides(connection, sides, orders)
    return CellExplanation.of(
        matrix,
        matrix.spec,
        matrix=matrix.name,
        margin=matrix.spec.equivalence_margin,
        device=explain_device(connection, cell, [*its, *own]),
        speedup=view,
        method=tuple(_method(view, matrix)),
        rounds=_rounds(pairs, by_use, own, positions_in_blocks(connection, cell), orders),
        left_out=result.excluded if result else (),
        disturbed=_disturbed(connection, runs, {row.cell_id: row.label for row in cells}),
        looks=tuple(inputs.looks) if inputs else (),
        aa=views.get(replica.cell_id) if replica else None,
        baseline=explained[1] if baseline else None,
        candidate=explained[0],
        compared_to_it=tuple(
            row.cell_id
            for row in cells
            if row.baseline_index == cell.index and row.device_id == cell.device_id
        ),
    )


def _disturbed(
    connection: Connection, runs: Sequence[MeasuredRun], labels: Mapping[CellId, str]
) -> DisturbedRun | None:
    """Return the newest run in which the device slowed itself down, with its samples."""
    run = next((run for run in reversed(runs) if run.quality in DISTURBED), None)
    if run is None:
        return None
    evidence = evidence_of(connection, [run.attempt_id]).get(run.attempt_id)
    return DisturbedRun.of(
        run, label=labels[run.cell_id], trace=run_trace(evidence.trace) if evidence else None
    )


def _replica(anchor: CellRow, cells: Sequence[CellRow]) -> CellRow | None:
    return next((row for row in cells if row.replica > 1 and row.baseline_index == anchor.index), None)


def _rounds(
    pairs: Sequence[RoundPair],
    baseline: Sequence[MeasuredRun],
    candidate: Sequence[MeasuredRun],
    places: PositionByJob,
    orders: OrderByAttempt,
) -> tuple[RoundView, ...]:
    sides = [{block_key(run): run for run in side} for side in (baseline, candidate)]
    return tuple(
        _round(pair, sides[0][block_of(pair)], sides[1][block_of(pair)], places, orders) for pair in pairs
    )


def _round(
    pair: RoundPair,
    baseline: MeasuredRun,
    candidate: MeasuredRun,
    places: PositionByJob,
    orders: OrderByAttempt,
) -> RoundView:
    # With its duplicates, where it has any.
    baseline_ns = pair.baseline.value_ns if pair.baseline else baseline.value_ns
    baseline_place, size = places[baseline.job_id]
    candidate_place, _ = places[candidate.job_id]
    return RoundView.of(
        candidate,
        baseline_ns=baseline_ns,
        candidate_ns=candidate.value_ns,
        ratio=baseline_ns / candidate.value_ns,
        minutes_apart=pair.minutes_apart,
        restarted=pair.restarted,
        baseline_job=baseline.job_id,
        candidate_job=candidate.job_id,
        baseline_attempt=baseline.attempt_id,
        candidate_attempt=candidate.attempt_id,
        baseline_place=baseline_place,
        candidate_place=candidate_place,
        block_size=size,
        baseline_order=orders.get(baseline.attempt_id),
        candidate_order=orders.get(candidate.attempt_id),
    )


def _method(view: SpeedupView | None, matrix: Matrix) -> list[str]:
    if view is None or view.speedup is None:
        return []
    unit = "round" if view.pairs == view.rounds else "block"
    sentences = [
        f"speedup: geometric mean of {view.pairs} ratios, baseline over candidate, one for each {unit}:"
        " both sides from one block, one process start each"
    ]
    if view.ci_low is not None:
        sentences.append(
            f"interval: {_basis_text(view.interval)}, Student's t on the logarithms of the ratios, widened by"
            f" the step of the clock{_moderation(view)}"
        )
    verdict = verdict_text(view.verdict, margin=matrix.spec.equivalence_margin)
    sentences.append(f"verdict: {verdict}, because {view.reason}")
    return sentences


def _moderation(view: SpeedupView) -> str:
    if not view.moderated_by:
        return ""
    return f"; the same pair in {view.moderated_by} earlier matrices moderates its variance (Smyth 2004)"


def _basis_text(basis: IntervalBasis) -> str:
    confidence = CONFIDENCE if basis.confidence is None else basis.confidence
    match basis.kind:
        case IntervalKind.PLANNED:
            return f"{confidence:.0%}"
        case IntervalKind.LOOK:
            looks = f"look {basis.look} of at most {basis.looks}"
            return f"{confidence:.2%} at {looks}, which is {CONFIDENCE:.0%} over all of them"
        case IntervalKind.ANYTIME:
            why = "as planned rounds are missing"
            return f"{confidence:.2%}, which holds at any number of rounds, {why}"
        case _:
            assert_never(basis.kind)
