"""Documents about events and alarms, and about the farm itself."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from pydantic import model_validator

from farm.core.base.ids import DeviceId
from farm.core.operations.alarm import Alarm
from farm.core.operations.event import SubjectEvent
from farm.wire.base import Count, Wire
from farm.wire.documents.devices import OperatorRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedEvent(SubjectEvent):
    """One change: its actor, subject, old and new state, and cause."""

    event_id: Count
    #: Of the device that it is about, if that has one.
    device_label: str | None = None


class EventPage(Wire):
    """GET /api/v1/events: oldest first."""

    events: tuple[LoggedEvent, ...]
    #: The next value of `after`, which continues without a gap or a repetition.
    next: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmView(Alarm):
    """GET /api/v1/alarms: an alarm, with the device that it is about as it is named now."""

    device_id: DeviceId | None = None
    device_label: str | None = None


class ClearRequest(OperatorRequest):
    """POST /api/v1/alarms/{alarm_id}/clear: an operator has resolved it."""

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.reason is None:
            raise ValueError("who clears an alarm says what was done: --reason")
        return self


class FarmView(Wire):
    """GET /api/v1/farm: the identity of the farm."""

    version: str
    wire_version: int
    started_at: datetime
    data_dir: str
    #: URL for agents on other machines; None when the farm serves none.
    agents_url: str | None = None
