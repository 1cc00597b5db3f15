"""Context of reported attempts: read before anything is decided or written."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from farm.core.base.ids import AttemptId, CellId, DeviceId, Digest, HostId, JobId, SeriesId
from farm.core.checks.failures import DeviceFailure, HealthChange, Incident, PastOutcome
from farm.core.checks.reference_range import ReferenceSample
from farm.core.checks.reference_run import ReferenceRun
from farm.core.jobs.attempt import AttemptRecord
from farm.core.jobs.job import Job
from farm.core.jobs.retry import DeviceLoss, FinishedAttempt
from farm.core.runs.placement import Placement


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
    #: Other jobs of equivalent cells that have not begun.
    queued_alike: tuple[Job, ...] = ()
    #: Of the devices concerned, those in service.
    active_devices: frozenset[DeviceId] = frozenset()
    #: Queued jobs of the same cell, where another start of it ended with the same outcome and code.
    same_cell: tuple[Job, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockContext:
    """The block that an invalid measurement has repeated."""

    #: Its cells that are still run, by index.
    cell_by_index: Mapping[int, CellId]
    seed: int
    virtual_time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostContext:
    """The recent failures of a host's devices."""

    host_id: HostId
    online: frozenset[DeviceId]
    #: Within the window of incidents, or since the open one began.
    failures: tuple[DeviceFailure, ...]
    #: Of several of its devices together.
    open_incident: Incident | None
    #: As far back as `failures`, oldest first.
    health_changes: tuple[HealthChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthContext:
    """The recent attempts on a device."""

    #: Newest first, without the one that is reported; as far as its health may depend on them.
    outcomes: tuple[PastOutcome, ...]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsequenceContext:
    """The rows behind the consequences of one report; None where it can have none of a kind."""

    retry: RetryContext
    block: BlockContext | None
    host: HostContext | None
    health: HealthContext | None
    check: CheckContext | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastPlacement:
    """The placement of the newest accepted measurement of a series that shows one."""

    series_id: SeriesId
    actual_backend: str
    accelerator: str
    placement: Placement | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlementContext:
    """The rows that settle the next reports: any number of good runs, or one with consequences."""

    reports: Mapping[AttemptId, ReportContext]
    last_places: Mapping[Digest, LastPlacement]
    #: Of the first report, unless nothing follows from it but the end of its attempt and job.
    consequences: ConsequenceContext | None
