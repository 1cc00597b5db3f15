"""Alarms: each condition raises one, which is cleared once; each change with its event row."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.operations.alarm import AlarmEvent, AlarmKind, AlarmSubject
from farm.core.operations.event import EventSubject
from farm.database.tables import alarms
from farm.store.operations.events import record_event, record_if_moved


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """An alarm's row."""

    alarm_id: int
    kind: AlarmKind
    subject: AlarmSubject
    subject_id: str
    message: str
    hint: str
    raised_at: datetime
    cleared_at: datetime | None
    cleared_by: str | None
    notified_at: datetime | None


def add_alarm(
    connection: Connection,
    kind: AlarmKind,
    subject: AlarmSubject,
    subject_id: str,
    *,
    message: str,
    hint: str,
    now: datetime,
) -> bool:
    """Raise an alarm; False, and no change, if one of that kind is open for the subject."""
    insert = alarms.insert().values(
        kind=kind, subject=subject, subject_id=subject_id, message=message, hint=hint, raised_at=now
    )
    try:
        with connection.begin_nested():
            alarm_id = connection.execute(insert.returning(alarms.c.alarm_id)).scalar_one()
    except sa.exc.IntegrityError:
        return False
    record_event(
        connection,
        at=now,
        actor="farm",
        kind=AlarmEvent.RAISED,
        subject=EventSubject.ALARM,
        subject_id=alarm_id,
        to_state="open",
        cause=f"{kind} of {subject}:{subject_id}: {message}",
    )
    return True


def clear_alarm(connection: Connection, alarm: Alarm, *, now: datetime, actor: str, cause: str) -> bool:
    """Clear an alarm; False if it was cleared already."""
    return record_if_moved(
        connection,
        alarms.update()
        .where(alarms.c.alarm_id == alarm.alarm_id, alarms.c.cleared_at.is_(None))
        .values(cleared_at=now, cleared_by=actor),
        at=now,
        actor=actor,
        kind=AlarmEvent.CLEARED,
        subject=EventSubject.ALARM,
        subject_id=alarm.alarm_id,
        from_state="open",
        to_state="cleared",
        cause=f"{alarm.kind} of {alarm.subject}:{alarm.subject_id}: {cause}",
    )


def open_alarms(connection: Connection) -> list[Alarm]:
    """Return the open alarms, oldest first."""
    query = sa.select(alarms).where(alarms.c.cleared_at.is_(None)).order_by(alarms.c.alarm_id)
    return [_alarm(row) for row in connection.execute(query)]


def last_alarms(connection: Connection, *, limit: int) -> list[Alarm]:
    """Return the last alarms, cleared ones included, newest first."""
    query = sa.select(alarms).order_by(alarms.c.alarm_id.desc()).limit(limit)
    return [_alarm(row) for row in connection.execute(query)]


def find_alarm(connection: Connection, alarm_id: int) -> Alarm | None:
    """Return an alarm by its id, or None."""
    row = connection.execute(sa.select(alarms).where(alarms.c.alarm_id == alarm_id)).one_or_none()
    return None if row is None else _alarm(row)


def find_open_alarm(
    connection: Connection, kind: AlarmKind, subject: AlarmSubject, subject_id: str
) -> Alarm | None:
    """Return the open alarm of a kind for a subject, or None."""
    query = sa.select(alarms).where(
        alarms.c.kind == kind,
        alarms.c.subject == subject,
        alarms.c.subject_id == subject_id,
        alarms.c.cleared_at.is_(None),
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else _alarm(row)


def cleared_since(connection: Connection, since: datetime) -> list[Alarm]:
    """Return the alarms that were cleared after a time, oldest first."""
    query = sa.select(alarms).where(alarms.c.cleared_at > since).order_by(alarms.c.alarm_id)
    return [_alarm(row) for row in connection.execute(query)]


def _alarm(row: sa.Row[Any]) -> Alarm:
    return Alarm(
        alarm_id=row.alarm_id,
        kind=AlarmKind(row.kind),
        subject=AlarmSubject(row.subject),
        subject_id=row.subject_id,
        message=row.message,
        hint=row.hint,
        raised_at=row.raised_at,
        cleared_at=row.cleared_at,
        cleared_by=row.cleared_by,
        notified_at=row.notified_at,
    )
