"""Alarms for people: what is open, and that somebody has seen to it."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.errors import NotFound
from farm.store.operations import alarms as alarm_store
from farm.store.operations.alarms import Alarm
from farm.wire.documents.alarms import AlarmView, ClearRequest

#: How many are listed where cleared ones are asked for, too.
LAST_ALARMS = 200


def list_alarms(connection: Connection, *, cleared: bool = False) -> list[AlarmView]:
    """The open alarms, oldest first; or the newest of all, newest first."""
    found = (
        alarm_store.last_alarms(connection, limit=LAST_ALARMS)
        if cleared
        else alarm_store.open_alarms(connection)
    )
    return [alarm_view(alarm) for alarm in found]


def clear_by_operator(
    connection: Connection, alarm_id: int, asked: ClearRequest, *, now: datetime
) -> AlarmView:
    """Clear an alarm in somebody's name; one that is cleared stays as it is.

    Raises:
        NotFound: there is no such alarm.
    """
    found = alarm_store.find_alarm(connection, alarm_id)
    if found is None:
        raise NotFound(f"there is no alarm {alarm_id}", hint="`farm alarms --all` lists them")
    actor, cause = f"user:{asked.by}", asked.reason or ""
    alarm_store.clear_alarm(connection, found, now=now, actor=actor, cause=cause)
    return alarm_view(alarm_store.find_alarm(connection, alarm_id) or found)


def alarm_view(alarm: Alarm) -> AlarmView:
    """One alarm."""
    return AlarmView.model_validate(alarm, from_attributes=True)
