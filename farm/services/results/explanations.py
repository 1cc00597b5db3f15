"""Everything that a number rests on: a cell's comparison with its baseline, or one job, try by try."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, JobId
from farm.core.base.setting_values import non_default_settings
from farm.core.devices.condition import ConditionPair, condition_ranges
from farm.core.errors import NotFound
from farm.core.jobs.job import Job
from farm.core.jobs.run_order import RunOrder
from farm.core.results.looks.basis import IntervalBasis, IntervalKind
from farm.core.results.pairing import RoundPair, block_key, block_of
from farm.core.results.statistics.interval import CONFIDENCE
from farm.core.results.statistics.verdict import verdict_text
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import COUNTED, DISTURBED
from farm.phone.condition.run_trace import run_trace
from farm.services.files.harnesses import adapter_of, default_of_flags
from farm.services.results.speedups import SpeedupInputs, comparisons_of, speedup_views, with_priors
from farm.store.devices import devices
from farm.store.files import programs
from farm.store.files import variants as variant_store
from farm.store.jobs import attempts, jobs
from farm.store.jobs import counts as job_counts
from farm.store.jobs.run_order import orders_of
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CellRow, Matrix
from farm.store.results import provenance
from farm.store.results.looks import looks_of_cells
from farm.store.results.provenance import MeasuredRun
from farm.wire.agents.plausibility import read_report
from farm.wire.documents.matrices.matrices import SpeedupView
from farm.wire.documents.results.explain import (
    AttemptSummary,
    CellExplanation,
    DeviceBuild,
    DisturbedRun,
    ExplainedDevice,
    JobDetail,
    JobExplanation,
    MeasurementView,
    PlacementView,
    ProgramFacts,
    RoundView,
    SideView,
)
from farm.wire.storable_text import make_storable

#: By job, its place in its block, from 1, and how many ran there.
PositionByJob = Mapping[JobId, tuple[int, int]]
OrderByAttempt = Mapping[AttemptId, RunOrder]


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
    inputs = _comparison(connection, matrix, cell)
    result, pairs = inputs.compare() if inputs else (None, [])
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
    view, aa = _views(connection, matrix, cell, baseline, cells)
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
        looks=tuple(looks_of_cells(connection, [cell.cell_id]).get(cell.cell_id, ())),
        aa=aa,
        baseline=explain_side(connection, baseline, its, orders) if baseline else None,
        candidate=explain_side(connection, cell, own, orders),
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


def _comparison(connection: Connection, matrix: Matrix, cell: CellRow) -> SpeedupInputs | None:
    """Return what a cell's speedup is made of; None for a cell without a baseline."""
    return next(iter(with_priors(connection, comparisons_of(connection, matrix, [cell]))), None)


def positions_in_blocks(connection: Connection, cell: CellRow) -> PositionByJob:
    """Return the position of each job of the cell's device in its block, and the block's size."""
    blocks = provenance.fences_by_block(connection, cell.matrix_id, cell.device_id)
    return {
        job_id: (place, len(block))
        for block in blocks.values()
        for place, (_, job_id) in enumerate(block, start=1)
    }


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


