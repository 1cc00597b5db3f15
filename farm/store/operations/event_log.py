"""Events read back: the newest, or those after one; of one thing, actor or kind where asked."""

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
    """What is asked for; None asks for all."""

    #: A kind of thing and its id. A job's attempts and a host's sessions are part of its story.
    about: tuple[EventSubject, str] | None = None
    actor: str | None = None
    kind: str | None = None
    since: datetime | None = None


def newest_events(connection: Connection, which: EventFilter, *, until: int, limit: int) -> list[LoggedEvent]:
    """The last events up to a number, oldest first."""
    number = _number(which)
    query = _conditions(which).where(number <= until).order_by(number.desc()).limit(limit)
    found = connection.execute(query)
    return [_event(row) for row in found][::-1]


def events_after(
    connection: Connection, which: EventFilter, *, after: int, until: int, limit: int
) -> list[LoggedEvent]:
    """The first events after one number and up to another, oldest first."""
    query = _conditions(which).where(events.c.event_id > after, events.c.event_id <= until)
    return [_event(row) for row in connection.execute(query.order_by(events.c.event_id).limit(limit))]


def _number(which: EventFilter) -> sa.ColumnElement[int]:
    """An event's number; no column where a moment narrows more than the order does.

    Walking back from the newest, a database would go through the whole log for the few of the last hours.
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
