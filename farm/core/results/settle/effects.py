"""Effects of settling a report, as data: decided in `evaluation`, written by `apply`."""

from dataclasses import dataclass
from datetime import datetime

from farm.core.base.ids import AttemptId, DeviceId, Digest, HostId
from farm.core.checks.incident import Incident
from farm.core.checks.reference_run import ReferenceRun
from farm.core.devices.device import Health
from farm.core.errors import FarmError
from farm.core.jobs.attempt import AttemptEvent, AttemptOutcome, AttemptRecord
from farm.core.jobs.job import Job
from farm.core.operations.alarm import AlarmKind, AlarmSubject
from farm.core.results.settle.new_measurement import NewMeasurement
from farm.core.runs.measurement import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepReport:
    """Keep the bytes of a report."""

    at: datetime
    attempt_id: AttemptId
    digest: Digest
    body: bytes
    counted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAttempt:
    """Finish an attempt that is where `attempt` says."""

    at: datetime
    attempt: AttemptRecord
    #: SETTLED or CANCELLED.
    event: AttemptEvent
    outcome: AttemptOutcome
    actor: str
    cause: str
    report_digest: Digest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndJob:
    """Finish a job that is where `job` says."""

    at: datetime
    job: Job
    outcome: AttemptOutcome
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequeueJob:
    """Queue a job again that is where `job` says."""

    at: datetime
    job: Job
    actor: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddMeasurement:
    """Record the accepted measurement of a job."""

    measured: NewMeasurement


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatBlock:
    """Queue every cell of a job's device and round once more: what is compared is measured side by side."""

    at: datetime
    job: Job
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepReferenceRun:
    """Keep the judged reference run of a check."""

    run: ReferenceRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeHealth:
    """Change the health of a device that is one of `sources`."""

    at: datetime
    device_id: DeviceId
    sources: tuple[Health, ...]
    to: Health
    cause: str
    #: Queue a check for the same cause where the health was changed.
    with_check: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCheck:
    """Queue a health check, unless one is open."""

    at: datetime
    device_id: DeviceId
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenIncident:
    """Open an incident of a host that hits several of its devices."""

    at: datetime
    #: Without a number yet.
    incident: Incident


@dataclass(frozen=True, slots=True, kw_only=True)
class WidenIncident:
    """Count further devices among those that an open incident hit."""

    incident: Incident
    devices: frozenset[DeviceId]


@dataclass(frozen=True, slots=True, kw_only=True)
class RaiseAlarm:
    """Raise an alarm, unless one of that kind is open for the subject."""

    at: datetime
    kind: AlarmKind
    subject: AlarmSubject
    subject_id: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearAlarm:
    """Clear the open alarm of a kind for a subject, if there is one."""

    at: datetime
    kind: AlarmKind
    subject: AlarmSubject
    subject_id: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPlacementChange:
    """Record the event that a device runs work on other hardware than before."""

    at: datetime
    device_id: DeviceId
    was: str
    place: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyHosts:
    """Have the agents of hosts look for work; None: everybody's."""

    hosts: frozenset[HostId] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyDevices:
    """Have the agents of the hosts of devices look for work."""

    devices: tuple[DeviceId, ...]


#: What follows for jobs, devices and hosts from how an attempt ended.
Consequence = EndJob | RequeueJob | ChangeHealth | QueueCheck | OpenIncident | WidenIncident | NotifyDevices
#: Written many at once, as they come for every good run.
BulkEffect = KeepReport | NotifyHosts | EndAttempt | EndJob | AddMeasurement
#: What changes rows by itself.
RowEffect = BulkEffect | Consequence | KeepReferenceRun | RaiseAlarm | ClearAlarm | RecordPlacementChange
Effect = RowEffect | RepeatBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlementAnswer:
    """The farm's answer to a report; not counted where the attempt was no longer its job's current one."""

    attempt_id: AttemptId
    counted: bool
    outcome: Outcome | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The settlement of one report: the answer to its host, and the effects."""

    #: What became of the attempt; an error where the report is refused.
    answer: SettlementAnswer | FarmError
    effects: tuple[Effect, ...] = ()
