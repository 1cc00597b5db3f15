"""Write what settling reports changes: rows by compare-and-set, each change with its event."""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby
from typing import assert_never

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.errors import FarmBusy
from farm.core.jobs.attempt import advance
from farm.core.jobs.job import JobEvent, JobState
from farm.core.operations.event import DeviceEvent, EventSubject
from farm.core.results.settle.effects import (
    AddMeasurement,
    BulkEffect,
    ChangeHealth,
    ClearAlarm,
    EndAttempt,
    EndJob,
    KeepReferenceRun,
    KeepReport,
    NotifyDevices,
    NotifyHosts,
    OpenIncident,
    QueueCheck,
    RaiseAlarm,
    RecordPlacementChange,
    RequeueJob,
    RowEffect,
    WidenIncident,
)
from farm.database.notifications import notify_all_hosts, notify_hosts
from farm.database.tables import attempts, jobs
from farm.database.tables.columns import BigId
from farm.store.checks.reference_runs import add_reference_run
from farm.store.operations import alarms as alarm_store
from farm.store.operations.events import NewEvent, record_event, record_events
from farm.store.results.evidence import NewReport, add_reports
from farm.store.results.measurements import add_measurements
from farm.store.results.settle.consequences import write_consequences


def write(connection: Connection, effects: Iterable[RowEffect]) -> None:
    """Write effects; rows and events are as if one came after the other.

    Raises:
        FarmBusy: an attempt or a job is no longer where it was; the caller undoes all of it.
    """
    for is_bulk, group in groupby(effects, key=lambda effect: isinstance(effect, BulkEffect)):
        if is_bulk:
            _write_together(connection, [effect for effect in group if isinstance(effect, BulkEffect)])
            continue
        for effect in group:
            assert not isinstance(effect, BulkEffect)
            _write_one(connection, effect)


def _write_together(connection: Connection, effects: Sequence[BulkEffect]) -> None:
    """Write what every good run brings: by a handful of statements, however many runs."""
    reports = [effect for effect in effects if isinstance(effect, KeepReport)]
    if reports:
        add_reports(connection, [_new_report(effect) for effect in reports])
    for effect in effects:
        if isinstance(effect, NotifyHosts):
            _notify(connection, effect)
    ended_attempts = [effect for effect in effects if isinstance(effect, EndAttempt)]
    ended_jobs = [effect for effect in effects if isinstance(effect, EndJob)]
    moved = 0
    if ended_attempts:
        moved += connection.execute(_attempts_end(), [_of_attempt(each) for each in ended_attempts]).rowcount
    if ended_jobs:
        moved += connection.execute(_jobs_end(), [_of_job(each) for each in ended_jobs]).rowcount
    if moved != len(ended_attempts) + len(ended_jobs):
        raise FarmBusy("an attempt or its job was moved by somebody who takes no turns", hint="try again")
    record_events(connection, [_event(each) for each in effects if isinstance(each, EndAttempt | EndJob)])
    measured = [effect.measured for effect in effects if isinstance(effect, AddMeasurement)]
    if measured:
        add_measurements(connection, measured)


def _write_one(
    connection: Connection,
    effect: RequeueJob
    | KeepReferenceRun
    | ChangeHealth
    | QueueCheck
    | OpenIncident
    | WidenIncident
    | RaiseAlarm
    | ClearAlarm
    | RecordPlacementChange
    | NotifyDevices,
) -> None:
    match effect:
        case (
            RequeueJob() | ChangeHealth() | QueueCheck() | OpenIncident() | WidenIncident() | NotifyDevices()
        ):
            write_consequences(connection, [effect])
        case KeepReferenceRun():
            add_reference_run(connection, effect.run)
        case RaiseAlarm():
            _raise_alarm(connection, effect)
        case ClearAlarm():
            alarm = alarm_store.find_open_alarm(connection, effect.kind, effect.subject, effect.subject_id)
            if alarm is not None:
                alarm_store.clear_alarm(connection, alarm, now=effect.at, actor="farm", cause=effect.cause)
        case RecordPlacementChange():
            _record_placement_change(connection, effect)
        case _:
            assert_never(effect)


def _new_report(kept: KeepReport) -> NewReport:
    return NewReport(
        attempt_id=kept.attempt_id, digest=kept.digest, body=kept.body, counted=kept.counted, at=kept.at
    )


def _notify(connection: Connection, effect: NotifyHosts) -> None:
    if effect.hosts is None:
        notify_all_hosts(connection)
    else:
        notify_hosts(connection, effect.hosts)


def _of_attempt(end: EndAttempt) -> dict[str, object]:
    return {
        "of_attempt": end.attempt.attempt_id,
        "state_before": end.attempt.state,
        "state": advance(end.attempt.state, end.event),
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
        "outcome": end.outcome.outcome,
        "code": end.outcome.code,
        "message": end.outcome.message or None,
        "finished_at": end.at,
    }


def _event(end: EndAttempt | EndJob) -> NewEvent:
    if isinstance(end, EndAttempt):
        return NewEvent(
            at=end.at,
            actor=end.actor,
            kind=end.event,
            subject=EventSubject.ATTEMPT,
            subject_id=end.attempt.attempt_id,
            from_state=end.attempt.state,
            to_state=advance(end.attempt.state, end.event),
            cause=end.cause,
        )
    outcome = end.outcome
    return NewEvent(
        at=end.at,
        actor=end.actor,
        kind=JobEvent.FINISHED,
        subject=EventSubject.JOB,
        subject_id=end.job.job_id,
        from_state=end.job.state,
        to_state=JobState.FINISHED,
        cause=outcome.outcome if outcome.code is None else f"{outcome.outcome}: {outcome.code}",
    )


@cache
def _attempts_end() -> sa.Update:
    return (
        attempts.update()
        .where(
            attempts.c.attempt_id == sa.bindparam("of_attempt"),
            attempts.c.state == sa.bindparam("state_before"),
        )
        .values(waiting_for=None, **_bound("state", "outcome", "blame", "code", "message", "report_digest"))
        .values(finished_at=sa.bindparam("finished_at"))
    )


@cache
def _jobs_end() -> sa.Update:
    return (
        jobs.update()
        .where(
            jobs.c.job_id == sa.bindparam("of_job"),
            jobs.c.state == sa.bindparam("state_before"),
            jobs.c.attempt_id.is_not_distinct_from(sa.bindparam("attempt_before", type_=BigId)),
        )
        .values(state=JobState.FINISHED, **_bound("outcome", "code", "message", "finished_at"))
    )


def _bound(*columns: str) -> dict[str, sa.BindParameter[object]]:
    return {name: sa.bindparam(name) for name in columns}


def _raise_alarm(connection: Connection, alarm: RaiseAlarm) -> None:
    if alarm_store.find_open_alarm(connection, alarm.kind, alarm.subject, alarm.subject_id) is None:
        alarm_store.add_alarm(
            connection,
            alarm.kind,
            alarm.subject,
            alarm.subject_id,
            message=alarm.message,
            hint=alarm.hint,
            now=alarm.at,
        )


def _record_placement_change(connection: Connection, change: RecordPlacementChange) -> None:
    record_event(
        connection,
        at=change.at,
        actor="farm",
        kind=DeviceEvent.PLACEMENT_CHANGED,
        subject=EventSubject.DEVICE,
        subject_id=change.device_id,
        from_state=change.was,
        to_state=change.place,
        cause=change.cause,
    )
