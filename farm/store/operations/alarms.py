"""Alarms: each condition raises one, which is cleared once; each change with its event row."""

from collections.abc import Collection
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.operations.alarm import (
    QUIET_AFTER_ACKNOWLEDGED,
    Alarm,
    AlarmEvent,
    AlarmKey,
    AlarmKind,
    AlarmSubject,
    DueAlarm,
)
from farm.database.rows import find_record, is_among, to_record
from farm.database.tables import alarms, cells, series
from farm.database.transaction import Tx
from farm.store.operations.events import record_event

#: The most attempts to notify of an alarm, with a doubled pause after each.
MAX_NOTIFY_ATTEMPTS = 5
_RETRY_AFTER = timedelta(minutes=2)


def add_alarm(tx: Tx, alarm: DueAlarm) -> bool:
    """Raise an alarm; False, and no change, if one of that kind is open for the subject.

    Raises:
        sqlalchemy.exc.IntegrityError: the alarm breaks another rule of its table.
    """
    dialect = postgresql if tx.connection.dialect.name == "postgresql" else sqlite
    insert = dialect.insert(alarms).values(**asdict(alarm), raised_at=tx.now)
    # That index and no other rule: what the table refuses for another reason must not count as raised.
    unless_open = insert.on_conflict_do_nothing(
        index_elements=[alarms.c.kind, alarms.c.subject, alarms.c.subject_id],
        index_where=sa.text("cleared_at IS NULL"),
    )
    alarm_id = tx.connection.execute(unless_open.returning(alarms.c.alarm_id)).scalar_one_or_none()
    if alarm_id is None:
        return False
    cause = f"{alarm.kind} of {alarm.subject}:{alarm.subject_id}: {alarm.message}"
    record_event(tx.by("farm"), AlarmEvent.RAISED, alarm_id, to_state="open", cause=cause)
    return True


def clear_alarm(tx: Tx, key: AlarmKey, *, cause: str) -> bool:
    """Clear the open alarm of a kind for a subject; False if none is open."""
    kind, subject, subject_id = key
    cleared = tx.connection.execute(
        alarms.update()
        .where(
            alarms.c.kind == kind,
            alarms.c.subject == subject,
            alarms.c.subject_id == subject_id,
            alarms.c.cleared_at.is_(None),
        )
        .values(cleared_at=tx.now, cleared_by=tx.actor)
        .returning(alarms.c.alarm_id)
    )
    alarm_id = cleared.scalar_one_or_none()
    if alarm_id is None:
        return False
    cause = f"{kind} of {subject}:{subject_id}: {cause}"
    record_event(tx, AlarmEvent.CLEARED, alarm_id, from_state="open", to_state="cleared", cause=cause)
    return True


def count_open(connection: Connection) -> int:
    """Count the open alarms."""
    query = sa.select(sa.func.count()).select_from(alarms).where(alarms.c.cleared_at.is_(None))
    return connection.execute(query).scalar_one()


def open_alarms(
    connection: Connection, *, since: datetime | None = None, limit: int | None = None
) -> list[Alarm]:
    """Return the open alarms, oldest first: all, or so many; with `since`, those raised since then."""
    query = sa.select(alarms).where(alarms.c.cleared_at.is_(None)).order_by(alarms.c.alarm_id).limit(limit)
    if since is not None:
        query = query.where(alarms.c.raised_at >= since)
    return [to_record(Alarm, row) for row in connection.execute(query)]


def last_alarms_query(*, since: datetime | None, limit: int) -> sa.Select[Any]:
    """Return the query of the last alarms, cleared ones included, newest first."""
    query = sa.select(alarms).order_by(alarms.c.raised_at.desc(), alarms.c.alarm_id.desc()).limit(limit)
    return query if since is None else query.where(alarms.c.raised_at >= since)


def last_alarms(connection: Connection, *, since: datetime | None = None, limit: int) -> list[Alarm]:
    """Return the last alarms, cleared ones included, newest first; with `since`, those raised since then."""
    query = last_alarms_query(since=since, limit=limit)
    return [to_record(Alarm, row) for row in connection.execute(query)]


def devices_of_alarms(connection: Connection, listed: Collection[Alarm]) -> dict[int, DeviceId]:
    """Return the devices that alarms are about, by the id of the alarm; those of hosts have none."""
    own = {
        alarm.alarm_id: DeviceId(alarm.subject_id) for alarm in listed if alarm.subject is AlarmSubject.DEVICE
    }
    for subject, key in ((AlarmSubject.CELL, cells.c.cell_id), (AlarmSubject.SERIES, series.c.series_id)):
        subject_ids = {int(alarm.subject_id) for alarm in listed if alarm.subject is subject}
        if not subject_ids:
            continue
        query = sa.select(key, key.table.c.device_id).where(is_among(connection, key, subject_ids))
        device_by_subject = {str(number): DeviceId(name) for number, name in connection.execute(query)}
        own |= {
            alarm.alarm_id: device_by_subject[alarm.subject_id]
            for alarm in listed
            if alarm.subject is subject and alarm.subject_id in device_by_subject
        }
    return own


def find_alarm(connection: Connection, alarm_id: int) -> Alarm | None:
    """Return an alarm by its id, or None."""
    return find_record(connection, Alarm, sa.select(alarms).where(alarms.c.alarm_id == alarm_id))


def acknowledged_alarms(tx: Tx) -> set[AlarmKey]:
    """Return the alarms that persons cleared a short while ago."""
    query = sa.select(alarms.c.kind, alarms.c.subject, alarms.c.subject_id).where(
        alarms.c.cleared_at > tx.now - QUIET_AFTER_ACKNOWLEDGED, alarms.c.cleared_by != "farm"
    )
    return {
        (AlarmKind(kind), AlarmSubject(about), about_id)
        for kind, about, about_id in tx.connection.execute(query)
    }


def claim_alarm_to_notify(tx: Tx) -> Alarm | None:
    """Claim the oldest open alarm that is due for notification; no other process gets it until its next
    retry.
    """
    due = tx.connection.execute(
        sa.select(alarms.c.alarm_id, alarms.c.notify_attempts)
        .where(
            alarms.c.cleared_at.is_(None),
            alarms.c.notified_at.is_(None),
            alarms.c.notify_attempts < MAX_NOTIFY_ATTEMPTS,
            sa.or_(alarms.c.notify_again_at.is_(None), alarms.c.notify_again_at <= tx.now),
        )
        .order_by(alarms.c.alarm_id)
        .limit(1)
    ).one_or_none()
    if due is None:
        return None
    update = tx.connection.execute(
        alarms.update()
        .where(alarms.c.alarm_id == due.alarm_id, alarms.c.notify_attempts == due.notify_attempts)
        .values(
            notify_attempts=due.notify_attempts + 1,
            notify_again_at=tx.now + _RETRY_AFTER * (1 << due.notify_attempts),
        )
    )
    return find_alarm(tx.connection, due.alarm_id) if update.rowcount else None


def release_alarms_to_notify(connection: Connection, alarm_ids: Collection[int]) -> None:
    """Undo the claim of alarms that a channel has not been given."""
    connection.execute(
        alarms.update()
        .where(alarms.c.alarm_id.in_(alarm_ids))
        .values(notify_attempts=alarms.c.notify_attempts - 1, notify_again_at=None)
    )


def record_notified(tx: Tx, alarm_id: int) -> None:
    """Record that the command succeeded."""
    tx.connection.execute(alarms.update().where(alarms.c.alarm_id == alarm_id).values(notified_at=tx.now))
