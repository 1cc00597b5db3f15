"""Documents about devices, and operator requests."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, model_validator

from farm.core.base.ids import AttemptId, DeviceId, HostId, JobId
from farm.core.devices.condition import Condition
from farm.core.devices.device import Admin, DeviceFacts, Health, Presence
from farm.core.jobs.job import JobKind
from farm.core.runs.measurement import Outcome
from farm.core.upkeep.device_action import DeviceActionKind
from farm.core.upkeep.device_settings import DeviceSettingsRecord
from farm.core.upkeep.recovery import Recovery
from farm.wire.base import Count, Wire

PERSON = r"^[^\x00-\x20\x7f]+$"
#: Who asks: the name they go by, which the one of an access token overrides.
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
    #: The operator's name for it, words of theirs, and its number among the phones of its device model.
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
    #: Why it is not online.
    detail: str | None
    health: Health
    admin: Admin
    reserved_by: str | None
    reserved_until: datetime | None
    virtual: bool
    fence: int
    #: The job it is busy with.
    job_id: JobId | None
    #: Why it gets no benchmark job now, the first first; empty when it can.
    waiting_for: tuple[str, ...]
    #: The same as words for programs: `not_online`, `health_bad`, `busy`.
    blocked_by: tuple[str, ...]
    #: Since when the first of these holds, why, and what to do about it.
    since: datetime | None
    why: str | None
    advice: str | None
    condition: Condition | None
    #: What its agent does to have it back; None while nothing is.
    recovery: Recovery | None = None
    seen_at: datetime

    @property
    def name(self) -> str:
        """Return the name that people use."""
        return self.label or self.device_id

    @property
    def is_reachable(self) -> bool:
        """Tell whether its agent can act on it now."""
        return not {"session_not_live", "not_online"} & set(self.blocked_by)

    @property
    def is_quiet(self) -> bool:
        """Tell whether no run or remains of one are on it."""
        return not {"busy", "device_action", "not_cleaned"} & set(self.blocked_by)


class EventView(Wire):
    """One change, as the event log has it."""

    at: datetime
    actor: str
    kind: str
    from_state: str | None
    to_state: str | None
    cause: str | None


class RecentAttempt(Wire):
    """One of the last attempts on a phone."""

    attempt_id: AttemptId
    job_id: JobId
    kind: JobKind
    state: str
    outcome: Outcome | None
    code: str | None
    claimed_at: datetime


class DeviceActionView(Wire):
    """GET /api/v1/device_actions/{id}: what somebody wants done on a phone, and what came of it."""

    device_action_id: int
    device_id: DeviceId
    #: What the phone is called.
    name: str
    kind: DeviceActionKind
    requested_by: str
    requested_at: datetime
    finished_at: datetime | None
    #: What was done, in words.
    done: str | None
    error: str | None
    freed_bytes: int | None
    #: What the phone waits for before it can be seen to; None when it is free, or when the errand is over.
    waiting_for: str | None
    #: Nobody tries any more from then on.
    expires_at: datetime


class DeviceDetail(DeviceView):
    """GET /api/v1/devices/{device}: `device` is an id, a label, or the unique beginning of one."""

    facts: DeviceFacts | None
    queued_jobs: int
    device_actions: tuple[DeviceActionView, ...]
    attempts: tuple[RecentAttempt, ...]
    #: What was last found and done about the settings that a phone on a shelf needs; None: nobody looked.
    settings: DeviceSettingsRecord | None = None
    #: What the golden run of its last check says, in words; None: it had none yet.
    reference_run: str | None = None
    #: Since when that is compared with its own runs alone, by an operator's word.
    rebaselined_at: datetime | None = None
    #: What its host is going through, and this phone with it.
    incident: str | None = None
    #: The newest first.
    events: tuple[EventView, ...]


class OperatorRequest(Wire):
    """The actor and cause of a change."""

    by: Person
    reason: Reason | None = None


class LabelRequest(OperatorRequest):
    """POST /api/v1/devices/{device}/label; no label takes it away."""

    label: Label | None = None


class TagRequest(OperatorRequest):
    """POST /api/v1/devices/{device}/tags: what is both added and removed is refused."""

    add: Annotated[tuple[Tag, ...], Field(max_length=MAX_TAGS)] = ()
    remove: Annotated[tuple[Tag, ...], Field(max_length=MAX_TAGS)] = ()

    @model_validator(mode="after")
    def _says_one_thing_of_each(self) -> Self:
        if both := sorted(set(self.add) & set(self.remove)):
            raise ValueError(f"{', '.join(both)}: either added or removed")
        return self


class RebaselineRequest(OperatorRequest):
    """POST /api/v1/devices/{device}/rebaseline: whoever takes a slower phone for right says why."""

    reason: Reason


class ReservationRequest(OperatorRequest):
    """POST /api/v1/devices/{device}/reserve: out of the pool for a person, from now on."""

    for_s: Annotated[int, Field(ge=MIN_RESERVATION_S, le=MAX_RESERVATION_S)]


class ReleaseRequest(OperatorRequest):
    """POST /api/v1/devices/{device}/release: the end of a hold, with force also of somebody else's."""

    force: bool = False
    #: Instead: nothing of ours is left on the phone, which its host can no longer say.
    assert_clean: bool = False

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.assert_clean and self.reason is None:
            raise ValueError("who asserts that a phone is clean says how they know: --reason")
        return self


class DeviceChange(Wire):
    """The result of a request: `changed` is false when it was already so."""

    changed: bool
    #: In words, for a person.
    said: str
    device: DeviceView


class RetirementPlan(Wire):
    """GET /api/v1/devices/{device}/retirement: what retiring it would end."""

    device: DeviceView
    queued_jobs: int
    matrices: tuple[Count, ...]


class AdbAccess(Wire):
    """GET /api/v1/devices/{device}/adb: where adb reaches a phone that the caller holds."""

    device_id: DeviceId
    host: HostId
    #: Of the machine's present boot, to tell whether it is this one.
    boot_id: str
    adb_port: int
    serial: str
    reserved_until: datetime
