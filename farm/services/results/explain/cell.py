"""Everything that the comparison of one cell with its baseline rests on."""

from collections.abc import Mapping, Sequence

from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, FactsId, JobId
from farm.core.devices.condition import Gates
from farm.core.errors import NotFound
from farm.core.results.pairing import Exclusion, RoundPair, paired_rounds
from farm.core.results.speedup import CONFIDENCE, speedup
from farm.services.devices.software_updates import builds_of
from farm.services.results.explain.side import explain_device, explain_side
from farm.services.results.speedups import comparisons_of, facts_of_devices
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CellRow, Matrix
from farm.store.results import provenance
from farm.store.results.provenance import MeasuredRun
from farm.wire.documents.matrices.matrices import SpeedupView
from farm.wire.documents.results.explain import CellExplanation, ExcludedRound, RoundView

_GATES = TypeAdapter(Gates)
#: By job, its place in its block, from 1, and how many ran there.
PositionByJob = Mapping[JobId, tuple[int, int]]


def explain_cell(connection: Connection, cell_id: CellId) -> CellExplanation:
    """A cell, its baseline, and every round of the two.

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
    baseline = next((each for each in cells if each.index == cell.baseline_index), None)
    runs = provenance.runs_of_cells(connection, [cell.cell_id, *([baseline.cell_id] if baseline else [])])
    own = [run for run in runs if run.cell_id == cell.cell_id]
    its = [run for run in runs if run.cell_id != cell.cell_id]
    builds = builds_of(connection, {run.facts_id for run in runs})
    pairs, left_out = used_rounds(matrix, its, own, builds) if baseline else ([], [])
    view, aa = _views(connection, matrix, cell, baseline, cells)
    return CellExplanation(
        matrix_id=matrix.matrix_id,
        matrix=matrix.name,
        seed=matrix.seed,
        gates=_GATES.validate_python(matrix.spec["gates"]),
        margin=matrix.spec["equivalence_margin"],
        noise_limit=matrix.spec["noise_limit"],
        device=explain_device(connection, cell, runs),
        speedup=view,
        method=tuple(_method(view, matrix)),
        rounds=_rounds(pairs, its, own, positions_in_blocks(connection, cell)),
        left_out=tuple(
            ExcludedRound(round=each.round, repeat=each.repeat, reason=each.reason) for each in left_out
        ),
        aa=aa,
        baseline=explain_side(connection, baseline, its) if baseline else None,
        candidate=explain_side(connection, cell, own),
        compared_to_it=tuple(
            each.cell_id
            for each in cells
            if each.baseline_index == cell.index and each.device_id == cell.device_id
        ),
    )


def used_rounds(
    matrix: Matrix,
    baseline: Sequence[MeasuredRun],
    candidate: Sequence[MeasuredRun],
    builds: Mapping[FactsId, int],
) -> tuple[list[RoundPair], Sequence[Exclusion]]:
    """The rounds that a speedup is made of, and the blocks that it leaves out."""
    pairs, excluded = paired_rounds(baseline, candidate, builds=builds)
    found = speedup(pairs, excluded=excluded, margin=matrix.spec["equivalence_margin"])
    unusable = {(each.round, each.repeat) for each in found.excluded}
    return [pair for pair in pairs if (pair.round, _repeat(pair)) not in unusable], found.excluded


def positions_in_blocks(connection: Connection, cell: CellRow) -> PositionByJob:
    """In which order the jobs of the cell's device ran, block by block."""
    blocks = provenance.fences_by_block(connection, cell.matrix_id, cell.device_id)
    return {
        job_id: (place, len(block))
        for block in blocks.values()
        for place, (_, job_id) in enumerate(block, start=1)
    }


def _repeat(pair: RoundPair) -> int:
    return pair.candidate.repeat if pair.candidate else 0


def _rounds(
    pairs: Sequence[RoundPair],
    baseline: Sequence[MeasuredRun],
    candidate: Sequence[MeasuredRun],
    places: PositionByJob,
) -> tuple[RoundView, ...]:
    sides = [{(run.round, run.repeat): run for run in side} for side in (baseline, candidate)]
    keys = [(pair.round, _repeat(pair)) for pair in pairs]
    return tuple(_round(sides[0][key], sides[1][key], places) for key in keys)


def _round(baseline: MeasuredRun, candidate: MeasuredRun, places: PositionByJob) -> RoundView:
    baseline_place, size = places[baseline.job_id]
    candidate_place, _ = places[candidate.job_id]
    return RoundView(
        round=candidate.round,
        repeat=candidate.repeat,
        baseline_ns=baseline.value_ns,
        candidate_ns=candidate.value_ns,
        ratio=baseline.value_ns / candidate.value_ns,
        baseline_job=baseline.job_id,
        candidate_job=candidate.job_id,
        baseline_attempt=baseline.attempt_id,
        candidate_attempt=candidate.attempt_id,
        baseline_place=baseline_place,
        candidate_place=candidate_place,
        block_size=size,
    )


def _views(
    connection: Connection, matrix: Matrix, cell: CellRow, baseline: CellRow | None, cells: Sequence[CellRow]
) -> tuple[SpeedupView | None, SpeedupView | None]:
    """The cell's own comparison, and the one of its baseline with its twin."""
    anchor = baseline or cell
    twin = next((each for each in cells if each.replica > 1 and each.baseline_index == anchor.index), None)
    facts = facts_of_devices(connection).get(cell.device_id)
    wanted = [cell] if twin is None or twin == cell else [cell, twin]
    views = [each.view(facts) for each in comparisons_of(connection, matrix, wanted)]
    own = next((view for view in views if view.cell_id == cell.cell_id), None)
    return own, next((view for view in views if twin is not None and view.cell_id == twin.cell_id), None)


def _method(view: SpeedupView | None, matrix: Matrix) -> list[str]:
    if view is None or view.speedup is None:
        return []
    said = [
        f"speedup: geometric mean of {view.rounds} ratios, baseline over candidate, one for each round:"
        " both sides from one block, one process start each"
    ]
    if view.ci_low is not None:
        said.append(
            f"interval: {CONFIDENCE:.0%}, Student's t with {view.rounds - 1} degrees of freedom on the"
            " logarithms of the ratios"
        )
    margin = matrix.spec["equivalence_margin"]
    said.append(
        f"verdict: {view.verdict}, because {view.reason}; `same` is an interval within {margin:.1%} of 1"
    )
    return said
