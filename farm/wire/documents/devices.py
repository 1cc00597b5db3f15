"""Documents about devices, and operator requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, model_validator

from farm.core.base.ids import AttemptId, DeviceId, HostId, JobId
from farm.core.devices.condition import Condition
from farm.core.devices.device import Admin, Blocker, DeviceFacts, Health, Presence
from farm.core.jobs.job import JobKind
from farm.core.operations.event import Event
from farm.core.operations.usage import UsageState
from farm.core.results.ceiling_history import CeilingHistory
from farm.core.runs.measurement import Outcome
from farm.core.upkeep.device_action import DeviceAction
from farm.core.upkeep.device_settings import DeviceSettingsRecord
from farm.core.upkeep.recovery import Recovery
from farm.wire.base import Count, Wire

PERSON = r"^[^\x00-\x20\x7f]+$"
#: The name of the requester, which the one of an access token overrides.
Person = Annotated[str, Field(min_length=1, max_length=64, pattern=PERSON)]
Reason = Annotated[str, Field(min_length=1, max_length=500)]
Label = Annotated[
    str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9]([A-Za-z0-9 ._-]*[A-Za-z0-9])?$")
]
Tag = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
MAX_TAGS = 32
MIN_RESERVATION_S, MAX_RESERVATION_S = 1, 14 * 24 * 3600


class DeviceView(Wire):
    """GET /api/v1/devices."""

    device_id: DeviceId
    #: The operator's name for it, their tags, and its number among the devices of its device model.
    label: str | None
    tags: tuple[str, ...]
    unit: int | None
    serial: str
    host: HostId
    device_model: str | None
    manufacturer: str | None
    soc: str | None
    android: str | None
    api_level: int | None
    abi: str | None
    build_fingerprint: str | None
    presence: Presence
    #: The reason that it is not online.
    detail: str | None
    health: Health
    admin: Admin
    reserved_by: str | None
    reserved_until: datetime | None
    virtual: bool
    fence: int
    #: The job it is busy with.
    job_id: JobId | None
    #: The reasons that it gets no benchmark job now, in order; empty when it can.
    waiting_for: tuple[str, ...]
    #: The same as codes for programs: `not_online`, `health_bad`, `busy`.
    blocked_by: tuple[str, ...]
    #: Start and cause of the first of these, and its remedy.
    since: datetime | None
    why: str | None
    advice: str | None
    condition: Condition | None
    #: The recovery in progress; None without one.
    recovery: Recovery | None = None
    seen_at: datetime

    @property
    def name(self) -> str:
        """Return the name that people use."""
        return self.label or self.device_id

    @property
    def is_reachable(self) -> bool:
        """Return whether its agent can act on it now."""
        return not {Blocker.SESSION_NOT_LIVE, Blocker.NOT_ONLINE} & set(self.blocked_by)

    @property
    def is_quiet(self) -> bool:
        """Return whether no run or remains of one are on it."""
        return not {Blocker.BUSY, Blocker.DEVICE_ACTION, Blocker.NOT_CLEANED} & set(self.blocked_by)


class PastAttempt(Wire):
    """One of the last attempts on a device."""

    attempt_id: AttemptId
    job_id: JobId
    kind: JobKind
    state: str
    outcome: Outcome | None
    code: str | None
    message: str | None = None
    claimed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceActionView(DeviceAction):
    """GET /api/v1/device_actions/{id}: a device action with its result."""

    #: The name of the device.
    name: str
    #: The condition that delays the action; None when the device is free, or when the action is over.
    waiting_for: str | None
    #: The action is not tried after that.
    expires_at: datetime


class DeviceDetail(DeviceView):
    """GET /api/v1/devices/{device}: `device` is an id, a label, or the unique beginning of one."""

    facts: DeviceFacts | None
    queued_jobs: int
    device_actions: tuple[DeviceActionView, ...]
    attempts: tuple[PastAttempt, ...]
    #: The last check or change of the device settings; None: never checked.
    settings: DeviceSettingsRecord | None = None
    #: The result of the reference run of its last check, as text; None: it had none yet.
    reference_run: str | None = None
    #: Start of the reference range from its own runs alone, by an operator's request.
    rebaselined_at: datetime | None = None
    #: The clocks that were limited during its last runs.
    ceilings: tuple[CeilingHistory, ...] = ()
    #: The open incident of its host that concerns this device.
    incident: str | None = None
    #: The newest first.
    events: tuple[Event, ...]


class OperatorRequest(Wire):
    """The actor and cause of a change."""

    by: Person
    reason: Reason | None = None


class LabelRequest(OperatorRequest):
    """POST /api/v1/devices/{device}/label; None removes the label."""

    label: Label | None = None


class TagRequest(OperatorRequest):
    """POST /api/v1/devices/{device}/tags: a tag that is both added and removed is refused."""

    add: Annotated[tuple[Tag, ...], Field(max_length=MAX_TAGS)] = ()
    remove: Annotated[tuple[Tag, ...], Field(max_length=MAX_TAGS)] = ()

    @model_validator(mode="after")
    def _says_one_thing_of_each(self) -> Self:
        if both := sorted(set(self.add) & set(self.remove)):
            raise ValueError(f"{', '.join(both)}: either added or removed")
        return self


class RebaselineRequest(OperatorRequest):
    """POST /api/v1/devices/{device}/rebaseline: accepts a changed speed of a device, with the reason."""

    reason: Reason


class ReservationRequest(OperatorRequest):
    """POST /api/v1/devices/{device}/reserve: out of the pool for a person, from now on."""

    for_s: Annotated[int, Field(ge=MIN_RESERVATION_S, le=MAX_RESERVATION_S)]


class ReleaseRequest(OperatorRequest):
    """POST /api/v1/devices/{device}/release: the end of a reservation; with force, also of another's."""

    force: bool = False
    #: Instead: assert that the device is clean, where its host can no longer report it.
    assert_clean: bool = False

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.assert_clean and self.reason is None:
            raise ValueError("who asserts that a phone is clean says how they know: --reason")
        return self


