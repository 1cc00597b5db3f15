"""Context of reported attempts: read before anything is decided or written."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from farm.core.base.ids import AttemptId, DeviceId, Digest, HostId, JobId
from farm.core.checks.health import HealthChange, PastOutcome
from farm.core.checks.incident import DeviceFailure, Incident
from farm.core.checks.reference_range import ReferenceSample
from farm.core.checks.reference_run import ReferenceRun
from farm.core.jobs.attempt import AttemptRecord
from farm.core.jobs.job import Job
from farm.core.jobs.poison_job import DeviceLoss
from farm.core.jobs.retry import FinishedAttempt
from farm.core.results.settle.placement_change import LastPlacement
from farm.core.runs.measurement import Quality


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContext:
    """An attempt, its job, and the reports of it that came already, counted or not, expired or not."""

    attempt: AttemptRecord
    job: Job
    report_digests: frozenset[Digest]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryContext:
    """The rows that decide whether a job is tried again. Nothing is read for work that was not lost."""

    #: Its ended attempts, oldest first.
    tries: tuple[FinishedAttempt, ...] = ()
    #: Of its work, in its matrix, through devices.
    losses: tuple[DeviceLoss, ...] = ()
    #: Other jobs of its work that nobody has begun.
    queued_alike: tuple[Job, ...] = ()
    #: Of the devices concerned, those in service.
    active_devices: frozenset[DeviceId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockContext:
    """The rows that decide whether the block of an invalid measurement is repeated."""

    #: Of the cell's accepted measurements before this one, oldest first.
    qualities: tuple[Quality, ...]
    #: Another cell of it asked for that already.
    is_repeated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HostContext:
    """The recent failures of a host's devices."""

    host_id: HostId
    online: frozenset[DeviceId]
    #: Within the window of incidents, or since the open one began.
    troubles: tuple[DeviceFailure, ...]
    #: What several of its devices are going through together.
    open_incident: Incident | None
    #: As far back as `troubles`, oldest first.
    health_changes: tuple[HealthChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthContext:
    """The recent attempts on a device."""

    #: Newest first, without the one that is reported; as far as its health may depend on them.
    endings: tuple[PastOutcome, ...]
    #: Of the hosts where they ran, that lasted at some time since.
    incidents: tuple[Incident, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceContext:
    """A reference run, with what it is judged by."""

    run: ReferenceRun
    #: Earlier fit runs of its kind of device, and of its own.
    of_kind: tuple[ReferenceSample, ...]
    of_device: tuple[ReferenceSample, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """The rows that decide the end of a check, and the health of its device."""

    name: str
    #: The newest check of the device, ended or not.
    last_check_id: JobId
    #: The run that the check brought; without a verdict yet.
    new_run: ReferenceContext | None
    #: The run of the newest check, where that is stored already.
    last_run: ReferenceContext | None
    #: The newest runs of the device, newest first.
    past_runs: tuple[ReferenceRun, ...]
    rebaselined_at: datetime | None
    #: A person cleared the alarm of its drift a short while ago.
    alarm_was_cleared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsequenceContext:
    """The rows behind the consequences of one report; None where it can have none of a kind."""

    job: RetryContext
    block: BlockContext | None
    host: HostContext | None
    health: HealthContext | None
    check: CheckContext | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlementContext:
    """The rows that settle the next reports: any number of good runs, or one with consequences."""

    reports: Mapping[AttemptId, ReportContext]
    last_places: Mapping[Digest, LastPlacement]
    #: Of the first report, unless nothing follows from it but the end of its attempt and job.
    consequences: ConsequenceContext | None
