"""Read what the farm knows of attempts whose reports came: all that settling them depends on."""

from collections.abc import Collection, Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, DeviceId, HostId, JobId
from farm.core.checks.health import RECENT_ATTEMPTS, PastOutcome
from farm.core.checks.incident import WINDOW, may_be_host_caused
from farm.core.checks.reference_run import ReferenceRun
from farm.core.devices.device import Admin, Presence
from farm.core.devices.host_state import IncidentKind
from farm.core.errors import Blame
from farm.core.jobs.attempt import AttemptRecord
from farm.core.jobs.job import Job, JobKind
from farm.core.jobs.poison_job import DeviceLoss, poisoned_devices
from farm.core.operations.alarm import QUIET_AFTER_ACKNOWLEDGED, AlarmKind, AlarmSubject
from farm.core.results.settle.check_outcome import LAST_RUNS
from farm.core.results.settle.consequences import may_be_repeated
from farm.core.results.settle.evaluation import with_consequences
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
from farm.database.tables import attempts, devices, jobs, literal
from farm.store.checks.failures import disconnects_since, failures_since, health_changes_since
from farm.store.checks.incidents import incidents_since, open_incidents
from farm.store.checks.reference_runs import find_reference_run, own_fit_runs, own_runs, runs_of_kind
from farm.store.jobs.attempts import past_attempts
from farm.store.jobs.jobs import find_jobs, is_block_repeated
from farm.store.matrices.equivalent_cells import equivalents_of_cell, losses_of_cell, queued_jobs_of_cells
from farm.store.operations.alarms import cleared_since
from farm.store.results.evidence import digests_by_attempt
from farm.store.results.measurements import accepted_qualities
from farm.store.results.placements import last_placements
from farm.store.results.settle.reported_runs import find_records


def load(connection: Connection, reports: Sequence[ParsedReport]) -> SettlementContext:
    """Read what the next reports are settled by. Two statements, where all of them are of good runs."""
    contexts = report_contexts(connection, {each.incoming.attempt_id for each in reports})
    alone = with_consequences(reports, contexts)
    placed = {
        each.reading.measured.series.digest
        for each in reports
        if isinstance(each.reading, ReportReading) and each.reading.measured is not None
        if each.reading.measured.reading.placement is not None
    }
    return SettlementContext(
        reports=contexts,
        last_places=last_placements(connection, sorted(placed)) if placed else {},
        consequences=None if alone is None else _consequences(connection, *alone),
    )


