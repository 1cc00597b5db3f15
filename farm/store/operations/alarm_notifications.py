"""Which alarms the operators' command is still to be told of."""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.database.tables import alarms
from farm.store.operations.alarms import Alarm, find_alarm

#: A command that does not take an alarm is tried so often, each time twice as long after the last.
MAX_NOTIFY_ATTEMPTS = 5
_RETRY_AFTER = timedelta(minutes=2)


def claim_alarm_to_notify(connection: Connection, *, now: datetime) -> Alarm | None:
    """The oldest open alarm that is due to be told of; for a while nobody else gets it."""
    tries = connection.execute(
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
    if tries is None:
        return None
    taken = connection.execute(
        alarms.update()
        .where(alarms.c.alarm_id == tries.alarm_id, alarms.c.notify_attempts == tries.notify_attempts)
        .values(
            notify_attempts=tries.notify_attempts + 1,
            notify_again_at=now + _RETRY_AFTER * (1 << tries.notify_attempts),
        )
    )
    return find_alarm(connection, tries.alarm_id) if taken.rowcount else None


def record_notified(connection: Connection, alarm_id: int, *, now: datetime) -> None:
    """Note that the command took it."""
    connection.execute(alarms.update().where(alarms.c.alarm_id == alarm_id).values(notified_at=now))
