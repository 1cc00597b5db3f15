"""Read what the farm knows of attempts whose reports came: all that settling them depends on."""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, DeviceId, HostId, JobId
from farm.core.checks.failures import RECENT_ATTEMPTS, WINDOW, PastOutcome, may_be_host_caused
from farm.core.checks.reference_run import ReferenceRun
from farm.core.devices.device import Admin, Presence
from farm.core.devices.host_state import IncidentKind
from farm.core.errors import Blame
from farm.core.jobs.attempt import Attempt, AttemptOutcome, AttemptRecord
from farm.core.jobs.job import Job, JobKind
from farm.core.jobs.retry import DeviceLoss, poisoned_devices
from farm.core.results.settle.check_outcome import LAST_RUNS
from farm.core.results.settle.consequences import is_block_repeatable, may_be_repeated
from farm.core.results.settle.evaluation import first_settled_alone
from farm.core.results.settle.report import ParsedReport, ReportReading
from farm.core.results.settle.report_context import (
    BlockContext,
    CheckContext,
    ConsequenceContext,
    HealthContext,
    HostContext,
    ReferenceContext,
    ReportContext,
    RetryContext,
    SettlementContext,
)
from farm.core.runs.measurement import Outcome
from farm.database.rows import to_record
from farm.database.tables import JOB_IS_CHECK, attempts, cells, devices, jobs, matrices
from farm.database.transaction import Tx
from farm.store.checks.failures import disconnects_since, failures_since, health_changes_since
from farm.store.checks.incidents import incidents_since, open_incidents
from farm.store.checks.reference_runs import find_reference_run, own_fit_runs, own_runs, runs_of_kind
from farm.store.jobs.attempts import past_attempts
from farm.store.jobs.jobs import first_virtual_times
from farm.store.matrices.equivalent_cells import (
    equivalents_of_cell,
    losses_of_cell,
    poison_cells,
    queued_jobs_of_cells,
)
from farm.store.results.evidence import digests_by_attempt
from farm.store.results.measurements import accepted_qualities
from farm.store.results.placements import last_placements

AttemptT = TypeVar("AttemptT", bound=AttemptRecord)
_JOB_COLUMNS = tuple(jobs.c.keys())
_WITHOUT_PLAN = [column for column in attempts.c if column.name != "plan"]


def load(connection: Connection, reports: Sequence[ParsedReport]) -> SettlementContext:
    """Read what the next reports are settled by. Two statements, where all of them are of good runs."""
    contexts = report_contexts(connection, {report.incoming.attempt_id for report in reports})
    alone = first_settled_alone(reports, contexts)
    placed = {
        report.reading.measured.series.digest
        for report in reports
        if isinstance(report.reading, ReportReading) and report.reading.measured is not None
        if report.reading.measured.placement is not None
    }
    return SettlementContext(
        reports=contexts,
        last_places=last_placements(connection, sorted(placed)) if placed else {},
        consequences=None if alone is None else _consequences(connection, *alone),
    )


def report_contexts(
    connection: Connection, attempt_ids: Collection[AttemptId]
) -> dict[AttemptId, ReportContext]:
    """Read attempts with their jobs and reports; those that do not exist are missing. Two statements."""
    runs = _with_jobs(connection, attempt_ids, AttemptRecord)
    digests = digests_by_attempt(connection, attempt_ids) if runs else {}
    return {
        attempt.attempt_id: ReportContext(
            attempt=attempt, job=job, report_digests=frozenset(digests.get(attempt.attempt_id, ()))
        )
        for attempt, job in runs
    }


def job_context(
    connection: Connection, job: Job, *, ending: AttemptRecord | None = None, loss: DeviceLoss | None = None
) -> RetryContext:
    """Read what decides whether a job is tried again.

    `ending` is an attempt of it that is about to end, and is left out; `loss` is how that loses its device.
    """
    losses: tuple[DeviceLoss, ...] = ()
    alike: tuple[Job, ...] = ()
    if job.cell_id is not None and job.matrix_id is not None:
        losses = tuple(losses_of_cell(connection, job.matrix_id, job.cell_id))
        if poisoned_devices((*losses, *([] if loss is None else [loss]))):
            cell_ids = equivalents_of_cell(connection, job.cell_id)
            queued = queued_jobs_of_cells(connection, job.matrix_id, cell_ids)
            alike = tuple(peer for peer in queued if peer.job_id != job.job_id)
    lost = {loss.device_id for loss in losses}
    return RetryContext(
        tries=tuple(
            past_attempts(connection, job.job_id, without=None if ending is None else ending.attempt_id)
        ),
        losses=losses,
        queued_alike=alike,
        active_devices=_active_devices(connection, {job.device_id, *lost}),
    )


