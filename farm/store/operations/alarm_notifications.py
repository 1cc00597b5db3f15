"""Which alarms the operators' command is still to be told of."""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.database.tables import alarms
from farm.store.operations.alarms import Alarm, find_alarm

#: A command that does not take an alarm is tried so often, each time twice as long after the last.
TELL_TRIES = 5
_AGAIN_AFTER = timedelta(minutes=2)


def take_alarm_to_tell(connection: Connection, *, now: datetime) -> Alarm | None:
    """The oldest open alarm that is due to be told of; for a while nobody else gets it."""
    tries = connection.execute(
        sa.select(alarms.c.alarm_id, alarms.c.tell_tries)
        .where(
            alarms.c.cleared_at.is_(None),
            alarms.c.told_at.is_(None),
            alarms.c.tell_tries < TELL_TRIES,
            sa.or_(alarms.c.tell_again_at.is_(None), alarms.c.tell_again_at <= now),
        )
        .order_by(alarms.c.alarm_id)
        .limit(1)
    ).one_or_none()
    if tries is None:
        return None
    taken = connection.execute(
        alarms.update()
        .where(alarms.c.alarm_id == tries.alarm_id, alarms.c.tell_tries == tries.tell_tries)
        .values(tell_tries=tries.tell_tries + 1, tell_again_at=now + _AGAIN_AFTER * (1 << tries.tell_tries))
    )
    return find_alarm(connection, tries.alarm_id) if taken.rowcount else None


def note_told(connection: Connection, alarm_id: int, *, now: datetime) -> None:
    """Note that the command took it."""
    connection.execute(alarms.update().where(alarms.c.alarm_id == alarm_id).values(told_at=now))
