"""Write effects: rows by compare-and-set, each change with its event."""

from collections.abc import Iterable, Sequence
from typing import assert_never

from sqlalchemy.engine import Connection

from farm.core.errors import FarmBusy
from farm.core.jobs.attempt import advance
from farm.core.jobs.job import JobEvent, JobState
from farm.core.operations.event import EventSubject, SubjectEvent, WorkEvent
from farm.core.results.settle.effects import (
    AddMeasurement,
    BulkEffect,
    ChangeHealth,
    ClearAlarm,
    Consequence,
    Effect,
    EndAttempt,
    EndIncident,
    EndJob,
    KeepReferenceRun,
    KeepReport,
    NotifyDevices,
    NotifyHosts,
    OpenIncident,
    QueueCheck,
    RaiseAlarm,
    RepeatBlock,
    RequeueJob,
    WidenIncident,
)
from farm.core.results.settle.report import NewMeasurement
from farm.database.notifications import notify_all_hosts, notify_hosts, notify_hosts_of_devices
from farm.database.transaction import Tx
from farm.store.checks.incidents import add_incident, end_incident, widen_incident
from farm.store.checks.reference_runs import add_reference_run
from farm.store.devices.transitions import move_health
from farm.store.jobs.attempts import MOVE_ATTEMPT_STATEMENT
from farm.store.jobs.jobs import MOVE_JOB_STATEMENT, NewJob, add_check, add_jobs, move_job
from farm.store.operations import alarms as alarm_store
from farm.store.operations.events import record_event, record_events
from farm.store.results.evidence import add_reports
from farm.store.results.measurements import add_measurements


def write(connection: Connection, effects: Iterable[Effect]) -> None:
    """Write effects; rows and events are as if one came after the other.

    Raises:
        FarmBusy: an attempt or a job is no longer where it was; the caller undoes all of it.
    """
    together: list[BulkEffect] = []
    for effect in effects:
        if isinstance(effect, BulkEffect):
            together.append(effect)
            continue
        _write_together(connection, together)
        together.clear()
        if isinstance(effect, RepeatBlock):
            _repeat_block(connection, effect)
        elif isinstance(effect, KeepReferenceRun):
            add_reference_run(connection, effect.run)
        else:
            _write_consequence(connection, effect)
    _write_together(connection, together)


def write_consequences(connection: Connection, effects: Iterable[Consequence]) -> None:
    """Write consequences one after the other; what is no longer where it was stays as it is."""
    for effect in effects:
        _write_consequence(connection, effect)


def _write_consequence(connection: Connection, effect: Consequence) -> None:
    match effect:
        case EndJob(at=now, job=job, outcome=outcome, actor=actor):
            values = {"outcome": outcome.outcome, "code": outcome.code, "message": outcome.message or None}
            cause = _cause_of_end(effect)
            move_job(Tx(connection, now, actor), job, JobEvent.FINISHED, cause=cause, values=values)
        case RequeueJob(at=now, job=job, actor=actor, cause=cause):
            move_job(Tx(connection, now, actor), job, JobEvent.REQUEUED, cause=cause)
        case ChangeHealth(at=now, device_id=device_id, sources=sources, to=to, cause=cause):
            changed = move_health(Tx(connection, now), device_id, sources=sources, to=to, cause=cause)
            if changed and effect.with_check:
                add_check(Tx(connection, now), device_id, cause=cause)
        case QueueCheck(at=now, device_id=device_id, cause=cause):
            add_check(Tx(connection, now), device_id, cause=cause)
        case OpenIncident(at=now, incident=incident):
            add_incident(Tx(connection, now), incident)
        case WidenIncident(incident=incident, devices=devices):
            widen_incident(connection, incident, devices)
        case EndIncident(at=now, incident=incident, cause=cause):
            end_incident(Tx(connection, now), incident, cause=cause)
        case RaiseAlarm(at=now, alarm=due):
            tx = Tx(connection, now)
            if not (effect.unless_acknowledged and due.key in alarm_store.acknowledged_alarms(tx)):
                alarm_store.add_alarm(tx, due)
        case ClearAlarm(at=now, alarm=key, cause=cause):
            alarm_store.clear_alarm(Tx(connection, now), key, cause=cause)
        case SubjectEvent():
            record_events(connection, [effect])
        case NotifyDevices(devices=devices):
            notify_hosts_of_devices(connection, devices)
        case _:
            assert_never(effect)