def report_contexts(
    connection: Connection, attempt_ids: Collection[AttemptId]
) -> dict[AttemptId, ReportContext]:
    """Read attempts with their jobs and reports; those that nobody made are missing. Two statements."""
    runs = find_records(connection, attempt_ids)
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

    Args:
        connection: the database.
        job: the job.
        ending: an attempt of it that is about to end, and is left out.
        loss: how that loses its device, if it does.
    """
    losses: tuple[DeviceLoss, ...] = ()
    alike: Collection[Job] = ()
    if job.cell_id is not None and job.matrix_id is not None:
        losses = tuple(losses_of_cell(connection, job.matrix_id, job.cell_id))
        if poisoned_devices((*losses, *([] if loss is None else [loss]))):
            queued = queued_jobs_of_cells(
                connection, job.matrix_id, equivalents_of_cell(connection, job.cell_id)
            )
            found = find_jobs(connection, [job_id for job_id in queued if job_id != job.job_id])
            alike = [found[job_id] for job_id in sorted(found)]
    lost = {each.device_id for each in losses}
    return RetryContext(
        tries=tuple(
            past_attempts(connection, job.job_id, without=None if ending is None else ending.attempt_id)
        ),
        losses=losses,
        queued_alike=tuple(alike),
        active_devices=_active_devices(connection, {job.device_id, *lost}),
    )


def host_context(connection: Connection, host_id: HostId, *, now: datetime) -> HostContext:
    """Read what went wrong with the devices of a host lately."""
    query = sa.select(devices.c.device_id, devices.c.presence).where(devices.c.host_id == host_id)
    presence_by_device = {DeviceId(row.device_id): row.presence for row in connection.execute(query)}
    own, since = sorted(presence_by_device), now - WINDOW
    lasting = next(
        (
            each
            for each in open_incidents(connection, host_id)
            if each.kind is IncidentKind.CORRELATED_FAILURES
        ),
        None,
    )
    began_at = since if lasting is None else lasting.began_at
    return HostContext(
        host_id=host_id,
        online=frozenset(
            device_id for device_id, presence in presence_by_device.items() if presence == Presence.ONLINE
        ),
        troubles=(*disconnects_since(connection, own, since), *failures_since(connection, own, since)),
        open_incident=lasting,
        health_changes=tuple(health_changes_since(connection, own, began_at)),
    )


def _consequences(connection: Connection, report: ParsedReport, found: ReportContext) -> ConsequenceContext:
    """Read what the consequences of a report depend on, as far as it can have any of a kind."""
    assert isinstance(report.reading, ReportReading)
    attempt, job, outcome = found.attempt, found.job, report.reading.outcome
    is_inconclusive = outcome.outcome is Outcome.INCONCLUSIVE
    is_lost = outcome.blame is Blame.DEVICE
    loss = DeviceLoss(device_id=attempt.device_id, code=outcome.code) if is_lost and is_inconclusive else None
    may_be_hosts = is_inconclusive and may_be_host_caused(outcome.blame, outcome.code)
    is_judged = job.kind is JobKind.CHECK and (is_lost or not is_inconclusive)
    return ConsequenceContext(
        job=job_context(connection, job, ending=attempt, loss=loss)
        if is_inconclusive or is_lost
        else RetryContext(),
        block=_block_context(connection, report.reading, job),
        host=host_context(connection, attempt.host_id, now=report.incoming.at) if may_be_hosts else None,
        health=_health_context(connection, attempt) if is_lost else None,
        check=_check_context(connection, report.reading, job, now=report.incoming.at) if is_judged else None,
    )


def _block_context(connection: Connection, reading: ReportReading, job: Job) -> BlockContext | None:
    measured = reading.measured
    if measured is None or not may_be_repeated(measured):
        return None
    return BlockContext(
        qualities=tuple(accepted_qualities(connection, measured.cell_id)),
        is_repeated=is_block_repeated(connection, job.cell_id, round=job.round, repeat=job.repeat + 1),
    )


def _health_context(connection: Connection, attempt: AttemptRecord) -> HealthContext:
    endings = recent_endings(connection, attempt.device_id, RECENT_ATTEMPTS, without=attempt.attempt_id)
    hosts = {attempt.host_id, *(ending.host_id for ending in endings)}
    since = min([attempt.claimed_at, *(ending.claimed_at for ending in endings)])
    return HealthContext(endings=tuple(endings), incidents=tuple(incidents_since(connection, hosts, since)))


def _check_context(
    connection: Connection, reading: ReportReading, job: Job, *, now: datetime
) -> CheckContext:
    query = sa.select(devices.c.label, devices.c.rebaselined_at)
    device = connection.execute(query.where(devices.c.device_id == job.device_id)).one()
    newest = last_check_id(connection, job.device_id) or job.job_id
    run = find_reference_run(connection, newest)
    about = AlarmKind.REFERENCE_DRIFT, AlarmSubject.DEVICE, job.device_id
    return CheckContext(
        name=device.label or job.device_id,
        last_check_id=newest,
        new_run=None if reading.reference_run is None else _reference(connection, reading.reference_run),
        last_run=None if run is None else _reference(connection, run),
        past_runs=tuple(own_runs(connection, job.device_id, limit=LAST_RUNS)),
        rebaselined_at=device.rebaselined_at,
        alarm_was_cleared=any(
            (each.kind, each.subject, each.subject_id) == about and each.cleared_by != "farm"
            for each in cleared_since(connection, now - QUIET_AFTER_ACKNOWLEDGED)
        ),
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


def recent_endings(
    connection: Connection, device_id: DeviceId, count: int, *, without: AttemptId | None = None
) -> list[PastOutcome]:
    """Return the device's last ended attempts, newest first, without one of them.

    A cancelled one says nothing of the device.
    """
    query = (
        sa.select(
            attempts.c.attempt_id,
            attempts.c.job_id,
            attempts.c.fence,
            attempts.c.blame,
            attempts.c.code,
            attempts.c.host_id,
            attempts.c.claimed_at,
            attempts.c.finished_at,
            jobs.c.kind,
            jobs.c.code.label("job_code"),
        )
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .where(
            attempts.c.device_id == device_id,
            attempts.c.outcome.is_not(None),
            attempts.c.outcome != Outcome.CANCELLED,
        )
        .order_by(attempts.c.fence.desc())
        .limit(count if without is None else count + 1)
    )
    endings = [
        PastOutcome(
            attempt_id=row.attempt_id,
            job_id=row.job_id,
            kind=JobKind(row.kind),
            fence=row.fence,
            blame=None if row.blame is None else Blame(row.blame),
            code=row.code,
            job_code=row.job_code,
            host_id=row.host_id,
            claimed_at=row.claimed_at,
            finished_at=row.finished_at,
        )
        for row in connection.execute(query)
    ]
    return [ending for ending in endings if ending.attempt_id != without][:count]


def last_check_id(connection: Connection, device_id: DeviceId) -> JobId | None:
    """Return the last check of a device, finished or not."""
    query = sa.select(jobs.c.job_id).where(
        jobs.c.device_id == device_id, jobs.c.kind == literal(JobKind.CHECK)
    )
    return connection.execute(query.order_by(jobs.c.job_id.desc()).limit(1)).scalar()
