"""Raises and clears alarms: what somebody should look at, because the farm cannot mend it by itself."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.operations.alarm import QUIET_AFTER_ACKNOWLEDGED, AlarmKey, AlarmKind, AlarmSubject
from farm.store.operations import alarms as alarm_store


def raise_alarm(
    connection: Connection,
    kind: AlarmKind,
    subject: AlarmSubject,
    subject_id: str,
    *,
    message: str,
    hint: str,
    now: datetime,
) -> bool:
    """Have somebody look at something; False when an alarm of that kind is open for it already."""
    if alarm_store.find_open_alarm(connection, kind, subject, subject_id) is not None:
        return False
    return alarm_store.add_alarm(connection, kind, subject, subject_id, message=message, hint=hint, now=now)


def clear_alarm(
    connection: Connection,
    kind: AlarmKind,
    subject: AlarmSubject,
    subject_id: str,
    *,
    cause: str,
    now: datetime,
) -> bool:
    """Clear an alarm, because what it was about is over; False when there is none."""
    found = alarm_store.find_open_alarm(connection, kind, subject, subject_id)
    return found is not None and alarm_store.clear_alarm(
        connection, found, now=now, actor="farm", cause=cause
    )


def is_acknowledged(
    connection: Connection, kind: AlarmKind, subject: AlarmSubject, subject_id: str, *, now: datetime
) -> bool:
    """Whether a person cleared such an alarm a short while ago."""
    return (kind, subject, subject_id) in acknowledged_alarms(connection, now=now)


def acknowledged_alarms(connection: Connection, *, now: datetime) -> set[AlarmKey]:
    """What persons cleared a short while ago."""
    cleared = alarm_store.cleared_since(connection, now - QUIET_AFTER_ACKNOWLEDGED)
    return {(each.kind, each.subject, each.subject_id) for each in cleared if each.cleared_by != "farm"}