def host_context(tx: Tx, host_id: HostId) -> HostContext:
    """Read the recent failures of the devices of a host."""
    query = sa.select(devices.c.device_id, devices.c.presence).where(devices.c.host_id == host_id)
    presence_by_device = {DeviceId(row.device_id): row.presence for row in tx.connection.execute(query)}
    own, since = sorted(presence_by_device), tx.now - WINDOW
    of_devices = (
        incident
        for incident in open_incidents(tx.connection, host_id)
        if incident.kind is IncidentKind.CORRELATED_FAILURES
    )
    incident = next(of_devices, None)
    began_at = since if incident is None else incident.began_at
    return HostContext(
        host_id=host_id,
        online=frozenset(
            device_id for device_id, presence in presence_by_device.items() if presence == Presence.ONLINE
        ),
        failures=(
            *disconnects_since(tx.connection, own, since, host_id=host_id),
            *failures_since(tx.connection, own, since),
        ),
        open_incident=incident,
        health_changes=tuple(health_changes_since(tx.connection, own, began_at)),
    )


def _consequences(connection: Connection, report: ParsedReport, context: ReportContext) -> ConsequenceContext:
    """Read what the consequences of a report depend on, as far as it can have any of a kind."""
    assert isinstance(report.reading, ReportReading)
    attempt, job, outcome = context.attempt, context.job, report.reading.outcome
    is_inconclusive = outcome.outcome is Outcome.INCONCLUSIVE
    is_lost = outcome.blame is Blame.DEVICE
    loss = DeviceLoss(device_id=attempt.device_id, code=outcome.code) if is_lost and is_inconclusive else None
    may_be_hosts = is_inconclusive and may_be_host_caused(outcome.blame, outcome.code)
    is_judged = job.kind is JobKind.CHECK and (is_lost or not is_inconclusive)
    return ConsequenceContext(
        retry=job_context(connection, job, ending=attempt, loss=loss)
        if is_inconclusive or is_lost
        else RetryContext(same_cell=_doomed_jobs(connection, job, outcome)),
        block=_block_context(connection, report.reading, job),
        host=host_context(Tx(connection, report.incoming.at), attempt.host_id) if may_be_hosts else None,
        health=_health_context(connection, attempt) if is_lost else None,
        check=_check_context(connection, report.reading, job) if is_judged else None,
    )


def _doomed_jobs(connection: Connection, job: Job, outcome: AttemptOutcome) -> tuple[Job, ...]:
    """Read the queued jobs of a cell of which another start ended as this one does."""
    if outcome.outcome not in (Outcome.FAILED, Outcome.UNSUPPORTED) or job.matrix_id is None:
        return ()
    of_cell = jobs.c.cell_id == job.cell_id
    before = sa.select(jobs.c.job_id).where(
        of_cell, jobs.c.outcome == outcome.outcome, jobs.c.code == outcome.code, jobs.c.job_id != job.job_id
    )
    if job.cell_id is None or connection.execute(before.limit(1)).first() is None:
        return ()
    queued = queued_jobs_of_cells(connection, job.matrix_id, [job.cell_id])
    return tuple(peer for peer in queued if peer.job_id != job.job_id)


def _block_context(connection: Connection, reading: ReportReading, job: Job) -> BlockContext | None:
    """Read the block that a measurement has repeated; None if it is not repeated, or was already."""
    measured = reading.measured
    if measured is None or not may_be_repeated(measured) or job.matrix_id is None:
        return None
    qualities = [*accepted_qualities(connection, measured.cell_id), measured.quality]
    if not is_block_repeatable(job, qualities):
        return None
    of_block = (
        sa.select(
            cells.c.cell_index, cells.c.cell_id, jobs.c.repeat, matrices.c.seed, matrices.c.submitted_by
        )
        .join(jobs, jobs.c.cell_id == cells.c.cell_id)
        .join(matrices, matrices.c.matrix_id == cells.c.matrix_id)
        .where(cells.c.matrix_id == job.matrix_id, cells.c.device_id == job.device_id)
        .where(jobs.c.round == job.round, jobs.c.block == job.block)
    )
    rows = connection.execute(of_block).all()
    if any(row.repeat > job.repeat for row in rows):
        return None
    poison = poison_cells(connection, job.matrix_id)
    virtual_times = first_virtual_times(
        connection, [job.device_id], priority=job.priority, submitted_by=rows[0].submitted_by
    )
    return BlockContext(
        cell_by_index={row.cell_index: row.cell_id for row in rows if row.cell_id not in poison},
        seed=rows[0].seed,
        virtual_time=virtual_times[job.device_id],
    )


