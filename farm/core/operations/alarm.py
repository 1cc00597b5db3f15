"""Alarms: conditions that need an operator, because the farm cannot fix them automatically."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class AlarmKind(StrEnum):
    """The kinds of alarm; at most one of a kind is open for a subject."""

    #: A phone of the pool has not been seen, or has been unusable, for longer than anybody should wait.
    DEVICE_SILENT = "device_silent"
    #: The ladder of recovery has come to its end.
    RECOVERY_FAILED = "recovery_failed"
    #: Only its owner can let this host in again.
    DEVICE_UNAUTHORIZED = "device_unauthorized"
    #: Two phones with one serial number, or one phone in two places.
    IDENTITY_CLASH = "identity_clash"
    #: A phone is slower, or faster, than its own history and its kind: battery, heat, or an update.
    REFERENCE_DRIFT = "reference_drift"
    #: The same work runs on other hardware than before.
    PLACEMENT_CHANGED = "placement_changed"
    #: A cell that had results regularly has none any more, though its phone could run it.
    CELL_SILENT = "cell_silent"
    #: The adb server of a host crashes again and again, does not answer, or its USB is exhausted.
    HOST_INCIDENT = "host_incident"


class AlarmSubject(StrEnum):
    """The kinds of subject of an alarm."""

    DEVICE = "device"
    HOST = "host"
    CELL = "cell"
    SERIES = "series"


class AlarmEvent(StrEnum):
    """Alarm events."""

    #: Something came up that somebody should look at.
    RAISED = "alarm_raised"
    #: It is over, or an operator says that it is seen to.
    CLEARED = "alarm_cleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmRules:
    """The durations after which a condition raises an alarm."""

    #: A phone of the pool that cannot be used.
    device_after: timedelta = timedelta(hours=1)
    #: One that only its owner can let in, or a host in trouble: nothing gets better by waiting.
    trouble_after: timedelta = timedelta(minutes=10)
    #: A queue that nobody works on, though its phone could.
    work_after: timedelta = timedelta(hours=2)


#: What a person cleared is not raised again for so long, though it lasts: they know.
QUIET_AFTER_ACKNOWLEDGED = timedelta(days=1)
#: What one alarm at a time is open of.
AlarmKey = tuple[AlarmKind, AlarmSubject, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DueAlarm:
    """Something that an alarm is due for."""

    kind: AlarmKind
    subject: AlarmSubject
    subject_id: str
    message: str
    hint: str

    @property
    def key(self) -> AlarmKey:
        """Return the key under which one alarm is open at a time."""
        return self.kind, self.subject, self.subject_id
