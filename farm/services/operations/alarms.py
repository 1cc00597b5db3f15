"""List, raise and clear alarms: what an operator should see to, because the farm cannot fix it."""

from dataclasses import fields
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.clock import ADOPT_AFTER_S
from farm.core.base.units import elapsed_text
from farm.core.errors import NotFound
from farm.core.operations.alarm import Alarm, AlarmKind, AlarmSubject, DueAlarm
from farm.database.transaction import Tx
from farm.store.devices.devices import device_labels
from farm.store.operations import alarms as alarm_store
from farm.wire.documents.operations import AlarmView, ClearRequest

_FIELDS = tuple(field.name for field in fields(Alarm))
#: The number that are listed where cleared ones are asked for, too, and at most.
LAST_ALARMS, MOST_ALARMS = 200, 1000


def list_alarms(
    connection: Connection,
    *,
    cleared: bool = False,
    since: datetime | None = None,
    limit: int | None = None,
) -> list[AlarmView]:
    """Return the open alarms, oldest first; or the newest of all, newest first, 200 without a limit.

    With `since`, they are those that were raised since then.
    """
    listed = (
        alarm_store.last_alarms(connection, since=since, limit=limit or LAST_ALARMS)
        if cleared
        else alarm_store.open_alarms(connection, since=since, limit=limit)
    )
    device_by_alarm = alarm_store.devices_of_alarms(connection, listed)
    label_by_device = device_labels(connection, {*device_by_alarm.values()})
    views = []
    for alarm in listed:
        device_id = device_by_alarm.get(alarm.alarm_id)
        label = None if device_id is None else label_by_device.get(device_id)
        own = {name: getattr(alarm, name) for name in _FIELDS}
        views.append(AlarmView(**own, device_id=device_id, device_label=label))
    return views


def clear_by_operator(tx: Tx, alarm_id: int, request: ClearRequest) -> Alarm:
    """Clear an alarm in an operator's name; one that is cleared stays as it is.

    Raises:
        NotFound: there is no such alarm.
    """
    alarm = alarm_store.find_alarm(tx.connection, alarm_id)
    if alarm is None:
        raise NotFound(f"there is no alarm {alarm_id}", hint="`farm alarms --all` lists them")
    actor, cause = f"user:{request.by}", request.reason or ""
    if alarm.cleared_at is None:
        alarm_store.clear_alarm(tx.by(actor), alarm.key, cause=cause)
    return alarm_store.find_alarm(tx.connection, alarm_id) or alarm


def step_text(step_s: float) -> str | None:
    """Return how the wall clock of this machine was set; None if it agrees with the time that passed."""
    if not step_s:
        return None
    return f"this machine's clock was set {elapsed_text(abs(step_s))} {'ahead' if step_s > 0 else 'back'}"


def report_step(tx: Tx, machine: str, step_s: float) -> None:
    """Raise the alarm of a machine whose wall clock was set, or clear it where that is over."""
    kind, subject = AlarmKind.CLOCK_STEPPED, AlarmSubject.FARM
    text = step_text(step_s)
    if text is None:
        cause = "the farm and its machine agree on the time"
        alarm_store.clear_alarm(tx.by("farm"), (kind, subject, machine), cause=cause)
        return
    message = f"{machine}: {text}; the farm goes on by the time that passed"
    hint = (
        "run NTP on the farm's machine. A new time is taken over after"
        f" {elapsed_text(ADOPT_AFTER_S)}, on PostgreSQL only if it is that of the database server"
    )
    alarm = DueAlarm(kind=kind, subject=subject, subject_id=machine, message=message, hint=hint)
    alarm_store.add_alarm(tx, alarm)