def _health_context(connection: Connection, attempt: AttemptRecord) -> HealthContext:
    outcomes = recent_outcomes(connection, attempt.device_id, RECENT_ATTEMPTS, without=attempt.attempt_id)
    hosts = {attempt.host_id, *(past.host_id for past in outcomes)}
    since = min([attempt.claimed_at, *(past.claimed_at for past in outcomes)])
    return HealthContext(outcomes=tuple(outcomes), incidents=tuple(incidents_since(connection, hosts, since)))


def _check_context(connection: Connection, reading: ReportReading, job: Job) -> CheckContext:
    query = sa.select(devices.c.label, devices.c.rebaselined_at)
    device = connection.execute(query.where(devices.c.device_id == job.device_id)).one()
    newest = last_check_id(connection, job.device_id) or job.job_id
    run = find_reference_run(connection, newest)
    return CheckContext(
        name=device.label or job.device_id,
        last_check_id=newest,
        new_run=None if reading.reference_run is None else _reference(connection, reading.reference_run),
        last_run=None if run is None else _reference(connection, run),
        past_runs=tuple(own_runs(connection, job.device_id, limit=LAST_RUNS)),
        rebaselined_at=device.rebaselined_at,
    )


def _reference(connection: Connection, run: ReferenceRun) -> ReferenceContext:
    return ReferenceContext(
        run=run,
        of_kind=tuple(
            runs_of_kind(connection, run.reference_key, run.program_digest, before=run.measured_at)
        ),
        of_device=tuple(own_fit_runs(connection, run)),
    )


def _active_devices(connection: Connection, device_ids: Collection[DeviceId]) -> frozenset[DeviceId]:
    query = sa.select(devices.c.device_id).where(
        devices.c.device_id.in_(sorted(device_ids)), devices.c.admin == Admin.ACTIVE
    )
    return frozenset(connection.execute(query).scalars())


def recent_outcomes(
    connection: Connection, device_id: DeviceId, count: int, *, without: AttemptId | None = None
) -> list[PastOutcome]:
    """Return the device's last ended attempts, newest first, without one of them.

    A cancelled one says nothing of the device.
    """
    query = (
        sa.select(*_WITHOUT_PLAN, jobs.c.kind, jobs.c.code.label("job_code"))
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .where(
            attempts.c.device_id == device_id,
            attempts.c.outcome.is_not(None),
            attempts.c.outcome != Outcome.CANCELLED,
        )
        .order_by(attempts.c.fence.desc())
        .limit(count if without is None else count + 1)
    )
    outcomes = [to_record(PastOutcome, row) for row in connection.execute(query)]
    return [past for past in outcomes if past.attempt_id != without][:count]


def last_check_id(connection: Connection, device_id: DeviceId) -> JobId | None:
    """Return the last check of a device, finished or not."""
    query = sa.select(jobs.c.job_id).where(jobs.c.device_id == device_id, JOB_IS_CHECK)
    return connection.execute(query.order_by(jobs.c.job_id.desc()).limit(1)).scalar()


def find_planned(connection: Connection, attempt_ids: Collection[AttemptId]) -> list[tuple[Attempt, Job]]:
    """Return attempts, each with its job; those that have no plan any more, and unknown ids, are missing."""
    return _with_jobs(connection, attempt_ids, Attempt)


def _with_jobs(
    connection: Connection, attempt_ids: Collection[AttemptId], kind: type[AttemptT]
) -> list[tuple[AttemptT, Job]]:
    names = tuple(kind.__dataclass_fields__)
    rows = connection.execute(_with_jobs_query(names), {"attempt_ids": list(attempt_ids)})
    # By position: both tables have columns of one name.
    return [
        (
            to_record(kind, dict(zip(names, row, strict=False))),
            to_record(Job, dict(zip(_JOB_COLUMNS, row[len(names) :], strict=True))),
        )
        for row in rows
    ]


@cache
def _with_jobs_query(names: tuple[str, ...]) -> sa.Select[Any]:
    of_attempts = attempts.c.attempt_id.in_(sa.bindparam("attempt_ids", expanding=True))
    query = sa.select(*(attempts.c[name] for name in names), *jobs.c).select_from(attempts)
    query = query.join(jobs, jobs.c.job_id == attempts.c.job_id).where(of_attempts)
    return query.where(attempts.c.plan.is_not(sa.null())) if "plan" in names else query
