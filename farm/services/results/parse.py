"""Parse reports before the transaction that settles them, where no writer waits for adapters.

Plan and program, by which a report is parsed, never change; what it means for the farm is decided later, by
`farm.core.results.settle.evaluation`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog
from pydantic import ValidationError
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, JobId, digest_of
from farm.core.checks.reference_fitness import FITNESS, own_reference_key, reference_key, unfit_reasons
from farm.core.checks.reference_run import ReferenceRun, ReferenceVerdict
from farm.core.errors import Blame, InvalidInput, NotFound
from farm.core.jobs.attempt import Attempt, AttemptOutcome
from farm.core.jobs.job import Job, JobKind
from farm.core.results.settle.report import (
    IncomingReport,
    NewMeasurement,
    ParsedReport,
    ReportReading,
)
from farm.core.runs.corroboration import corroborate
from farm.core.runs.derived.energy import (
    EnergyReading,
    battery_energy,
    energy_metric,
    rails_energy,
    stored_energy,
)
from farm.core.runs.derived.memory import memory_metrics
from farm.core.runs.derived.sustained import first_ceiling_s, summarize_sustained, sustained_metrics
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import PEAK_RSS, EnergyMethod, Outcome, Reading, RunFailure
from farm.core.runs.placement import Accelerator
from farm.core.runs.quality import assess_quality, notices
from farm.core.runs.stats import summarize_samples
from farm.core.runs.trace import RunTrace
from farm.core.runs.trace_findings import stored_ceilings, trace_findings
from farm.harness.base import device_check
from farm.harness.base.options import flag_defaults
from farm.phone.condition.energy_rails import rail_reading
from farm.phone.condition.run_trace import run_trace
from farm.services.files.harnesses import adapter_of
from farm.services.jobs.series import series_of_plan
from farm.store.devices.facts import CheckedDevice, find_checked_device
from farm.store.files.programs import Program
from farm.store.jobs.context import JobContext, job_contexts
from farm.store.results.measurements import reading_values
from farm.store.results.settle.report_context import find_planned
from farm.wire.agents.plausibility import read_report
from farm.wire.storable_text import make_storable

#: The number of contexts, a few kilobytes each, above which earlier ones are dropped.
_MAX_CONTEXTS = 1000
_BUGS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_PROGRAM = "program"
#: Code of a report whose parsing exceeded its budget. The report is kept.
UNPARSED = "report.unparsed"
#: The largest report for which the adapters' own patterns take milliseconds only.
_MAX_CHEAP_BYTES = 64 * 1024
#: RE2 takes up to 2 ns for each pattern and square byte of output where every match looks ahead to the end.
_MAX_CHEAP_SQUARES = 64_000_000
#: Of the times in a definition, and of a backend's proof and fallback.
_FIXED_PATTERNS = 7
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSubject:
    """The subject of a report, as far as its parsing depends on it."""

    attempt: Attempt
    job: Job
    #: None for a check.
    work: JobContext | None
    #: As it is now; of a check alone, and of a device whose facts are known.
    device: CheckedDevice | None


class JobContexts:
    """Reads contexts of jobs and keeps them by cell, for they never change. Threads may share it."""

    def __init__(self) -> None:
        self._context_by_cell: dict[CellId, JobContext] = {}
        # A program may be registered again; what a report is parsed by stays.
        self._program_by_id: dict[int, Program] = {}

    def read(self, connection: Connection, jobs: Sequence[Job]) -> dict[JobId, JobContext]:
        """Return what `job_contexts` does."""
        known, programs = self._context_by_cell, self._program_by_id
        if len(known) > _MAX_CONTEXTS:
            known, programs = {}, {}
        unknown = [job for job in jobs if job.cell_id not in known]
        new = job_contexts(connection, unknown, known_programs=programs)
        programs.update({context.cell.program_id: context.program for context in new.values()})
        known.update({context.cell.cell_id: context for context in new.values()})
        self._context_by_cell, self._program_by_id = known, programs
        return {job.job_id: known[job.cell_id] for job in jobs if job.cell_id is not None}


def report_subjects(
    connection: Connection, reports: Sequence[IncomingReport], contexts: JobContexts
) -> list[ReportSubject | None]:
    """Read what reports are of; None where one will be refused, or came before, and so is not parsed."""
    by_id = {
        run[0].attempt_id: run for run in find_planned(connection, {report.attempt_id for report in reports})
    }
    wanted = {
        (report.host_id, report.attempt_id): by_id[report.attempt_id]
        for report in reports
        if report.attempt_id in by_id
        and by_id[report.attempt_id][0].host_id == report.host_id
        and by_id[report.attempt_id][0].report_digest is None
    }
    subjects = subjects_of(connection, list(wanted.values()), contexts)
    return [
        subjects[report.attempt_id] if (report.host_id, report.attempt_id) in wanted else None
        for report in reports
    ]


def subjects_of(
    connection: Connection, runs: Sequence[tuple[Attempt, Job]], contexts: JobContexts
) -> dict[AttemptId, ReportSubject]:
    """Read what the reports of attempts are parsed by."""
    work_by_job = contexts.read(connection, [job for _, job in runs])
    return {
        attempt.attempt_id: ReportSubject(
            attempt=attempt,
            job=job,
            work=work_by_job.get(job.job_id),
            device=find_checked_device(connection, attempt.device_id) if job.kind is JobKind.CHECK else None,
        )
        for attempt, job in runs
    }


def parse(report: IncomingReport, subject: ReportSubject | None) -> ParsedReport:
    """Parse a report from its evidence alone. Touches no database, and may take long."""
    return parsed_report(report, None if subject is None else read_report_of(report, subject))


def parse_cheap(report: IncomingReport, subject: ReportSubject | None) -> ParsedReport | None:
    """Parse a report that cannot take longer than a fraction of a second; None for any other."""
    if subject is None:
        return parsed_report(report, None)
    if len(report.body) > _MAX_CHEAP_BYTES:
        return None
    try:
        evidence = evidence_in(report.body, subject.attempt)
    except InvalidInput as error:
        return parsed_report(report, error)
    if not _is_cheap(evidence, subject.work):
        return None
    return parsed_report(report, _reading_of(evidence, report, subject))


def parsed_report(report: IncomingReport, reading: ReportReading | InvalidInput | None) -> ParsedReport:
    """Return a report with what was read in it."""
    return ParsedReport(incoming=report, digest=digest_of(report.body), reading=reading)


def read_report_of(report: IncomingReport, subject: ReportSubject) -> ReportReading | InvalidInput:
    """Return what a report says of its subject, or why it is not a report of it."""
    try:
        return _reading_of(evidence_in(report.body, subject.attempt), report, subject)
    except InvalidInput as error:
        return error


def unparsed(subject: ReportSubject, reason: str) -> ReportReading:
    """Return the reading of a report whose parsing was given up.

    The same program would print the same again: a benchmark is not repeated. A check is; its program is the
    farm's own, so what it prints is the device's.
    """
    is_check = subject.work is None
    failure = RunFailure(
        code=UNPARSED,
        outcome=Outcome.INCONCLUSIVE if is_check else Outcome.FAILED,
        blame=Blame.DEVICE if is_check else Blame.VARIANT,
        message=f"unparsed: {reason}",
        hint="the report is kept: have the program print less, or simplify the patterns of its definition;"
        " after an upgrade of the farm, `farm reparse` parses it again",
    )
    return ReportReading(outcome=_outcome_of(failure), failure=failure)


def _is_cheap(evidence: Evidence, work: JobContext | None) -> bool:
    """Tell whether a bound on parsing is small, by the length of outputs and the number of user patterns."""
    definition = None if work is None else work.program.definition
    if definition is None:
        return True
    patterns = _FIXED_PATTERNS + len(definition.get("metrics", ())) + len(definition.get("unsupported", ()))
    return (len(evidence.stdout) + len(evidence.stderr)) ** 2 * patterns <= _MAX_CHEAP_SQUARES


def _reading_of(evidence: Evidence, report: IncomingReport, subject: ReportSubject) -> ReportReading:
    attempt, work = subject.attempt, subject.work
    reading = read_evidence(work, attempt, evidence)
    measured = run = None
    if work is not None and isinstance(reading, Reading):
        measured = measurement_of(subject.job, work, attempt, evidence, reading, now=report.at)
    if subject.device is not None and reading is None:
        run = _reference_run(attempt, subject.device, evidence, now=report.at)
    failure = reading if isinstance(reading, RunFailure) else None
    return ReportReading(outcome=_outcome_of(reading), failure=failure, measured=measured, reference_run=run)


def evidence_in(body: bytes, attempt: Attempt) -> Evidence:
    """Return the evidence in a report's bytes.

    Raises:
        InvalidInput: they are no report, or quote another fencing token.
    """
    try:
        evidence = read_report(make_storable(body))
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


def read_evidence(
    work: JobContext | None, attempt: Attempt, evidence: Evidence
) -> Reading | RunFailure | None:
    """Return what the evidence says; None for a check that was passed."""
    try:
        if work is None:
            return device_check.failure(attempt.plan, evidence)
        return adapter_of(work.program).parse(attempt.plan, evidence)
    except (*_BUGS, NotFound) as error:
        # An adapter is there and never raises. Should it not, its phone must not be held until it is fixed.
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


def _outcome_of(reading: Reading | RunFailure | None) -> AttemptOutcome:
    """Return how an attempt ends whose evidence is read so."""
    if not isinstance(reading, RunFailure):
        return AttemptOutcome(outcome=Outcome.SUCCEEDED)
    message = f"{reading.message}: {reading.line}" if reading.line else reading.message
    return AttemptOutcome(
        outcome=reading.outcome,
        blame=reading.blame,
        code=reading.code,
        message=f"{message} ({reading.hint})",
    )


def measurement_of(
    job: Job, work: JobContext, attempt: Attempt, evidence: Evidence, reading: Reading, *, now: datetime
) -> NewMeasurement:
    """Judge a reading: it is its job's accepted measurement, whatever its quality."""
    harness, plan, spec = adapter_of(work.program), attempt.plan, work.spec
    reading = corroborate(reading, evidence.exit, evidence.after, requested_backend=work.cell.backend)
    summary = summarize_samples(reading) if plan.sustained_s is None else summarize_sustained(reading)
    trace = run_trace(evidence.trace)
    during = trace_findings(trace, reading, evidence, plan.gates, margin=spec.equivalence_margin)
    memory = memory_metrics(trace, reading)
    energy = _energy(spec.energy, trace, reading, evidence)
    further_metrics = (
        *(
            ()
            if plan.sustained_s is None
            else sustained_metrics(reading, first_ceiling_s=first_ceiling_s(during.ceilings))
        ),
        *(memory if isinstance(memory, tuple) else ()),
        *([energy_metric(energy)] if isinstance(energy, EnergyReading) else ()),
    )
    reading = replace(reading, metrics=(*reading.metrics, *further_metrics))
    assessment = assess_quality(
        reading,
        summary,
        requested_backend=work.cell.backend,
        evidence=evidence,
        gates=plan.gates,
        controls=plan.controls,
        noise_limit=spec.noise_limit,
        during=during,
        sustained_s=plan.sustained_s,
        margin=spec.equivalence_margin,
    )
    all_notices = [
        *notices(evidence.before, plan.gates, away_s=evidence.away_s),
        *during.notices,
        *([f"no {PEAK_RSS}: {memory}"] if isinstance(memory, str) else []),
        *([f"no energy: {energy}"] if isinstance(energy, str) else []),
    ]
    return NewMeasurement(
        attempt_id=attempt.attempt_id,
        cell_id=work.cell.cell_id,
        series=series_of_plan(work, plan, flag_defaults(harness)),
        quality=assessment.quality,
        actual_backend=reading.actual_backend,
        accelerator=reading.accelerator,
        proof=reading.proof,
        placement=reading.placement,
        values={
            "job_id": job.job_id,
            "round": job.round,
            "block": job.block,
            "repeat": job.repeat,
            "variant_digest": None if work.variant is None else work.variant.manifest.digest,
            "program_digest": work.program.digest,
            "facts_id": attempt.facts_id,
            "accepted": True,
            "quality_reasons": list(assessment.reasons),
            "notices": all_notices or None,
            **reading_values(reading, summary, evidence.controls),
            **_condition_values(evidence),
            "energy": stored_energy([energy]) if isinstance(energy, EnergyReading) else None,
            "ceilings": stored_ceilings(during.ceilings),
            "parser_version": harness.parser_version,
            "measured_at": now,
        },
    )


