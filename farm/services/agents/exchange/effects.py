"""The changes that an exchange calls for: decided in `reconcile.py`, applied by `apply_effects`."""

from collections.abc import Sequence
from dataclasses import dataclass

from farm.core.base.ids import DeviceId
from farm.core.devices.device import Admin, DeviceFacts, Presence
from farm.core.jobs.attempt import AttemptEvent, AttemptRecord, AttemptState
from farm.core.results.settle.effects import Consequence
from farm.core.upkeep.device_action import DeviceAction
from farm.store.devices.reports import DeviceStatusUpdate
from farm.wire.agents.protocol import DeviceActionReport


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceAttempt:
    """An attempt reached its next state."""

    attempt: AttemptRecord
    event: AttemptEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordWaiting:
    """The condition that an attempt waits for in its present state changed."""

    attempt: AttemptRecord
    state: AttemptState
    waiting_for: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnAttempt:
    """Nothing of an attempt ran: its job is queued again."""

    attempt: AttemptRecord
    reason: str
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAttempt:
    """An attempt of a cancelled job has stopped."""

    attempt: AttemptRecord
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseAttempt:
    """No further report of an attempt will come, its late one apart."""

    attempt: AttemptRecord
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
    """The facts of a device were read on it."""

    device_id: DeviceId
    facts: DeviceFacts
    #: True if it has no number among the devices of its model.
    is_unnumbered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordStatus:
    """The host's report of all of its devices."""

    updates: Sequence[DeviceStatusUpdate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provision:
    """A device is to have its settings made."""

    device_id: DeviceId


@dataclass(frozen=True, slots=True, kw_only=True)
class RefuseDevice:
    """The host does not get a device that it reports."""

    device_id: DeviceId
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefuseNewDevices:
    """The host reports more devices than a host can have."""

    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindIncident:
    """A device went away: it may be a fault of the host, which shows in what is recorded by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishDeviceAction:
    """A device action was done, or could not be."""

    device_action: DeviceAction
    report: DeviceActionReport


#: Effects that leave every row of a device as it was, but for the state of its attempt.
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
    | RecordStatus
    | Provision
    | RefuseDevice
    | RefuseNewDevices
    | FindIncident
    | FinishDeviceAction
    | Consequence
)
