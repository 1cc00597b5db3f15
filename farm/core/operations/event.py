"""Kinds and subjects of the event log."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import get_args

from farm.core.devices.admin import AdminEvent
from farm.core.devices.host_state import HostEvent, SessionEvent
from farm.core.jobs.attempt import AttemptEvent
from farm.core.jobs.job import JobEvent
from farm.core.operations.alarm import AlarmEvent
from farm.core.upkeep.device_action import DeviceActionEvent


class EventSubject(StrEnum):
    """The kinds of subject of an event."""

    MATRIX = "matrix"
    STANDING_MATRIX = "standing_matrix"
    JOB = "job"
    ATTEMPT = "attempt"
    DEVICE = "device"
    HOST = "host"
    SESSION = "session"
    INCIDENT = "incident"
    ALARM = "alarm"
    JOIN = "join_token"
    ACCESS = "access_token"
    PROGRAM = "program"
    VARIANT = "variant"
    ARTIFACT = "artifact"
    STORAGE = "storage"
    DATABASE = "database"
    LEADER_LEASE = "leader_lease"
    CHANGE = "change"
    IMPORT = "import"


class WorkEvent(StrEnum):
    """Job creation. Later changes: `JobEvent`, `AttemptEvent`."""

    #: A user submitted a matrix: its jobs are queued from here on.
    MATRIX_SUBMITTED = "matrix_submitted"
    #: A user ended what was left of a matrix; each job that this ended has an event of its own.
    MATRIX_CANCELLED = "matrix_cancelled"
    #: A block gave a measurement that was not valid, or a pair that began apart: it is queued once more.
    BLOCK_REPEATED = "block_repeated"
    #: A job that belongs to no matrix was queued: a check.
    JOB_QUEUED = "job_queued"
    #: A phone got a job; the attempt is its lease.
    ATTEMPT_CLAIMED = "attempt_claimed"
    #: A newer version of its adapter read a job's evidence otherwise; the job stays as it ended.
    JOB_REPARSED = "job_reparsed"


class RetractionEvent(StrEnum):
    """Measurements that a person withdraws, and changes that a person judges."""

    #: A person withdrew the measurement of a job, for the reason: it is compared with none any more.
    RETRACTED = "job_retracted"
    #: A person took that back: the measurement counts again.
    REINSTATED = "job_reinstated"
    #: A user gave a change in the history of series another state, for the reason.
    CHANGE_DECIDED = "change_decided"


class FurtherWorkEvent(StrEnum):
    """Work that the farm adds automatically: further rounds, and matrices of standing ones."""

    #: A look left cells undecided: further rounds of them are queued.
    MATRIX_GREW = "matrix_grew"
    #: A user let a matrix stand: the farm keeps measuring it.
    STANDS = "standing_matrix_stands"
    #: A user replaced its file.
    STANDING_CHANGED = "standing_matrix_changed"
    #: What was due by its schedule, or missing, became a matrix.
    STANDING_QUEUED = "standing_matrix_queued"
    #: It cannot be expanded any more: something that it names is gone.
    STANDING_BLOCKED = "standing_matrix_blocked"
    #: It can be expanded again.
    STANDING_UNBLOCKED = "standing_matrix_unblocked"
    #: A user ended it.
    STANDING_ENDED = "standing_matrix_ended"


class DeviceEvent(StrEnum):
    """Device events. Operator decisions: `AdminEvent`, `OperatorEvent`, `DeviceActionEvent`."""

    #: The farm saw the phone for the first time.
    FOUND = "device_found"
    #: It has a number among the phones of its device model.
    NUMBERED = "device_numbered"
    #: Another host's agent sees it now.
    MOVED = "device_moved"
    #: Two agents have the phone, or one has several of its serial number; recorded once a minute at most.
    CLAIM_REFUSED = "device_claim_refused"
    #: The report of its agent on it changed.
    PRESENCE_CHANGED = "device_presence_changed"
    #: It earned its health, or lost it.
    HEALTH_CHANGED = "device_health_changed"
    #: Its fencing token rose without a claim: something runs there that the database does not know.
    FENCE_RAISED = "device_fence_raised"
    #: Its system build or its drivers are others than before; from and to are of the first that changed.
    UPDATED = "device_updated"
    #: Equivalent cells ran on other hardware there than before; from and to say which.
    PLACEMENT_CHANGED = "placement_changed"
    #: Its agent tried something to have it back; to says what.
    RECOVERY_TRIED = "device_recovery_tried"
    #: It needs no more of that.
    RECOVERY_ENDED = "device_recovery_ended"
    #: Its agent keeps it from charging, lets it charge again, or says that it can do neither.
    CHARGING_CHANGED = "device_charging_changed"


class OperatorEvent(StrEnum):
    """Operator decisions on a device, besides its place in the pool."""

    #: An operator accepted its latest reference run: it is compared with its own runs only from then on.
    REBASELINED = "device_rebaselined"
    #: An operator named it, or took its name away.
    LABELLED = "device_labelled"
    #: An operator gave it other tags.
    TAGGED = "device_tagged"
    #: An operator says that nothing of ours is left on it, where no agent could tell.
    ASSERTED_CLEAN = "device_asserted_clean"
    #: A person has it; also when the reservation was made longer.
    RESERVED = "device_reserved"
    #: It went back to the pool.
    RELEASED = "device_released"


class EnrollmentEvent(StrEnum):
    """Host enrolment. Later changes: `farm.core.devices.host_state`."""

    #: A host the farm did not know joined.
    HOST_ENROLLED = "host_enrolled"
    #: An agent began a life; older sessions of its host are closed.
    SESSION_OPENED = "session_opened"


class FleetEvent(StrEnum):
    """Host events, and settings of a host besides its state."""

    #: An operator set how many runs it may have at once.
    HOST_LIMITED = "host_limited"
    #: Something is wrong with the host, its agent's files, a USB controller, or several phones of it.
    INCIDENT_OPENED = "incident_opened"
    #: It is over.
    INCIDENT_ENDED = "incident_ended"


class AccessEvent(StrEnum):
    """Access events."""

    #: An operator made a token that lets one agent join.
    JOIN_CREATED = "join_token_created"
    #: A host joined with it.
    JOIN_USED = "join_token_used"
    #: An operator ended its validity.
    JOIN_REVOKED = "join_token_revoked"
    #: An admin made a token that proves who calls.
    ACCESS_CREATED = "access_token_created"
    #: An admin ended its validity.
    ACCESS_REVOKED = "access_token_revoked"
    #: A caller asked for what is not theirs, or showed no valid token; recorded once a minute at most.
    ACCESS_REFUSED = "access_refused"
    #: A caller with a token read the raw output and conditions of an attempt; recorded once an hour at most.
    EVIDENCE_READ = "attempt_evidence_read"
    #: A caller with a token read all samples of a matrix; recorded once an hour at most.
    SAMPLES_READ = "matrix_samples_read"


class FarmEvent(StrEnum):
    """Storage and administration events."""

    #: A program is what new matrices run from here on.
    PROGRAM_REGISTERED = "program_registered"
    #: A model file is what new matrices run under its name from here on.
    VARIANT_NAMED = "variant_named"
    #: A user attached energy that an instrument measured to an attempt.
    ENERGY_IMPORTED = "attempt_energy_imported"
    #: A user imported a file of results that others measured.
    IMPORT_ADDED = "import_added"
    #: An operator withdrew it, for the reason.
    IMPORT_WITHDRAWN = "import_withdrawn"
    #: A file's bytes went, to make room or because they were damaged.
    ARTIFACT_EXPIRED = "artifact_expired"
    #: A person removed a file's bytes.
    ARTIFACT_REMOVED = "artifact_removed"
    #: They are there again.
    ARTIFACT_RESTORED = "artifact_restored"
    #: Bodies of reports went, by a rule of retention.
    EVIDENCE_EXPIRED = "evidence_expired"
    #: Routine events, sessions without attempts, or plans of settled attempts went, because of their age.
    HISTORY_EXPIRED = "history_expired"
    #: The database was restored, and a new history begins.
    DATABASE_EPOCH_BEGUN = "database_epoch_begun"
    #: A farm process becomes the leader, because there was none or the previous one is gone.
    LEASE_ACQUIRED = "leader_lease_acquired"


EventKind = (
    WorkEvent
    | FurtherWorkEvent
    | RetractionEvent
    | JobEvent
    | AttemptEvent
    | DeviceEvent
    | AdminEvent
    | OperatorEvent
    | DeviceActionEvent
    | EnrollmentEvent
    | HostEvent
    | SessionEvent
    | FleetEvent
    | AlarmEvent
    | AccessEvent
    | FarmEvent
)
"""What an event may be called."""

#: In the order in which docs/events.md tells of them.
EVENT_KINDS: tuple[type[EventKind], ...] = get_args(EventKind)

#: The events that come with every run, session and cable, and that go by age. All others stay: what people
#: decided, and what explains a device and its numbers.
ROUTINE_EVENTS: frozenset[str] = frozenset(
    [
        *JobEvent,
        *AttemptEvent,
        *SessionEvent,
        WorkEvent.JOB_QUEUED,
        WorkEvent.ATTEMPT_CLAIMED,
        EnrollmentEvent.SESSION_OPENED,
        DeviceEvent.PRESENCE_CHANGED,
        DeviceEvent.RECOVERY_TRIED,
        DeviceEvent.RECOVERY_ENDED,
        DeviceEvent.CHARGING_CHANGED,
        DeviceEvent.CLAIM_REFUSED,
        AccessEvent.ACCESS_REFUSED,
        AccessEvent.EVIDENCE_READ,
        AccessEvent.SAMPLES_READ,
        FarmEvent.LEASE_ACQUIRED,
    ]
)


@cache
def subject_of(kind: EventKind) -> EventSubject:
    """Return the subject that the name of a kind begins with, as in `device_found`."""
    return next(subject for subject in EventSubject if kind.startswith(subject))


@cache
def event_kind_names() -> frozenset[str]:
    """Return every kind of event."""
    return frozenset(kind.value for kinds in EVENT_KINDS for kind in kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change, as the event log has it."""

    at: datetime
    #: `user:ann`, `agent:HOST`, `farm`.
    actor: str
    #: docs/events.md lists them; as text, because a newer farm may have more of them.
    kind: str
    from_state: str | None
    to_state: str | None
    cause: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectEvent(Event):
    """One change of one thing."""

    subject: str
    subject_id: str