def _repeat_block(connection: Connection, block: RepeatBlock) -> None:
    job, repeat = block.job, block.job.repeat + 1
    assert job.matrix_id is not None
    new_jobs = [
        NewJob(job.device_id, cell_id, job.round, job.block, place, block.virtual_time, repeat)
        for place, cell_id in enumerate(block.cells, start=1)
    ]
    add_jobs(Tx(connection, block.at), job.matrix_id, new_jobs, priority=job.priority)
    record_event(
        Tx(connection, block.at),
        WorkEvent.BLOCK_REPEATED,
        job.matrix_id,
        subject=EventSubject.MATRIX,
        to_state="queued",
        cause=f"{job.device_id} round {job.round}, block {job.block}, repeat {repeat}: {block.cause}",
    )


def _write_together(connection: Connection, effects: Sequence[BulkEffect]) -> None:
    """Write what every good run brings: by a handful of statements, however many runs."""
    reports: list[KeepReport] = []
    ends: list[EndAttempt | EndJob] = []
    measured: list[NewMeasurement] = []
    for effect in effects:
        match effect:
            case KeepReport():
                reports.append(effect)
            case EndAttempt() | EndJob():
                ends.append(effect)
            case AddMeasurement():
                measured.append(effect.measured)
            case NotifyHosts(hosts=hosts):
                notify_all_hosts(connection) if hosts is None else notify_hosts(connection, hosts)
            case _:
                assert_never(effect)
    if reports:
        add_reports(connection, reports)
    ended_attempts = [_of_attempt(end) for end in ends if isinstance(end, EndAttempt)]
    ended_jobs = [_of_job(end) for end in ends if isinstance(end, EndJob)]
    moved = 0
    if ended_attempts:
        moved += connection.execute(MOVE_ATTEMPT_STATEMENT, ended_attempts).rowcount
    if ended_jobs:
        moved += connection.execute(MOVE_JOB_STATEMENT, ended_jobs).rowcount
    if moved != len(ends):
        raise FarmBusy("an attempt or its job was moved outside the write queue", hint="try again")
    record_events(connection, [_event(end) for end in ends])
    if measured:
        add_measurements(connection, measured)


def _of_attempt(end: EndAttempt) -> dict[str, object]:
    return {
        "of_attempt": end.attempt.attempt_id,
        "state_before": end.attempt.state,
        "state": advance(end.attempt.state, end.event),
        "waiting_for": None,
        "outcome": end.outcome.outcome,
        "blame": end.outcome.blame,
        "code": end.outcome.code,
        "message": end.outcome.message,
        "report_digest": end.report_digest,
        "finished_at": end.at,
    }


def _of_job(end: EndJob) -> dict[str, object]:
    return {
        "of_job": end.job.job_id,
        "state_before": end.job.state,
        "attempt_before": end.job.attempt_id,
        "state": JobState.FINISHED,
        "outcome": end.outcome.outcome,
        "code": end.outcome.code,
        "message": end.outcome.message or None,
        "finished_at": end.at,
    }


def _event(end: EndAttempt | EndJob) -> SubjectEvent:
    if isinstance(end, EndAttempt):
        return SubjectEvent(
            at=end.at,
            actor=end.actor,
            kind=end.event,
            subject=EventSubject.ATTEMPT,
            subject_id=str(end.attempt.attempt_id),
            from_state=end.attempt.state,
            to_state=advance(end.attempt.state, end.event),
            cause=end.cause,
        )
    return SubjectEvent(
        at=end.at,
        actor=end.actor,
        kind=JobEvent.FINISHED,
        subject=EventSubject.JOB,
        subject_id=str(end.job.job_id),
        from_state=end.job.state,
        to_state=JobState.FINISHED,
        cause=_cause_of_end(end),
    )


def _cause_of_end(end: EndJob) -> str:
    outcome = end.outcome
    return outcome.outcome if outcome.code is None else f"{outcome.outcome}: {outcome.code}"
