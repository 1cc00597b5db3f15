"""Documents about alarms."""

from datetime import datetime
from typing import Self

from pydantic import model_validator

from farm.core.operations.alarm import AlarmKind, AlarmSubject
from farm.wire.base import Wire
from farm.wire.documents.devices import OperatorRequest


class AlarmView(Wire):
    """GET /api/v1/alarms, and on stdin of the operators' command."""

    alarm_id: int
    kind: AlarmKind
    subject: AlarmSubject
    subject_id: str
    message: str
    #: What to do about it.
    hint: str
    raised_at: datetime
    #: None while it is open.
    cleared_at: datetime | None
    cleared_by: str | None
    #: Since when the operators' command knows of it.
    notified_at: datetime | None


class ClearRequest(OperatorRequest):
    """POST /api/v1/alarms/{alarm_id}/clear: somebody has seen to it."""

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.reason is None:
            raise ValueError("who clears an alarm says what was done: --reason")
        return self
