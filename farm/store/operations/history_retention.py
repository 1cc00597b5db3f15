"""Old history, page by page in the order of ids: events, sessions, and the plans of settled attempts.

Each function that finds reads one page, by the primary key and by a fixed number of statements, and returns
what of it may go. Removing is apart, so that no lock is held while kept rows are passed over.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.devices.device import Presence
from farm.core.devices.host_state import OPEN_SESSION
from farm.core.jobs.job import JobState
from farm.core.operations.event import ROUTINE_EVENTS, DeviceEvent, Event, EventSubject, FarmEvent
from farm.database.rows import is_among
from farm.database.tables import attempts, events, evidence, is_one_of, jobs, sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    """One page of a table: what may go, and where the next page begins."""

    #: Ids, in order.
    removable: Sequence[int] = ()
    #: Of the removable rows.
    oldest: datetime | None = None
    #: The last id of the page; None: nothing older than the limit follows.
    last_id: int | None = None


def oldest_event_at(connection: Connection) -> datetime | None:
    """Return the time of the oldest event."""
    return connection.execute(sa.select(events.c.at).order_by(events.c.at).limit(1)).scalar()


def last_removal(connection: Connection) -> Event | None:
    """Return the event of the last removal of history, or None."""
    columns = [events.c[field.name] for field in fields(Event)]
    query = sa.select(*columns).where(events.c.kind == FarmEvent.HISTORY_EXPIRED.value)
    row = connection.execute(query.order_by(events.c.event_id.desc()).limit(1)).one_or_none()
    return None if row is None else Event(**row._mapping)


def find_old_events(connection: Connection, *, after: int, before: datetime, limit: int) -> HistoryPage:
    """Return the next page of events, with the routine ones from before a time that nothing needs.

    Those of a job and its attempts are needed until it is finished, and as long as raw output of it is
    stored: they belong to a number that can be checked. So are those of an open session, and the last of a
    device's presence.
    """
    columns = (events.c.event_id, events.c.at, events.c.kind, events.c.subject, events.c.subject_id)
    query = sa.select(*columns).where(events.c.event_id > after).order_by(events.c.event_id).limit(limit)
    rows = connection.execute(query).all()
    old = [row for row in rows if row.at < before]
    routine = [row for row in old if row.kind in ROUTINE_EVENTS]
    needed = {
        (EventSubject.JOB.value, str(job_id))
        for job_id in _needed_jobs(connection, _numbers(routine, EventSubject.JOB))
    }
    needed |= {
        (EventSubject.ATTEMPT.value, str(attempt_id))
        for attempt_id in _needed_attempts(connection, _numbers(routine, EventSubject.ATTEMPT))
    }
    needed |= {
        (EventSubject.SESSION.value, str(session_id))
        for session_id in _open_sessions(connection, _numbers(routine, EventSubject.SESSION))
    }
    presence = [row.event_id for row in routine if row.kind == DeviceEvent.PRESENCE_CHANGED]
    kept = set(presence) - _followed(connection, presence)
    going = [
        row for row in routine if (row.subject, row.subject_id) not in needed and row.event_id not in kept
    ]
    return HistoryPage(
        removable=[row.event_id for row in going],
        oldest=min((row.at for row in going), default=None),
        last_id=rows[-1].event_id if old else None,
    )


def remove_events(connection: Connection, event_ids: Sequence[int]) -> int:
    """Delete events; return how many were left to delete."""
    return connection.execute(
        events.delete().where(is_among(connection, events.c.event_id, event_ids))
    ).rowcount


def find_old_sessions(connection: Connection, *, after: int, before: datetime, limit: int) -> HistoryPage:
    """Return the next page of sessions, with the ended ones from before a time that nothing refers to.

    The last session of a host stays, because its epoch must not be used again.
    """
    later = sessions.alias("later")
    query = (
        sa.select(
            sessions.c.session_id,
            sessions.c.heartbeat_at,
            sessions.c.state,
            sa.exists().where(attempts.c.session_id == sessions.c.session_id).label("has_attempts"),
            sa.exists()
            .where(later.c.host_id == sessions.c.host_id, later.c.epoch > sessions.c.epoch)
            .label("is_followed"),
        )
        .where(sessions.c.session_id > after)
        .order_by(sessions.c.session_id)
        .limit(limit)
    )
    rows = connection.execute(query).all()
    old = [row for row in rows if row.heartbeat_at < before]
    going = [row for row in old if row.state not in OPEN_SESSION and row.is_followed and not row.has_attempts]
    return HistoryPage(
        removable=[row.session_id for row in going],
        oldest=min((row.heartbeat_at for row in going), default=None),
        last_id=rows[-1].session_id if old else None,
    )


def remove_sessions(connection: Connection, session_ids: Sequence[int]) -> int:
    """Delete sessions; return how many were left to delete.

    Raises:
        sqlalchemy.exc.IntegrityError: an attempt refers to one of them; none is deleted.
    """
    which = is_among(connection, sessions.c.session_id, session_ids)
    return connection.execute(sessions.delete().where(which)).rowcount


def find_old_plans(connection: Connection, *, after: int, before: datetime, limit: int) -> HistoryPage:
    """Return the next page of attempts, with those settled before a time whose raw output is gone.

    Only they need no plan: a settled attempt takes no other report, and nothing is left to parse again.
    """
    query = (
        sa.select(
            attempts.c.attempt_id,
            attempts.c.claimed_at,
            attempts.c.finished_at,
            sa.and_(
                attempts.c.plan.is_not(sa.null()),
                attempts.c.report_digest.is_not(None),
                ~sa.exists().where(
                    evidence.c.attempt_id == attempts.c.attempt_id, evidence.c.expired_at.is_(None)
                ),
            ).label("may_go"),
        )
        .where(attempts.c.attempt_id > after)
        .order_by(attempts.c.attempt_id)
        .limit(limit)
    )
    rows = connection.execute(query).all()
    old = [row for row in rows if row.claimed_at < before]
    going = [row for row in old if row.may_go and row.finished_at is not None and row.finished_at < before]
    return HistoryPage(
        removable=[row.attempt_id for row in going],
        oldest=min((row.claimed_at for row in going), default=None),
        last_id=rows[-1].attempt_id if old else None,
    )


def remove_plans(connection: Connection, attempt_ids: Sequence[int]) -> int:
    """Delete the plans of attempts; return how many were left to delete."""
    which = is_among(connection, attempts.c.attempt_id, attempt_ids)
    update = attempts.update().where(which, attempts.c.plan.is_not(sa.null())).values(plan=sa.null())
    return connection.execute(update).rowcount


def _numbers(rows: Sequence[Any], subject: EventSubject) -> list[int]:
    return sorted({int(row.subject_id) for row in rows if row.subject == subject})


def _has_output() -> sa.ColumnElement[bool]:
    """Return the condition that an attempt of a job has stored raw output."""
    tried = attempts.alias("tried")
    return sa.exists().where(
        tried.c.job_id == jobs.c.job_id,
        evidence.c.attempt_id == tried.c.attempt_id,
        evidence.c.expired_at.is_(None),
    )


def _needed_jobs(connection: Connection, job_ids: Collection[int]) -> Sequence[int]:
    is_needed = sa.or_(jobs.c.state != JobState.FINISHED, _has_output())
    query = sa.select(jobs.c.job_id).where(is_among(connection, jobs.c.job_id, job_ids), is_needed)
    return connection.execute(query).scalars().all() if job_ids else ()


def _needed_attempts(connection: Connection, attempt_ids: Collection[int]) -> Sequence[int]:
    is_needed = sa.or_(jobs.c.state != JobState.FINISHED, _has_output())
    query = (
        sa.select(attempts.c.attempt_id)
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .where(is_among(connection, attempts.c.attempt_id, attempt_ids), is_needed)
    )
    return connection.execute(query).scalars().all() if attempt_ids else ()


def _open_sessions(connection: Connection, session_ids: Collection[int]) -> Sequence[int]:
    query = sa.select(sessions.c.session_id).where(
        is_among(connection, sessions.c.session_id, session_ids), is_one_of(sessions.c.state, OPEN_SESSION)
    )
    return connection.execute(query).scalars().all() if session_ids else ()


def _followed(connection: Connection, event_ids: Collection[int]) -> set[int]:
    """Return the changes of presence after which the device was online and left once more."""
    later = events.alias("later")
    is_followed = sa.exists().where(
        later.c.subject == EventSubject.DEVICE.value,
        later.c.subject_id == events.c.subject_id,
        later.c.event_id > events.c.event_id,
        later.c.kind == DeviceEvent.PRESENCE_CHANGED.value,
        later.c.from_state == Presence.ONLINE.value,
    )
    query = sa.select(events.c.event_id).where(
        is_among(connection, events.c.event_id, event_ids), is_followed
    )
    return set(connection.execute(query).scalars()) if event_ids else set()
