"""Messages between agent and farm. Every call is idempotent; the farm dictates all intervals."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, SecretStr, model_validator

from farm.core.base.bounds import AtMost, Fence, FileDigest, Matches, Note, Word
from farm.core.base.ids import AttemptId, DeviceId, HostId, JobId, SessionId
from farm.core.devices.condition import Condition
from farm.core.devices.device import DeviceFacts, Presence
from farm.core.jobs.attempt import AttemptState
from farm.core.operations.host_clock import ClockDifference
from farm.core.runs.evidence import Evidence
from farm.core.runs.plan import RunPlan
from farm.core.upkeep.device_action import DeviceActionKind
from farm.core.upkeep.device_settings import SettingRestore, SettingResult
from farm.core.upkeep.recovery import Recovery
from farm.wire.base import WIRE_VERSION, Count, WholeNumber, Wire, check_served

Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\x00-\x20/\x7f]+$")]
_AttemptId = Annotated[AttemptId, WholeNumber]

#: Greatest number of USB controllers of one host in a message.
MAX_CONTROLLERS = 8
#: USB addresses 127 devices at a controller; more of a host are on TCP, or virtual.
MAX_DEVICES = 4096
#: Runs in progress, and those whose reports wait for the farm.
MAX_ATTEMPTS = 100_000


class VersionedMessage(Wire):
    """The first message of a conversation: with an unsupported version, nothing else is read.

    So an agent of any release gets the same answer, whatever else is in its message. Raises
    WireVersionUnsupported.
    """

    wire_version: Annotated[int, Field(ge=0, le=1000)] = WIRE_VERSION

    @model_validator(mode="before")
    @classmethod
    def _is_served(cls, message: Any) -> Any:
        if isinstance(message, Mapping):
            check_served(message.get("wire_version", WIRE_VERSION))
        return message


class Enrollment(VersionedMessage):
    """POST /api/v1/agent/enroll: a single-use join token for a host credential."""

    host: Name
    join_token: Annotated[SecretStr, Field(max_length=500)]


class EnrollmentAnswer(Wire):
    """The credential goes into every later call, as a bearer token; the farm keeps its hash only."""

    host_id: HostId
    credential: str


class DeviceReport(Wire):
    """The present state of a device as its agent sees it."""

    device_id: Name
    #: Its adb serial on this host.
    serial: Annotated[str, Field(min_length=1, max_length=256)]
    presence: Presence
    #: The reason that it is not online, or, where it is, that it cannot be cleaned up; as text.
    detail: Note | None = None
    #: Sent when new to the farm: a new device, a changed build, or a request in `facts_wanted`.
    facts: DeviceFacts | None = None
    condition: Condition | None = None
    #: The recovery in progress; None without one.
    recovery: Recovery | None = None
    #: Its host is configured to provision devices automatically.
    wants_provisioning: bool = False
    #: Serials of the devices that claim this identity, where there are several: none of them is online.
    claimants: Annotated[tuple[Word, ...], Field(max_length=100)] = ()
    #: All files and processes of runs up to this fencing token are removed from the device.
    cleaned_fence: Fence = 0
    #: The highest that device or agent have seen; a restored database may not contain it.
    known_fence: Fence = 0
    #: What the device reports and cannot mean, as text: left out here, and the device is not used.
    implausible: Note | None = None


class AttemptReport(Wire):
    """An attempt that the agent holds. The phase `returned` means that nothing ran, for `reason`."""

    attempt_id: _AttemptId
    #: Its device; for a farm whose database does not contain the attempt.
    device_id: Annotated[DeviceId, Field(max_length=128)] | None = None
    fence: Fence
    phase: Literal[
        AttemptState.CLAIMED,
        AttemptState.PREPARING,
        AttemptState.MEASURING,
        AttemptState.REPORTING,
        AttemptState.RETURNED,
    ]
    reason: Note | None = None
    #: The condition that delays the start of the run, as text: a device that is too warm, say.
    waiting_for: Annotated[Note, Field(min_length=1)] | None = None


class SessionOpening(VersionedMessage):
    """POST /api/v1/agent/sessions: sent at each start of the agent."""

    #: Changes when the machine was restarted.
    boot_id: Word
    agent_version: Word
    #: Of this host's adb server, in the notation of `adb -L`; None for a server of another machine.
    adb_address: Annotated[Word, Matches(r"(?:localfilesystem:/|tcp:)[^\x00-\x1f\x7f]+")] | None = None
    #: The journal of unfinished attempts from before the restart.
    attempts: Annotated[tuple[AttemptReport, ...], AtMost(MAX_ATTEMPTS)] = ()


class AttemptOrder(Wire):
    """The farm's decision on an attempt that the agent named: continue, or stop and clean up."""

    attempt_id: AttemptId
    do: Literal["continue", "abandon"]
    why: str


