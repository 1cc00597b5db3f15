"""Alarms of which the operators' command is not notified yet."""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.database.tables import alarms
from farm.store.operations.alarms import Alarm, find_alarm

#: The most attempts to notify of an alarm, with a doubled pause after each.
MAX_NOTIFY_ATTEMPTS = 5
_RETRY_AFTER = timedelta(minutes=2)


def claim_alarm_to_notify(connection: Connection, *, now: datetime) -> Alarm | None:
    """Claim the oldest open alarm that is due for notification; no other process gets it until its next
    retry.
    """
    due = connection.execute(
        sa.select(alarms.c.alarm_id, alarms.c.notify_attempts)
        .where(
            alarms.c.cleared_at.is_(None),
            alarms.c.notified_at.is_(None),
            alarms.c.notify_attempts < MAX_NOTIFY_ATTEMPTS,
            sa.or_(alarms.c.notify_again_at.is_(None), alarms.c.notify_again_at <= now),
        )
        .order_by(alarms.c.alarm_id)
        .limit(1)
    ).one_or_none()
    if due is None:
        return None
    update = connection.execute(
        alarms.update()
        .where(alarms.c.alarm_id == due.alarm_id, alarms.c.notify_attempts == due.notify_attempts)
        .values(
            notify_attempts=due.notify_attempts + 1,
            notify_again_at=now + _RETRY_AFTER * (1 << due.notify_attempts),
        )
    )
    return find_alarm(connection, due.alarm_id) if update.rowcount else None


def record_notified(connection: Connection, alarm_id: int, *, now: datetime) -> None:
    """Record that the command succeeded."""
    connection.execute(alarms.update().where(alarms.c.alarm_id == alarm_id).values(notified_at=now))
