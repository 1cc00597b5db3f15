"""Write what follows from how an attempt ended: for its job, its device and its host."""

from collections.abc import Iterable
from typing import assert_never

from sqlalchemy.engine import Connection

from farm.core.jobs.job import JobEvent
from farm.core.results.settle.effects import (
    ChangeHealth,
    Consequence,
    EndJob,
    NotifyDevices,
    OpenIncident,
    QueueCheck,
    RequeueJob,
    WidenIncident,
)
from farm.database.notifications import notify_hosts_of_devices
from farm.store.checks.incidents import add_incident, widen_incident
from farm.store.devices.transitions import move_health
from farm.store.jobs.jobs import add_check, move_job


def write_consequences(connection: Connection, effects: Iterable[Consequence]) -> None:
    """Write consequences one after the other; what is no longer where it was stays as it is."""
    for effect in effects:
        _write(connection, effect)


def _write(connection: Connection, effect: Consequence) -> None:
    match effect:
        case EndJob():
            _end_job(connection, effect)
        case RequeueJob():
            move_job(
                connection,
                effect.job,
                JobEvent.REQUEUED,
                now=effect.at,
                actor=effect.actor,
                cause=effect.cause,
            )
        case ChangeHealth():
            _change_health(connection, effect)
        case QueueCheck():
            add_check(connection, effect.device_id, now=effect.at, cause=effect.cause)
        case OpenIncident():
            incident = effect.incident
            add_incident(
                connection,
                incident.host_id,
                incident.kind,
                began_at=incident.began_at,
                devices=incident.devices,
                cause=incident.cause,
                now=effect.at,
            )
        case WidenIncident():
            widen_incident(connection, effect.incident, effect.devices)
        case NotifyDevices():
            notify_hosts_of_devices(connection, effect.devices)
        case _:
            assert_never(effect)


def _end_job(connection: Connection, end: EndJob) -> None:
    outcome = end.outcome
    move_job(
        connection,
        end.job,
        JobEvent.FINISHED,
        now=end.at,
        actor=end.actor,
        cause=outcome.outcome if outcome.code is None else f"{outcome.outcome}: {outcome.code}",
        values={"outcome": outcome.outcome, "code": outcome.code, "message": outcome.message or None},
    )


def _change_health(connection: Connection, change: ChangeHealth) -> None:
    changed = move_health(
        connection,
        change.device_id,
        sources=change.sources,
        to=change.to,
        now=change.at,
        cause=change.cause,
    )
    if changed and change.with_check:
        add_check(connection, change.device_id, now=change.at, cause=change.cause)
