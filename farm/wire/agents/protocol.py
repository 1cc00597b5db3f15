"""Messages between agent and farm. Every call is idempotent; the farm dictates all intervals."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, model_validator

from farm.core.base.ids import AttemptId, DeviceId, Digest, HostId, JobId, SessionId
from farm.core.devices.condition import Condition
from farm.core.devices.device import DeviceFacts, Presence
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Outcome
from farm.core.runs.plan import RunPlan
from farm.core.upkeep.device_action import DeviceActionKind
from farm.core.upkeep.device_settings import SettingRestore, SettingResult
from farm.core.upkeep.recovery import Recovery
from farm.wire.base import WIRE_VERSION, Count, Wire, check_served

Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\x00-\x20/\x7f]+$")]
Fence = Count

#: USB controllers of one host that are told of at once.
MAX_CONTROLLERS = 8


class VersionedMessage(Wire):
    """The first message of a conversation: with an unsupported version, nothing else is read.

    So an agent of any release is told the same, whatever else it says that we do not know. Raises
    WireVersionUnsupported.
    """

    wire_version: int = WIRE_VERSION

    @model_validator(mode="before")
    @classmethod
    def _is_served(cls, said: Any) -> Any:
        if isinstance(said, Mapping):
            check_served(said.get("wire_version", WIRE_VERSION))
        return said


class Enrollment(VersionedMessage):
    """POST /api/v1/agent/enroll: a single-use join token for a host credential."""

    host: Name
    join_token: SecretStr


class EnrollmentAnswer(Wire):
    """The credential goes into every later call, as a bearer token; the farm keeps its hash only."""

    host_id: HostId
    credential: str


class DeviceReport(Wire):
    """One phone as the agent sees it now."""

    device_id: Name
    #: What adb calls it on this host.
    serial: Annotated[str, Field(min_length=1, max_length=256)]
    presence: Presence
    #: Why it is not online, or, where it is, why it cannot be cleaned up; in words.
    detail: str | None = None
    #: Sent when new to the farm: first sight, a changed build, or asked for by `facts_wanted`.
    facts: DeviceFacts | None = None
    condition: Condition | None = None
    #: What its agent does to have it back; None while nothing is.
    recovery: Recovery | None = None
    #: Its host is to set up phones by itself.
    wants_provisioning: bool = False
    #: What adb calls the devices that claim this identity, where there are several: none of them is online.
    claimants: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    #: Everything of runs up to this fencing token is gone from the phone.
    cleaned_fence: Fence = 0
    #: The highest that phone or agent know of; a database that was put back may have forgotten it.
    known_fence: Fence = 0


class AttemptReport(Wire):
    """An attempt the agent has in hand. `given_back` says that nothing ran, and why."""

    attempt_id: AttemptId
    #: Where it is; for a farm that never heard of the attempt, or forgot it.
    device_id: DeviceId | None = None
    fence: Fence
    phase: Literal[
        AttemptState.CLAIMED,
        AttemptState.PREPARING,
        AttemptState.MEASURING,
        AttemptState.REPORTING,
        AttemptState.RETURNED,
    ]
    reason: str | None = None
    #: What keeps the run from beginning, in words: a phone that is too warm, say.
    waiting_for: Annotated[str, Field(min_length=1, max_length=500)] | None = None


class SessionOpening(VersionedMessage):
    """POST /api/v1/agent/sessions: a new life of the agent's process."""

    #: Changes when the machine was restarted.
    boot_id: str
    agent_version: str
    #: Where this host's adb server listens on its loopback.
    adb_port: Annotated[int, Field(gt=0, lt=65536)] | None = None
    #: The journal of unfinished attempts of earlier lives.
    attempts: tuple[AttemptReport, ...] = ()


class AttemptOrder(Wire):
    """The farm's decision on an attempt that the agent named: continue, or stop and clean up."""

    attempt_id: AttemptId
    do: Literal["continue", "abandon"]
    why: str


class SessionAnswer(Wire):
    """A session; older sessions of the host are fenced from here on."""

    session_id: SessionId
    epoch: int
    #: How often the agent calls exchange at least.
    heartbeat_s: float
    orders: tuple[AttemptOrder, ...] = ()
    #: Which history of the database this is. Another one than before has forgotten the end of that: every
    #: report that is still there is sent again.
    database_epoch: str = ""
    #: Attempts that would be settled by their reports now; an agent that still has them sends them first.
    reports_wanted: tuple[AttemptId, ...] = ()


