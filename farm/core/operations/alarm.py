"""Alarms: conditions that need an operator, because the farm cannot fix them automatically."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar


class AlarmKind(StrEnum):
    """The kinds of alarm; at most one of a kind is open for a subject."""

    #: A phone of the pool has not been seen, or has been unusable, for longer than an operator should wait.
    DEVICE_SILENT = "device_silent"
    #: The ladder of recovery has come to its end.
    RECOVERY_FAILED = "recovery_failed"
    #: Only its owner can let this host in again.
    DEVICE_UNAUTHORIZED = "device_unauthorized"
    #: Two phones with one serial number, or one phone in two places.
    IDENTITY_CLASH = "identity_clash"
    #: A device reports what cannot be: a run that the farm never gave it, or numbers that no device has.
    REPORT_IMPLAUSIBLE = "report_implausible"
    #: A phone is slower, or faster, than its own history and its kind: battery, heat, or an update.
    REFERENCE_DRIFT = "reference_drift"
    #: Equivalent cells run on other hardware than before.
    PLACEMENT_CHANGED = "placement_changed"
    #: A cell that had results regularly has none any more, though its phone could run it.
    CELL_SILENT = "cell_silent"
    #: The adb server of a host crashes again and again, does not answer, or its USB is exhausted.
    HOST_INCIDENT = "host_incident"
    #: The clock of a farm's machine was set, and is not believed; or a host's differs from the farm's.
    CLOCK_STEPPED = "clock_stepped"
    #: What ran before on a phone, or how late in its block, shows in the time of its runs.
    ORDER_SHOWS = "order_shows"
    #: Something has become slower, and stays so.
    REGRESSION = "regression"


class AlarmSubject(StrEnum):
    """The kinds of subject of an alarm."""

    DEVICE = "device"
    HOST = "host"
    CELL = "cell"
    SERIES = "series"
    CHANGE = "change"
    STANDING_MATRIX = "standing_matrix"
    #: A machine that runs a farm process, by its name.
    FARM = "farm"


class AlarmEvent(StrEnum):
    """Alarm events."""

    #: An event that an operator should look at.
    RAISED = "alarm_raised"
    #: It is over, or an operator says that it is seen to.
    CLEARED = "alarm_cleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmRules:
    """The durations after which a condition raises an alarm."""

    #: A phone of the pool that cannot be used.
    device_after: timedelta = timedelta(hours=1)
    #: One that only its owner can let in, or a failing host: nothing gets better by waiting.
    failing_after: timedelta = timedelta(minutes=10)
    #: A queue that is not served, though its phone could work.
    work_after: timedelta = timedelta(hours=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """GET /api/v1/alarms."""

    #: Sent as a document of its own: unknown keys are refused, as in every document of `farm.wire`.
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    alarm_id: int
    kind: AlarmKind
    subject: AlarmSubject
    subject_id: str
    message: str
    #: The remedy.
    hint: str
    raised_at: datetime
    #: None while it is open.
    cleared_at: datetime | None
    cleared_by: str | None
    #: Since when the operators' command knows of it.
    notified_at: datetime | None

    @property
    def key(self) -> "AlarmKey":
        """Return the key under which one alarm is open at a time."""
        return self.kind, self.subject, self.subject_id

    @property
    def page(self) -> str:
        """Return the path of the page that shows what it is about."""
        folder = _PAGES.get(self.subject)
        return "/alarms" if folder is None else f"/{folder}/{self.subject_id}"


#: Folders of pages by the subject that they show.
_PAGES = {AlarmSubject.DEVICE: "devices", AlarmSubject.CELL: "cells", AlarmSubject.CHANGE: "changes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmMessage(Alarm):
    """An alarm as it is sent: on stdin of the operators' command, to the webhook, and attached to mail."""

    #: Its page; None where the settings do not say how people reach the farm's pages.
    link: str | None


#: An alarm that a person cleared is not raised again for so long, though it lasts: they know.
QUIET_AFTER_ACKNOWLEDGED = timedelta(days=1)
#: Identity: one alarm at a time is open of each key.
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