def _condition_values(evidence: Evidence) -> dict[str, object]:
    """Return by column what a device showed of itself before a run, and what the run took."""
    before, ended = evidence.before, evidence.exit
    return {
        "start_skin_c": None if before is None else before.skin_c,
        "start_battery_c": None if before is None else before.battery_c,
        "boot_id": None if before is None else before.boot_id,
        "start_uptime_s": None if before is None else before.uptime_s,
        "duration_s": None if ended is None else ended.duration_s,
        "cpu_s": None if ended is None else ended.cpu_s,
    }


def _energy(
    method: EnergyMethod, trace: RunTrace | None, reading: Reading, evidence: Evidence
) -> EnergyReading | str | None:
    """Return the energy of a run, or why it cannot be told; None where it is not measured."""
    if method == "battery":
        return battery_energy(trace, reading, evidence)
    if method == "rails":
        before, after = rail_reading(evidence.rails_before), rail_reading(evidence.rails_after)
        return rails_energy(before, after, reading, evidence)
    return None


def _reference_run(
    attempt: Attempt, device: CheckedDevice, evidence: Evidence, *, now: datetime
) -> ReferenceRun | None:
    """Return what a check that was passed took, without a verdict; None where its run did not end."""
    took = device_check.reference_time(evidence)
    if took is None:
        return None
    # Its length is not that of its passes: all of the check counts.
    whole = Reading(
        mean_ns=took.value_ns,
        expected_samples=0,
        actual_backend="cpu",
        accelerator=Accelerator.CPU,
        proof="sha256sum",
    )
    during = trace_findings(run_trace(evidence.trace), whole, evidence, FITNESS)
    return ReferenceRun(
        job_id=attempt.job_id,
        device_id=attempt.device_id,
        reference_key=_range_key(device, attempt, took.cores),
        facts_id=attempt.facts_id,
        program_digest=attempt.plan.file(_PROGRAM).digest,
        value_ns=took.value_ns,
        verdict=ReferenceVerdict.LEARNING,
        unfit_reasons="; ".join(unfit_reasons(evidence.before, evidence.after, device.facts, during)) or None,
        measured_at=now,
    )


def _range_key(device: CheckedDevice, attempt: Attempt, cores: str) -> str:
    kind, since = reference_key(device.facts, attempt.host_id, cores), device.rebaselined_at
    return kind if since is None else own_reference_key(kind, device.device_id, since)