class SessionAnswer(Wire):
    """A session; older sessions of the host are fenced from here on."""

    session_id: SessionId
    epoch: int
    #: Longest interval between two exchanges of the agent.
    heartbeat_s: float
    orders: tuple[AttemptOrder, ...] = ()
    #: The epoch of the database. A new epoch is missing the end of the previous one: every report that is
    #: still there is sent again.
    database_epoch: str = ""
    #: Attempts that would be settled by their reports now; an agent that still has them sends them first.
    reports_wanted: tuple[AttemptId, ...] = ()


class Assignment(Wire):
    """An attempt that this session owns. The plan is included until the agent reports that it prepares."""

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
    #: The device's name in the farm, to be shown on it.
    label: str
    #: The settings that an undo writes.
    put_back: Annotated[tuple[SettingRestore, ...], Field(max_length=200)] = ()


class DeviceActionReport(Wire):
    """The result of a device action."""

    device_action_id: Count
    #: The result as text; None with an error.
    done: Note | None = None
    error: Note | None = None
    #: The space that a clean-up freed on the device.
    freed_bytes: Count | None = None
    #: The result of a check or change of the device's settings.
    settings: Annotated[tuple[SettingResult, ...], Field(max_length=200)] = ()


class FullController(Wire):
    """A USB controller of the host that recently refused one more device."""

    #: As the kernel names it, e.g. `0000:00:14.0`.
    controller: Annotated[str, Field(min_length=1, max_length=100)]
    #: The kernel's message, without the parts that change from line to line.
    message: Annotated[Note, Field(min_length=1)]


class Exchange(Wire):
    """POST /api/v1/agent/sessions/{id}/exchange: the one loop call, numbered from 1 upwards.

    `devices` and `attempts` are complete: a device that is not listed is absent.
    """

    seq: Annotated[Count, Field(ge=1)]
    #: From the session's answer; under any other the session has ended.
    database_epoch: Word = ""
    #: Time the farm may hold the call while there is no news.
    wait_s: Annotated[float, Field(ge=0, le=30)] = 0.0
    devices: Annotated[tuple[DeviceReport, ...], AtMost(MAX_DEVICES)] = ()
    attempts: Annotated[tuple[AttemptReport, ...], AtMost(MAX_ATTEMPTS)] = ()
    #: Repeated until an answer no longer lists the action.
    device_actions: Annotated[tuple[DeviceActionReport, ...], AtMost(MAX_DEVICES)] = ()
    #: Actions in progress: an answer that lists these alone is no news, and may be held.
    device_actions_in_progress: Annotated[tuple[Count, ...], AtMost(MAX_DEVICES)] = ()
    #: The reason that the host takes no new work, as text; its present work continues. None without one.
    pressure: Annotated[Note, Field(min_length=1)] | None = None
    #: They delay no work of the attached devices.
    full_controllers: Annotated[tuple[FullController, ...], Field(max_length=MAX_CONTROLLERS)] = ()
    #: The agent's own files that it found damaged and set aside, as text, until they are removed.
    damaged_files: Annotated[Note, Field(min_length=1)] | None = None


class CleanupOrder(Wire):
    """A device without an attempt in progress, on which runs up to a fencing token may have left something.

    Its agent may not know them: they were another host's, or its data folder was lost.
    """

    device_id: DeviceId
    fence: Fence
    #: The tokens on the device are higher and cannot be true: once all runs are ended, they become this one.
    resets: bool = False


class ExchangeAnswer(Wire):
    """Level-triggered: `assignments` is the full list, so a lost answer heals at the next exchange.

    An assignment with a plan may be started within `start_within_s`, counted from *sending* the exchange;
    later the agent waits for a newer answer. An attempt the agent holds that is not listed is to be stopped.
    """

    seq: int
    assignments: tuple[Assignment, ...] = ()
    start_within_s: float
    #: Counted in the same way: without a newer answer for so long, other hosts may get the devices.
    lost_after_s: float | None = None
    facts_wanted: tuple[DeviceId, ...] = ()
    #: Digests that will be needed soon, to be fetched into the host's cache in advance.
    prefetch: tuple[FileDigest, ...] = ()
    #: For devices that are free; they get no work until the result is reported.
    device_actions: tuple[DeviceActionOrder, ...] = ()
    #: The devices get no work before the agent reports them clean.
    clean_ups: tuple[CleanupOrder, ...] = ()
    #: Devices whose next recovery step disturbs others: no one uses them, so it may be taken.
    may_recover: tuple[DeviceId, ...] = ()


class ClockReport(Wire):
    """POST /api/v1/agent/clock: without a difference, to ask for the farm's time; then to report it."""

    difference: ClockDifference | None = None


class FarmTime(Wire):
    """The farm's time at some moment during the call."""

    now: AwareDatetime


class Report(Wire):
    """POST /api/v1/agent/attempts/{id}/report. The SHA-256 of the body's bytes identifies the report:
    the same bytes again get the stored answer, others 409."""

    evidence: Evidence
