"""Reads of the event log: pages by subject, actor, kind or time, and the history of single subjects."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from farm.core.operations.event import DeviceEvent, Event, EventSubject
from farm.database.tables import attempts, events, sessions
from farm.wire.documents.operations import LoggedEvent

_EVENT_COLUMNS = [events.c[field.name] for field in fields(Event)]


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
    return [LoggedEvent(**row._mapping) for row in connection.execute(query)][::-1]


def events_after(
    connection: Connection, which: EventFilter, *, after: int, until: int, limit: int
) -> list[LoggedEvent]:
    """Return the first events after one id and up to another, oldest first."""
    query = _conditions(which).where(events.c.event_id > after, events.c.event_id <= until)
    return [
        LoggedEvent(**row._mapping)
        for row in connection.execute(query.order_by(events.c.event_id).limit(limit))
    ]


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


def last_events(
    connection: Connection,
    subject: str,
    subject_id: object,
    *,
    kinds: Collection[str] = (),
    limit: int = 1,
) -> list[Event]:
    """Return the last events of a subject, newest first; of these kinds only, if any are given."""
    query = (
        sa.select(*_EVENT_COLUMNS)
        .where(events.c.subject == subject, events.c.subject_id == str(subject_id))
        .order_by(events.c.event_id.desc())
        .limit(limit)
    )
    if kinds:
        query = query.where(events.c.kind.in_(kinds))
    return [Event(**row._mapping) for row in connection.execute(query)]


def last_online_at(connection: Connection, device_id: DeviceId) -> datetime | None:
    """Return when a device was last online; None if it never was."""
    query = _last_change_query(device_id, DeviceEvent.PRESENCE_CHANGED).where(
        events.c.from_state == Presence.ONLINE
    )
    return connection.execute(query).scalar()


def health_since(connection: Connection, device_id: DeviceId) -> datetime | None:
    """Return when a device's health last changed; None if it never did."""
    return connection.execute(_last_change_query(device_id, DeviceEvent.HEALTH_CHANGED)).scalar()


def devices_with_events_since(
    connection: Connection, kind: DeviceEvent, since: datetime
) -> dict[DeviceId, str | None]:
    """Return the devices with events of a kind since a time, with the newest cause of each."""
    query = (
        sa.select(events.c.subject_id, events.c.cause)
        .where(events.c.kind == kind, events.c.at >= since)
        .order_by(events.c.event_id)
    )
    return {DeviceId(row.subject_id): row.cause for row in connection.execute(query)}


def _last_change_query(device_id: DeviceId, kind: DeviceEvent) -> sa.Select[Any]:
    """Return the query of the time of a device's last event of a kind."""
    return (
        sa.select(events.c.at)
        .where(
            events.c.subject == EventSubject.DEVICE, events.c.subject_id == device_id, events.c.kind == kind
        )
        .order_by(events.c.event_id.desc())
        .limit(1)
    )