def _views(
    connection: Connection, matrix: Matrix, cell: CellRow, baseline: CellRow | None, cells: Sequence[CellRow]
) -> tuple[SpeedupView | None, SpeedupView | None]:
    """Return the cell's own comparison, and the one of its baseline with its replica."""
    anchor = baseline or cell
    replica = next((row for row in cells if row.replica > 1 and row.baseline_index == anchor.index), None)
    wanted = [cell] if replica is None or replica == cell else [cell, replica]
    compared = with_priors(connection, comparisons_of(connection, matrix, wanted))
    views = speedup_views(connection, compared)
    own = next((view for view in views if view.cell_id == cell.cell_id), None)
    return own, next(
        (view for view in views if replica is not None and view.cell_id == replica.cell_id), None
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


def explain_side(
    connection: Connection, cell: CellRow, runs: Sequence[MeasuredRun], orders: OrderByAttempt
) -> SideView:
    """Describe a cell with some of its runs, or all."""
    program = programs.get_program(connection, cell.program_id)
    defaults = default_of_flags(connection, program.harness)
    evidence = evidence_of(connection, [run.attempt_id for run in runs])
    around: list[ConditionPair] = [(report.before, report.after) for report in evidence.values()]
    return SideView.of(
        cell,
        variant=cell.variant_name,
        manifest=None
        if cell.variant_id is None
        else variant_store.get_variant(connection, cell.variant_id).manifest,
        program=ProgramFacts.of(
            program,
            program.bundle,
            files=len(program.bundle.files),
            clock_covers=adapter_of(program).clock_covers,
        ),
        placements=_placements(runs),
        changed_settings=non_default_settings(cell.settings, defaults),
        jobs_by_outcome=job_counts.tally_of_cell(connection, cell.cell_id).jobs_by_outcome,
        runs_by_quality=dict(Counter(str(run.quality) for run in runs)),
        quality_reasons=dict(Counter(reason for run in runs for reason in run.quality_reasons)),
        parser_versions=tuple(sorted({run.parser_version for run in runs})),
        conditions=condition_ranges(around),
        runs_without_evidence=len(runs) - len(evidence),
        runs=tuple(MeasurementView.of(run, order=orders.get(run.attempt_id)) for run in runs),
    )


def explain_device(connection: Connection, cell: CellRow, runs: Iterable[MeasuredRun]) -> ExplainedDevice:
    """Describe the phone as it was for each of the runs; as it is now where there are none."""
    device = devices.get_device(connection, cell.device_id)
    count_by_facts = Counter(run.facts_id for run in runs if run.facts_id is not None)
    facts = provenance.facts_by_id(connection, list(count_by_facts))
    builds = tuple(
        DeviceBuild(facts=facts[facts_id], runs=count) for facts_id, count in count_by_facts.items()
    )
    if not builds and device.facts is not None:
        builds = (DeviceBuild(facts=device.facts, runs=0),)
    return ExplainedDevice(device_id=device.device_id, label=device.label, host=device.host_id, builds=builds)


def evidence_of(connection: Connection, attempt_ids: Sequence[AttemptId]) -> dict[AttemptId, Evidence]:
    """Return the evidence that settled attempts; one whose evidence expired is missing."""
    reports = provenance.counted_reports(connection, attempt_ids)
    return {attempt_id: read_report(make_storable(body)) for attempt_id, body in reports.items()}


def _placements(runs: Sequence[MeasuredRun]) -> tuple[PlacementView, ...]:
    proofs: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for run in runs:
        proofs[run.actual_backend, run.accelerator].append(run.proof)
    return tuple(
        PlacementView(
            actual_backend=backend,
            accelerator=accelerator,
            runs=len(own),
            proof=own[-1],
            proofs=len(set(own)),
        )
        for (backend, accelerator), own in proofs.items()
    )


def job_detail(connection: Connection, job_id: JobId) -> JobDetail:
    """Return a job with its attempts and its number.

    Raises:
        NotFound: there is no such job.
    """
    job = _get_job(connection, job_id)
    cell = None if job.cell_id is None else matrices.get_cell(connection, job.cell_id)
    matrix = None if job.matrix_id is None else matrices.get_matrix(connection, job.matrix_id)
    tried = attempts.attempts_of_job(connection, job_id)
    run = provenance.run_of_job(connection, job_id)
    orders = {} if run is None else orders_of(connection, [run.attempt_id])
    return JobDetail.of(
        job,
        device_label=devices.get_device(connection, job.device_id).label,
        label="health check" if cell is None else cell.label,
        attempts=tuple(attempt.attempt_id for attempt in tried),
        matrix=None if matrix is None else matrix.name,
        attempt_list=tuple(AttemptSummary.of(attempt) for attempt in tried),
        run=None if run is None else MeasurementView.of(run, order=orders.get(run.attempt_id)),
    )


def explain_job(connection: Connection, job_id: JobId) -> JobExplanation:
    """Explain a benchmark's number by all that it rests on.

    Raises:
        NotFound: there is no such job, or it is a health check, which has no number.
    """
    detail = job_detail(connection, job_id)
    job = _get_job(connection, job_id)
    if job.cell_id is None or job.matrix_id is None:
        hint = f"`farm job show {job_id}` shows how it went"
        raise NotFound(f"job {job_id} is a health check: it has no number", hint=hint)
    cell = matrices.get_cell(connection, job.cell_id)
    matrix = matrices.get_matrix(connection, job.matrix_id)
    run = provenance.run_of_job(connection, job_id)
    runs = [] if run is None else [run]
    evidence = next(iter(evidence_of(connection, [run.attempt_id for run in runs]).values()), None)
    place, size = positions_in_blocks(connection, cell).get(job_id, (None, None))
    left_out = _left_out_reason(connection, matrix, cell, run)
    return JobExplanation.of(
        matrix.spec,
        job=detail,
        device=explain_device(connection, cell, runs),
        side=explain_side(connection, cell, runs, orders_of(connection, [run.attempt_id for run in runs])),
        before=evidence.before if evidence else None,
        after=evidence.after if evidence else None,
        argv=evidence.argv if evidence else (),
        pushed_bytes=evidence.pushed_bytes if evidence else None,
        waited_s=evidence.waited_s if evidence else None,
        trace=run_trace(evidence.trace) if evidence else None,
        place=place,
        block_size=size,
        use=_use(connection, cell, run, left_out),
        left_out=left_out is not None,
        cells=_comparisons(connection, cell),
    )


def _get_job(connection: Connection, job_id: JobId) -> Job:
    job = jobs.find_job(connection, job_id)
    if job is None:
        raise NotFound(f"there is no job {job_id}", hint="`farm matrix jobs ID` lists a matrix's jobs")
    return job


def _comparisons(connection: Connection, cell: CellRow) -> tuple[CellId, ...]:
    """Return the cells whose speedups can use the job's number."""
    if cell.baseline_index is not None:
        return (cell.cell_id,)
    cells = matrices.list_cells(connection, cell.matrix_id, device_id=cell.device_id)
    return tuple(other.cell_id for other in cells if other.baseline_index == cell.index)


def _use(connection: Connection, cell: CellRow, run: MeasuredRun | None, left_out: str | None) -> str | None:
    """Describe the use of the number in the comparison of its own cell."""
    if run is None:
        return None
    if cell.baseline_index is None:
        if not _comparisons(connection, cell):
            return "in no comparison: the matrix compares nothing to it"
        is_valid = run.quality in COUNTED
        return "as a baseline's, in the rounds of those that are compared to it" if is_valid else None
    return "it counts, as one round" if left_out is None else f"left out: {left_out}"


def _left_out_reason(
    connection: Connection, matrix: Matrix, cell: CellRow, run: MeasuredRun | None
) -> str | None:
    """Return why the number is left out of the comparison of its own cell; None where it is not."""
    inputs = None if run is None or cell.baseline_index is None else _comparison(connection, matrix, cell)
    if run is None or inputs is None:
        return None
    left_out = inputs.compare()[0].excluded
    return next((skip.reason for skip in left_out if block_key(skip) == block_key(run)), None)