class Assignment(Wire):
    """An attempt the farm believes this session owns. The plan is there until the agent says it prepares."""

    attempt_id: AttemptId
    job_id: JobId
    device_id: DeviceId
    fence: Fence
    plan: RunPlan | None = None


class DeviceActionOrder(Wire):
    """An operator's request for a device; listed until an exchange reports it."""

    device_action_id: Count
    device_id: DeviceId
    kind: DeviceActionKind
    #: What the phone is called here, to be shown on it.
    label: str
    #: What an undo writes.
    put_back: Annotated[tuple[SettingRestore, ...], Field(max_length=200)] = ()


class DeviceActionReport(Wire):
    """An errand that was done, or could not be."""

    device_action_id: Count
    #: What was done, in words; None with an error.
    done: Annotated[str, Field(max_length=2000)] | None = None
    error: Annotated[str, Field(max_length=2000)] | None = None
    #: What a clean-up gave back to the phone.
    freed_bytes: Count | None = None
    #: What a look at the phone's settings found, and what became of them.
    settings: Annotated[tuple[SettingResult, ...], Field(max_length=200)] = ()


class FullController(Wire):
    """A USB controller of the host that lately did not take one more device."""

    #: As the kernel names it, e.g. `0000:00:14.0`.
    controller: Annotated[str, Field(min_length=1, max_length=100)]
    #: The kernel's words, without what changes from line to line.
    said: Annotated[str, Field(min_length=1, max_length=200)]


class Exchange(Wire):
    """POST /api/v1/agent/sessions/{id}/exchange: the one loop call, numbered from 1 upwards.

    `devices` and `attempts` are complete: a device that is not listed is absent.
    """

    seq: Annotated[Count, Field(ge=1)]
    #: As the session's answer said; under any other the session is over.
    database_epoch: str = ""
    #: How long the farm may hold the call while there is nothing to say.
    wait_s: Annotated[float, Field(ge=0, le=30)] = 0.0
    devices: tuple[DeviceReport, ...] = ()
    attempts: tuple[AttemptReport, ...] = ()
    #: Repeated until an answer no longer lists the errand.
    device_actions: tuple[DeviceActionReport, ...] = ()
    #: Errands being done: an answer that lists these alone is no news, and may be held back.
    device_actions_in_progress: tuple[Count, ...] = ()
    #: Why the host takes no new work, in words; what it has in hand goes on. None when all is well.
    pressure: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    #: They keep no work from the phones that are there.
    full_controllers: Annotated[tuple[FullController, ...], Field(max_length=MAX_CONTROLLERS)] = ()


class CleanupOrder(Wire):
    """A phone on which runs up to a token may have left something, though no attempt is under way there.

    Its agent may never have heard of them: they were another host's, or of a life whose folder was lost.
    """

    device_id: DeviceId
    fence: Fence


class ExchangeAnswer(Wire):
    """Level-triggered: `assignments` is the full list, so a lost answer heals at the next exchange.

    An assignment with a plan may be started within `start_within_s`, counted from *sending* the exchange;
    later the agent waits for a newer answer. An attempt the agent holds that is not listed is to be stopped.
    """

    seq: int
    assignments: tuple[Assignment, ...] = ()
    start_within_s: float
    #: Counted in the same way: without a newer answer for so long, other hosts may be given the phones.
    lost_after_s: float | None = None
    facts_wanted: tuple[DeviceId, ...] = ()
    #: Digests that will be needed soon, to be fetched into the host's cache meanwhile.
    prefetch: tuple[Digest, ...] = ()
    #: For phones that are free; they get no work meanwhile.
    device_actions: tuple[DeviceActionOrder, ...] = ()
    #: They get no work before the agent has cleaned them up, or says that it had.
    clean_ups: tuple[CleanupOrder, ...] = ()
    #: Of those whose next step of recovery disturbs somebody: nobody is at work there, so it may be taken.
    may_recover: tuple[DeviceId, ...] = ()


class Report(Wire):
    """POST /api/v1/agent/attempts/{id}/report. The SHA-256 of the body's bytes identifies the report:
    the same bytes again get the stored answer, others 409."""

    evidence: Evidence


class ReportAnswer(Wire):
    """The result of a report. `counted` is false when the attempt was no longer its job's current one."""

    attempt_id: AttemptId
    counted: bool
    outcome: Outcome | None = None
    message: str = ""
