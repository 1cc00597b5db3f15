"""Records the measurement of a run, and repeats the block it belongs to when it cannot be believed."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId
from farm.core.base.setting_values import non_default_settings
from farm.core.devices.controls import Controls, non_default_controls
from farm.core.jobs.retry import CHRONIC_AFTER, MAX_BLOCKS
from farm.core.matrices.matrix import shuffle_round
from farm.core.operations.event import EventSubject, WorkEvent
from farm.core.results.series import series_digest
from farm.core.runs.corroboration import corroborate
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Quality, Reading
from farm.core.runs.quality import assess_quality, notices
from farm.core.runs.stats import summarize_samples
from farm.harness.base.adapter import Harness, flag_defaults
from farm.services.files.adapters import adapter_of
from farm.services.matrices.lazy_expansion import expand_rounds
from farm.services.results.placement_changes import detect_placement_changes
from farm.store.jobs import jobs
from farm.store.jobs.attempts import Attempt
from farm.store.jobs.context import JobContext, MatrixTerms
from farm.store.jobs.fair_share import first_virtual_times
from farm.store.jobs.jobs import Job, NewJob
from farm.store.matrices import matrices
from farm.store.matrices.equivalent_cells import poison_cells
from farm.store.operations.events import record_event
from farm.store.results import measurements
from farm.store.results.measurements import NewMeasurement, NewSeries

#: Another try can cure these; what fell back once will fall back again.
_REPEATABLE = (
    Quality.NOISY,
    Quality.THROTTLED,
    Quality.SHORT,
    Quality.UNPLUGGED,
    Quality.UNCONTROLLED,
)


def measurement_of(
    job: Job, work: JobContext, attempt: Attempt, evidence: Evidence, reading: Reading, *, now: datetime
) -> NewMeasurement:
    """Judge a reading: it is its job's accepted measurement, whatever its quality."""
    ended, backend = evidence.exit, work.cell.backend
    reading = corroborate(reading, ended, evidence.after, requested_backend=backend)
    figures = summarize_samples(reading)
    harness = adapter_of(work.program)
    return NewMeasurement(
        job_id=job.job_id,
        attempt_id=attempt.attempt_id,
        cell_id=work.cell.cell_id,
        series=_series(work, harness, attempt.plan.controls),
        round=job.round,
        repeat=job.repeat,
        variant_digest=None if work.variant is None else work.variant.manifest.digest,
        program_digest=work.program.digest,
        facts_id=attempt.facts_id,
        reading=reading,
        summary=figures,
        judgement=assess_quality(
            reading,
            figures,
            requested_backend=backend,
            evidence=evidence,
            gates=attempt.plan.gates,
            controls=attempt.plan.controls,
            noise_limit=work.terms.spec["noise_limit"],
        ),
        notices=tuple(notices(evidence.before, attempt.plan.gates, away_s=evidence.away_s)),
        controls=evidence.controls,
        cpu_s=None if ended is None else ended.cpu_s,
        parser_version=harness.parser_version,
        measured_at=now,
    )


def may_be_repeated(measured: NewMeasurement) -> bool:
    """Whether its block is queued again, unless that was done too often."""
    return measured.judgement.quality in _REPEATABLE


def record_measurement(
    connection: Connection, job: Job, work: JobContext, measured: NewMeasurement, *, now: datetime
) -> None:
    """Record a measurement.

    One that is not valid stays out of speedups; its whole block (every cell of that device and
    round) is queued again, so that what is compared was measured side by side. For a cell that never was
    valid that ends after a few blocks: it would have all others measured three times for nothing.
    """
    detect_placement_changes(connection, [measured], now=now)
    measurements.add_measurements(connection, [measured])
    if may_be_repeated(measured) and not _is_chronic(connection, work.cell.cell_id):
        cause = f"job {job.job_id} is {measured.judgement.quality}"
        _repeat_block(connection, job, work.terms, cause=cause, now=now)


def _is_chronic(connection: Connection, cell_id: CellId) -> bool:
    qualities = measurements.accepted_qualities(connection, cell_id)
    return len(qualities) > CHRONIC_AFTER and Quality.VALID not in qualities


def _series(work: JobContext, harness: Harness, controls: Controls) -> NewSeries:
    cell, defaults = work.cell, flag_defaults(harness)
    settings = {**cell.settings, **non_default_controls(controls)}
    recipe = None if work.variant is None else work.variant.manifest.recipe
    return NewSeries(
        digest=series_digest(
            model=cell.model,
            recipe=recipe,
            backend=cell.backend,
            harness=work.terms.harness,
            settings=settings,
            defaults=defaults,
            device_id=cell.device_id,
        ),
        model=cell.model,
        recipe=recipe,
        backend=cell.backend,
        harness=work.terms.harness,
        settings=non_default_settings(settings, defaults),
        device_id=cell.device_id,
    )


def _repeat_block(
    connection: Connection, job: Job, matrix: MatrixTerms, *, cause: str, now: datetime
) -> None:
    """Queue every cell of the job's device and round once more, unless that is done or the budget used up."""
    repeat = job.repeat + 1
    if repeat >= MAX_BLOCKS or jobs.is_block_repeated(
        connection, job.cell_id, round=job.round, repeat=repeat
    ):
        return
    expand_rounds(connection, matrix.matrix_id, job.device_id, rounds=job.round, now=now)
    killers = poison_cells(connection, matrix.matrix_id)
    own = matrices.list_cells(connection, matrix.matrix_id, device_id=job.device_id)
    cells = [cell for cell in own if cell.cell_id not in killers]
    owner = matrices.find_matrix(connection, matrix.matrix_id)
    submitted_by = None if owner is None else owner.submitted_by
    turns = first_virtual_times(connection, [job.device_id], priority=job.priority, submitted_by=submitted_by)
    turn = turns[job.device_id]
    new_jobs = [
        NewJob(device_id=job.device_id, cell_id=cell.cell_id, round=job.round, turn=turn, repeat=repeat)
        for cell in shuffle_round(cells, round=job.round, seed=matrix.seed, repeat=repeat)
    ]
    jobs.add_jobs(connection, matrix.matrix_id, new_jobs, priority=job.priority, now=now)
    record_event(
        connection,
        at=now,
        actor="farm",
        kind=WorkEvent.BLOCK_REPEATED,
        subject=EventSubject.MATRIX,
        subject_id=matrix.matrix_id,
        to_state="queued",
        cause=f"{job.device_id} round {job.round}, repeat {repeat}: {cause}",
    )
