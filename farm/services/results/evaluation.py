"""What a report means, by what the farm knows of its attempt: decided without touching anything."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import structlog
from pydantic import TypeAdapter, ValidationError

from farm.core.base.ids import AttemptId, Digest, HostId, JobId, digest_of
from farm.core.errors import Blame, Forbidden, InvalidInput, NotFound, ReportConflict
from farm.core.jobs.attempt import LIVE_STATES, AttemptState
from farm.core.jobs.job import JobKind, JobState
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Outcome, Reading, RunFailure
from farm.harness.base import device_check
from farm.services.access.refused_requests import FOREIGN_CREDENTIAL_HINT
from farm.services.agents.takeover import DEVICE_MOVED
from farm.services.files.adapters import adapter_of
from farm.services.jobs.termination import AttemptOutcome
from farm.services.results.recording import may_be_repeated, measurement_of
from farm.store.jobs.attempts import Attempt
from farm.store.jobs.context import JobContext
from farm.store.jobs.jobs import Job
from farm.store.results.measurements import NewMeasurement
from farm.store.results.report_context import ReportContext
from farm.wire.agents.protocol import Report, ReportAnswer
from farm.wire.storable_text import make_storable

_REPORT = TypeAdapter(Report)
_BUGS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedReport:
    """What a report says: its evidence, and what that means; None for a check that was passed."""

    evidence: Evidence
    reading: Reading | RunFailure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedReport:
    """A report as a host sent it."""

    host_id: HostId
    attempt_id: AttemptId
    body: bytes
    at: datetime
    #: Where it was read ahead of its transaction.
    read: ParsedReport | None = None

    @property
    def size_in_memory_bytes(self) -> int:
        """What it takes in memory, about: once as it came, once as it was read."""
        return len(self.body) * (1 if self.read is None else 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidReport:
    """A report that is kept."""

    arrived: ReceivedReport
    digest: Digest
    evidence: Evidence
    attempt: Attempt
    job: Job
    #: False when the attempt is no longer its job's current one.
    counted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportEvaluation:
    """What a report that counts means."""

    taken: ValidReport
    #: None for a check.
    work: JobContext | None
    ending: AttemptOutcome
    #: Where the run brought one.
    measured: NewMeasurement | None

    @property
    def is_plain(self) -> bool:
        """Whether the run ended well and nothing follows from it but the end of its attempt and job."""
        attempt, job = self.taken.attempt, self.taken.job
        is_under_way = attempt.state in LIVE_STATES and job.state is JobState.ACTIVE
        return is_under_way and self.measured is not None and not may_be_repeated(self.measured)


def validate_report(arrived: ReceivedReport, standing: ReportContext | None) -> ValidReport | ReportAnswer:
    """A report that is to be kept; the stored answer to one that came before.

    Raises:
        NotFound: there is no such attempt.
        Forbidden: the attempt is another host's.
        ReportConflict: the attempt was settled by another report.
        InvalidInput: the body is no report, or quotes another fencing token.
    """
    if standing is None:
        raise NotFound(f"there is no attempt {arrived.attempt_id}")
    attempt = standing.attempt
    if attempt.host_id != arrived.host_id:
        raise Forbidden(
            f"attempt {attempt.attempt_id} is not of host {arrived.host_id}", hint=FOREIGN_CREDENTIAL_HINT
        )
    digest = digest_of(arrived.body)
    if digest in standing.report_digests:
        return stored_answer(attempt)
    if attempt.report_digest is not None:
        raise ReportConflict(f"attempt {attempt.attempt_id} was settled by report {attempt.report_digest}")
    return ValidReport(
        arrived=arrived,
        digest=digest,
        evidence=parse_evidence(arrived.body, attempt) if arrived.read is None else arrived.read.evidence,
        attempt=attempt,
        job=standing.job,
        counted=_is_counted(attempt, standing.job),
    )


def evaluate_report(taken: ValidReport, work_by_job: Mapping[JobId, JobContext]) -> ReportEvaluation:
    """What a report that counts means."""
    work = work_by_job.get(taken.job.job_id)
    read = taken.arrived.read
    reading = read_evidence(work, taken.attempt, taken.evidence) if read is None else read.reading
    measured = None
    if work is not None and isinstance(reading, Reading):
        measured = measurement_of(
            taken.job, work, taken.attempt, taken.evidence, reading, now=taken.arrived.at
        )
    return ReportEvaluation(taken=taken, work=work, ending=outcome_of(reading), measured=measured)


def stored_answer(attempt: Attempt) -> ReportAnswer:
    """What became of an attempt, to a report that changes nothing."""
    return ReportAnswer(
        attempt_id=attempt.attempt_id,
        counted=attempt.report_digest is not None,
        outcome=attempt.outcome,
        message=attempt.message or "",
    )


def answer_to(attempt: Attempt, ending: AttemptOutcome) -> ReportAnswer:
    """What became of an attempt by the report that counted."""
    return ReportAnswer(
        attempt_id=attempt.attempt_id, counted=True, outcome=ending.outcome, message=ending.message
    )


def parse_evidence(body: bytes, attempt: Attempt) -> Evidence:
    """The evidence in a report's bytes.

    Raises:
        InvalidInput: they are no report, or quote another fencing token.
    """
    try:
        evidence = _REPORT.validate_json(make_storable(body)).evidence
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidInput(
            f"the report of attempt {attempt.attempt_id} is malformed at {where}: {first['msg']}",
            hint="run agent and farm of the same release",
        ) from error
    if evidence.fence != attempt.fence:
        raise InvalidInput(f"the report quotes fence {evidence.fence}, the attempt has {attempt.fence}")
    return evidence


def _is_counted(attempt: Attempt, job: Job) -> bool:
    over = attempt.state in (AttemptState.FINISHED, AttemptState.RETURNED)
    if job.kind is JobKind.CHECK and attempt.code == DEVICE_MOVED:
        # It says nothing of the phone where that is now: on another cable, and handled on the way.
        return False
    return not over and job.attempt_id == attempt.attempt_id and job.state is not JobState.FINISHED


def read_evidence(
    work: JobContext | None, attempt: Attempt, evidence: Evidence
) -> Reading | RunFailure | None:
    """What the evidence says; None for a check that was passed."""
    try:
        if work is None:
            return device_check.failure(attempt.plan, evidence)
        return adapter_of(work.program).parse(attempt.plan, evidence)
    except _BUGS as error:
        # An adapter never raises. Should one do so, its phone must not be held until somebody mends it.
        _log.error(
            "adapter_failed", attempt_id=attempt.attempt_id, harness=attempt.plan.harness, exc_info=error
        )
        return RunFailure(
            code="harness.adapter_failed",
            outcome=Outcome.INCONCLUSIVE,
            blame=Blame.FARM,
            message=f"the adapter of {attempt.plan.harness} failed on this output: {type(error).__name__}",
            hint="the evidence is kept; report this with it",
        )


def outcome_of(reading: Reading | RunFailure | None) -> AttemptOutcome:
    """How an attempt ends whose evidence is read so."""
    if not isinstance(reading, RunFailure):
        return AttemptOutcome(outcome=Outcome.SUCCEEDED)
    message = f"{reading.message}: {reading.line}" if reading.line else reading.message
    return AttemptOutcome(
        outcome=reading.outcome,
        blame=reading.blame,
        code=reading.code,
        message=f"{message} ({reading.hint})",
    )
