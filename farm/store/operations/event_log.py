"""Pages of the event log: the newest events, or those after one, by subject, actor, kind or time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.operations.event import EventSubject
from farm.database.tables import attempts, events, sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedEvent:
    """An event's row."""

    event_id: int
    at: datetime
    actor: str
    kind: str
    subject: str
    subject_id: str
    from_state: str | None
    to_state: str | None
    cause: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """A filter of events; None does not restrict."""

    #: A kind of subject and its id. A job includes its attempts, a host its sessions.
    about: tuple[EventSubject, str] | None = None
    actor: str | None = None
    kind: str | None = None
    since: datetime | None = None


def newest_events(connection: Connection, which: EventFilter, *, until: int, limit: int) -> list[LoggedEvent]:
    """Return the last events up to an id, oldest first."""
    number = _number(which)
    query = _conditions(which).where(number <= until).order_by(number.desc()).limit(limit)
    return [_event(row) for row in connection.execute(query)][::-1]


def events_after(
    connection: Connection, which: EventFilter, *, after: int, until: int, limit: int
) -> list[LoggedEvent]:
    """Return the first events after one id and up to another, oldest first."""
    query = _conditions(which).where(events.c.event_id > after, events.c.event_id <= until)
    return [_event(row) for row in connection.execute(query.order_by(events.c.event_id).limit(limit))]


def _number(which: EventFilter) -> sa.ColumnElement[int]:
    """Return an event's id; as an expression if a time is given, so that the index of times is used.

    By the index of ids, a database would read the whole log for the few events of the last hours.
    """
    return events.c.event_id if which.since is None else events.c.event_id + 0


def _conditions(which: EventFilter) -> sa.Select[Any]:
    query = sa.select(events)
    if which.about is not None:
        query = query.where(_is_about(*which.about))
    if which.actor is not None:
        query = query.where(events.c.actor == which.actor)
    if which.kind is not None:
        query = query.where(events.c.kind == which.kind)
    if which.since is not None:
        query = query.where(events.c.at >= which.since)
    return query


def _is_about(subject: EventSubject, subject_id: str) -> sa.ColumnElement[bool]:
    itself = sa.and_(events.c.subject == subject, events.c.subject_id == subject_id)
    if subject is EventSubject.HOST:
        own = sa.select(sa.cast(sessions.c.session_id, sa.Text)).where(sessions.c.host_id == subject_id)
        return sa.or_(itself, sa.and_(events.c.subject == EventSubject.SESSION, events.c.subject_id.in_(own)))
    if subject is EventSubject.JOB:
        own = sa.select(sa.cast(attempts.c.attempt_id, sa.Text)).where(attempts.c.job_id == int(subject_id))
        return sa.or_(itself, sa.and_(events.c.subject == EventSubject.ATTEMPT, events.c.subject_id.in_(own)))
    return itself


def _event(row: sa.Row[Any]) -> LoggedEvent:
    return LoggedEvent(
        event_id=row.event_id,
        at=row.at,
        actor=row.actor,
        kind=row.kind,
        subject=row.subject,
        subject_id=row.subject_id,
        from_state=row.from_state,
        to_state=row.to_state,
        cause=row.cause,
    )