class DeviceChange(Wire):
    """The result of a request: `changed` is false when it was already so."""

    changed: bool
    #: A message for a person.
    message: str
    device: DeviceView


class RetirementPlan(Wire):
    """GET /api/v1/devices/{device}/retirement: the work that retiring it would end."""

    device: DeviceView
    queued_jobs: int
    matrices: tuple[Count, ...]


class AdbAccess(Wire):
    """GET /api/v1/devices/{device}/adb: the adb address of a device that the caller has reserved."""

    device_id: DeviceId
    host: HostId
    #: Of the machine's present boot, to detect whether the client runs on it.
    boot_id: str
    #: Of the adb server, in the notation of `adb -L`.
    adb_address: str
    serial: str
    reserved_until: datetime


class DeviceUsage(Wire):
    """The usage of one device in a week."""

    device_id: DeviceId
    label: str | None
    device_model: str | None
    soc: str | None
    virtual: bool
    #: The known part of the week: as far back as the history is kept, until now, not retired.
    known_s: float
    seconds: Mapping[UsageState, float]
    #: Of `known_s`, in per cent with one decimal; the sum is 100, or 0 where nothing is known.
    shares_pct: Mapping[UsageState, float]

    @property
    def name(self) -> str:
        """Return the name that people use."""
        return self.label or self.device_id


class ModelUsage(Wire):
    """The usage of all devices of a model in a week, as one sum."""

    device_model: str | None
    soc: str | None
    virtual: bool
    devices: int
    known_s: float
    seconds: Mapping[UsageState, float]
    shares_pct: Mapping[UsageState, float]


class UsageView(Wire):
    """GET /api/v1/device_usage: for what the time of the devices went in an ISO week, in UTC."""

    #: `2026-W47`.
    week: str
    begin: datetime
    #: The end of the week, or now.
    end: datetime
    #: When the kept history of the first device begins; None: the farm saw no device yet.
    known_since: datetime | None
    #: Those of which a part of the week is known.
    devices: tuple[DeviceUsage, ...]
    models: tuple[ModelUsage, ...]
