"""The changes that an exchange calls for: `reconcile` decides on them, `apply` carries them out."""

from collections.abc import Sequence
from dataclasses import dataclass

from farm.core.base.ids import DeviceId
from farm.core.checks.incident import Incident
from farm.core.devices.device import Admin, DeviceFacts, Health, Presence
from farm.core.devices.host_state import IncidentKind
from farm.core.jobs.attempt import Attempt, AttemptEvent, AttemptState
from farm.core.operations.alarm import AlarmKind
from farm.core.operations.event import DeviceEvent
from farm.store.devices.reports import DeviceStatusUpdate
from farm.store.upkeep.device_actions import DeviceAction
from farm.wire.agents.protocol import DeviceActionReport


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceAttempt:
    """Its agent is further with an attempt."""

    attempt: Attempt
    event: AttemptEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordWaiting:
    """What an attempt waits for in its present state changed."""

    attempt: Attempt
    state: AttemptState
    waiting_for: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnAttempt:
    """Nothing of an attempt ran: its job is queued again."""

    attempt: Attempt
    reason: str
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAttempt:
    """An attempt of a cancelled job has stopped."""

    attempt: Attempt
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseAttempt:
    """Nothing more will be heard of an attempt, its late report apart."""

    attempt: Attempt
    cause: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RaiseFence:
    """The device's next fencing token is to be higher than `fence`."""

    device_id: DeviceId
    fence: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddDevice:
    """The farm sees a device for the first time."""

    device_id: DeviceId
    serial: str
    admin: Admin


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkAbsent:
    """The host no longer lists a device."""

    device_id: DeviceId
    presence: Presence


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFacts:
    """What a device is was read on it."""

    device_id: DeviceId
    facts: DeviceFacts
    #: Whether it has no number among the devices of its model.
    is_unnumbered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSeen:
    """What the host sees of its devices, all of them."""

    seen: Sequence[DeviceStatusUpdate]


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveHealth:
    """The health of a device changes if it is one of `sources`."""

    device_id: DeviceId
    sources: Sequence[Health]
    to: Health
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCheck:
    """A device is to be checked before its next job."""

    device_id: DeviceId
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Provision:
    """A device is to have its settings made."""

    device_id: DeviceId


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDeviceEvent:
    """Something happened to a device that changes no other row."""

    device_id: DeviceId
    kind: DeviceEvent
    cause: str
    from_state: str | None = None
    to_state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefuseDevice:
    """The host does not get a device that it reports."""

    device_id: DeviceId
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RaiseDeviceAlarm:
    """Somebody has to look at a device, unless they cleared the same alarm a short while ago."""

    kind: AlarmKind
    device_id: DeviceId
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearDeviceAlarm:
    """What an alarm of a device was about is over; there may be none."""

    kind: AlarmKind
    device_id: DeviceId
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenHostIncident:
    """The agent says that something is wrong with the host as a whole."""

    kind: IncidentKind
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndIncident:
    """An open incident is over."""

    incident: Incident
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LookForIncident:
    """A device went away: it may be the host's trouble, which shows in what is recorded by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndErrand:
    """An errand was done, or could not be."""

    device_action: DeviceAction
    report: DeviceActionReport


#: What leaves every row of a device as it was, but for the state of its attempt.
Progress = AdvanceAttempt | RecordWaiting
Effect = (
    Progress
    | ReturnAttempt
    | CancelAttempt
    | LoseAttempt
    | RaiseFence
    | AddDevice
    | MarkAbsent
    | RecordFacts
    | RecordSeen
    | MoveHealth
    | RequestCheck
    | Provision
    | RecordDeviceEvent
    | RefuseDevice
    | RaiseDeviceAlarm
    | ClearDeviceAlarm
    | OpenHostIncident
    | EndIncident
    | LookForIncident
    | EndErrand
)
