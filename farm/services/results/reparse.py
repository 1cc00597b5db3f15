"""Parse stored evidence again by the present adapters: first what would change, then the change itself.

Looking takes no lock. What was found is carried out in one short transaction, each by comparing with what is
stored then: killed anywhere, or carried out by two at once, it is as if the rest had not been read yet.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from farm.core.base.ids import AttemptId
from farm.core.base.units import duration_text
from farm.core.errors import InvalidInput
from farm.core.operations.event import WorkEvent
from farm.core.results.reparse import ReparseChange, ReparseKind, reparse_change_text
from farm.core.results.settle.report import IncomingReport, NewMeasurement, ParsedReport, ReportReading
from farm.core.runs.measurement import UNKNOWN_ACCELERATOR, Outcome, RunFailure
from farm.core.runs.placement import Placement
from farm.database.transaction import Tx
from farm.services.files.harnesses import adapter_of
from farm.services.results.parse import UNPARSED, JobContexts, ReportSubject, subjects_of
from farm.store.jobs.context import JobContext
from farm.store.operations.events import record_event
from farm.store.results.history.retractions import as_parsed, keep_retraction
from farm.store.results.interchange.imported_energy import keep_imported_energy
from farm.store.results.measurements import add_measurements, stored_values
from farm.store.results.placements import current_placements
from farm.store.results.provenance import counted_reports
from farm.store.results.reparse import (
    ReparseSelection,
    attempts_to_reparse,
    changed_columns,
    readings_by_attempt,
    supersede,
    withdraw,
)
from farm.store.results.settle.report_context import find_planned
from farm.wire.documents.results.results import ReparsePage

_MAX_VALUE_CHARS = 60
_MAX_DIFFERENCES = 4
#: Of these, nothing follows for what was read before.
_UNREAD = ("harness.adapter_failed", UNPARSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingReparse:
    """One attempt that is read otherwise, with all it takes to carry that out."""

    reparse_change: ReparseChange
    #: None where nothing was measured before.
    measurement_id: int | None
    #: None where nothing can be read now.
    measured: NewMeasurement | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReparseScan:
    """A page of attempts with the changes that are due, and what it takes to make them."""

    page: ReparsePage
    pending: tuple[PendingReparse, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleReport:
    """A report that an older version of its adapter read, or none could."""

    subject: ReportSubject
    work: JobContext
    body: bytes
    readings: Sequence[Mapping[str, Any]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleReports:
    """A page of attempts with what it takes to parse their reports again."""

    reports: Sequence[StaleReport]
    placement_by_attempt: Mapping[AttemptId, Placement | None]
    up_to_date: int
    expired: int
    next_after: AttemptId | None
    read_at: datetime


def stale_reports(tx: Tx, selection: ReparseSelection, *, after: AttemptId, limit: int) -> StaleReports:
    """Read the reports of the next `limit` attempts that are to be parsed again."""
    attempt_ids = attempts_to_reparse(tx.connection, selection, after=after, limit=limit)
    subjects = subjects_of(tx.connection, find_planned(tx.connection, attempt_ids), JobContexts())
    readings = readings_by_attempt(tx.connection, attempt_ids)
    work = {attempt_id: work for attempt_id in attempt_ids if (work := subjects[attempt_id].work) is not None}
    stale = [
        attempt_id for attempt_id in attempt_ids if _is_stale(work[attempt_id], readings.get(attempt_id))
    ]
    bodies = counted_reports(tx.connection, stale)
    attempts = [subjects[attempt_id].attempt for attempt_id in stale]
    rests_on = {attempt.plan.shown.attempt_id for attempt in attempts if attempt.plan.shown is not None}
    return StaleReports(
        reports=[
            StaleReport(
                subject=subjects[attempt_id],
                work=work[attempt_id],
                body=bodies[attempt_id],
                readings=readings.get(attempt_id),
            )
            for attempt_id in stale
            if attempt_id in bodies
        ],
        placement_by_attempt=current_placements(tx.connection, rests_on),
        up_to_date=len(attempt_ids) - len(stale),
        expired=len(stale) - len(bodies),
        next_after=attempt_ids[-1] if len(attempt_ids) == limit else None,
        read_at=tx.now,
    )


def compare_readings(
    stored: StaleReports, parse: Callable[[IncomingReport, ReportSubject], ParsedReport]
) -> ReparseScan:
    """Return what the present adapters read otherwise. Changes nothing, and touches no database."""
    shown = _CurrentPlacements(stored.placement_by_attempt)
    pending: list[PendingReparse] = []
    for report in stored.reports:
        compared = _compare(shown.present(report.subject), report, parse, stored.read_at)
        if compared is not None:
            pending.append(compared)
            shown.note(compared)
    page = ReparsePage(
        changes=tuple(reparse.reparse_change for reparse in pending),
        examined=len(stored.reports),
        up_to_date=stored.up_to_date,
        expired=stored.expired,
        next_after=stored.next_after,
    )
    return ReparseScan(page=page, pending=tuple(pending))


def apply_changes(tx: Tx, pending: Sequence[PendingReparse]) -> list[ReparseChange]:
    """Make what was found so, each with its event; what is otherwise by now is left out of the answer."""
    return [
        reparse.reparse_change
        for reparse in pending
        if reparse.reparse_change.kind is ReparseKind.BROKEN or _apply_change(tx, reparse)
    ]


class _CurrentPlacements:
    """Placements of earlier runs by the present readings: plans keep what was read when they were made.

    An earlier run has a lower number, so in a piece of work it comes before those that rest on it.
    """

    def __init__(self, placement_by_attempt: Mapping[AttemptId, Placement | None]) -> None:
        self._placement_by_attempt = dict(placement_by_attempt)

    def present(self, subject: ReportSubject) -> ReportSubject:
        """Return the subject with the current placement in its plan."""
        plan = subject.attempt.plan
        if plan.shown is None or plan.shown.attempt_id not in self._placement_by_attempt:
            return subject
        placement = self._placement_by_attempt[plan.shown.attempt_id]
        shown = None if placement is None else replace(plan.shown, placement=placement)
        return replace(subject, attempt=replace(subject.attempt, plan=replace(plan, shown=shown)))

    def note(self, pending: PendingReparse) -> None:
        """Note a change that is about to be made."""
        if pending.reparse_change.kind is ReparseKind.BROKEN:
            return
        measured = pending.measured
        is_known = measured is not None and measured.accelerator != UNKNOWN_ACCELERATOR
        self._placement_by_attempt[pending.reparse_change.attempt_id] = (
            measured.placement if measured and is_known else None
        )


def _is_stale(work: JobContext, readings: Sequence[Mapping[str, Any]] | None) -> bool:
    """Tell whether an older version read it, or none could: what cannot be read leaves no version."""
    return not readings or readings[-1]["parser_version"] < adapter_of(work.program).parser_version


def _compare(
    subject: ReportSubject,
    report: StaleReport,
    parse: Callable[[IncomingReport, ReportSubject], ParsedReport],
    now: datetime,
) -> PendingReparse | None:
    """Return the change of a report; None where it is read alike."""
    attempt, job, work, readings = subject.attempt, subject.job, report.work, report.readings
    incoming = IncomingReport(
        host_id=attempt.host_id, attempt_id=attempt.attempt_id, body=report.body, at=now
    )
    reading = parse(incoming, subject).reading
    if isinstance(reading, InvalidInput):
        raise reading
    assert isinstance(reading, ReportReading)
    stored = next((row for row in readings or () if row["accepted"]), None)
    if reading.failure is not None:
        return _unreadable_change(subject, work, reading.failure, stored)
    measured = reading.measured
    assert measured is not None
    if stored is None:
        unaccepted = _with_values(measured, accepted=False, measured_at=attempt.finished_at or now)
        what = f"it ended as {job.outcome}, and {_value_text(stored_values(measured))} can be read"
        return _pending_reparse(ReparseKind.READABLE, subject, work, None, unaccepted, what)
    stored = as_parsed(stored, readings or ())
    changed = changed_columns(stored, measured)
    if not changed:
        return None
    new = _with_values(measured, measured_at=stored["measured_at"])
    return _pending_reparse(
        ReparseKind.CHANGED, subject, work, stored, new, _difference_text(stored, stored_values(new), changed)
    )


def _with_values(measured: NewMeasurement, **values: object) -> NewMeasurement:
    return replace(measured, values={**measured.values, **values})


def _unreadable_change(
    subject: ReportSubject, work: JobContext, failure: RunFailure, stored: Mapping[str, Any] | None
) -> PendingReparse | None:
    """Return no change for a report that could not be read before either."""
    if failure.code in _UNREAD:
        return _pending_reparse(ReparseKind.BROKEN, subject, work, stored, None, failure.message)
    if stored is None or failure.outcome is Outcome.INCONCLUSIVE:
        return None
    return _pending_reparse(
        ReparseKind.WITHDRAWN, subject, work, stored, None, f"{failure.message} ({failure.code})"
    )


def _pending_reparse(
    kind: ReparseKind,
    subject: ReportSubject,
    work: JobContext,
    stored: Mapping[str, Any] | None,
    measured: NewMeasurement | None,
    what: str,
) -> PendingReparse:
    reparse_change = ReparseChange(
        kind=kind,
        attempt_id=subject.attempt.attempt_id,
        job_id=subject.job.job_id,
        matrix_id=work.cell.matrix_id,
        harness=work.program.harness,
        from_version=None if stored is None else stored["parser_version"],
        to_version=adapter_of(work.program).parser_version,
        what=what,
    )
    measurement_id = None if stored is None else stored["measurement_id"]
    return PendingReparse(reparse_change=reparse_change, measurement_id=measurement_id, measured=measured)


def _apply_change(tx: Tx, pending: PendingReparse) -> bool:
    if not _write_change(tx, pending):
        return False
    cause = f"attempt {pending.reparse_change.attempt_id}, {reparse_change_text(pending.reparse_change)}"
    record_event(tx, WorkEvent.JOB_REPARSED, pending.reparse_change.job_id, cause=cause)
    return True


def _write_change(tx: Tx, pending: PendingReparse) -> bool:
    reparse_change, measurement_id = pending.reparse_change, pending.measurement_id
    match reparse_change.kind:
        case ReparseKind.CHANGED:
            assert measurement_id is not None
            if not supersede(tx, measurement_id):
                return False
        case ReparseKind.WITHDRAWN:
            assert measurement_id is not None
            version = reparse_change.to_version
            return withdraw(tx, measurement_id, parser_version=version, reason=reparse_change.what)
        case ReparseKind.READABLE:
            readings = readings_by_attempt(tx.connection, [reparse_change.attempt_id]).get(
                reparse_change.attempt_id, []
            )
            if any(row["accepted"] or row["parser_version"] >= reparse_change.to_version for row in readings):
                return False
        case ReparseKind.BROKEN:
            return False
    assert pending.measured is not None
    add_measurements(tx.connection, [pending.measured])
    if measurement_id is not None:
        keep_retraction(tx, reparse_change.attempt_id, measurement_id)
        keep_imported_energy(tx.connection, reparse_change.attempt_id, measurement_id)
    return True


def _difference_text(stored: Mapping[str, Any], new: Mapping[str, Any], changed: Sequence[str]) -> str:
    """Describe the differences: the most telling first, and no more than a person reads."""
    if "value_ns" in changed or "kind" in changed:
        return f"{_value_text(stored)} became {_value_text(new)}"
    shown = [
        f"{name} {_short_text(stored[name])} became {_short_text(new[name])}"
        for name in changed[:_MAX_DIFFERENCES]
    ]
    more = len(changed) - _MAX_DIFFERENCES
    return "; ".join([*shown, *([f"{more} more"] if more > 0 else [])])


def _value_text(values: Mapping[str, Any]) -> str:
    details = ", ".join(str(values[name]) for name in ("kind", "quality", "accelerator"))
    return f"{duration_text(values['value_ns'])} ({details})"


def _short_text(value: Any) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes of samples"
    text = "nothing" if value in (None, [], {}) else str(value)
    return text if len(text) <= _MAX_VALUE_CHARS else f"{text[:_MAX_VALUE_CHARS]}..."
