"""Reads stored evidence again by the present adapters: first what would change, then the change itself.

Looking takes no lock. What was found is carried out in one short transaction, each by comparing with what is
stored then: killed anywhere, or carried out by two at once, it is as if the rest had not been looked at yet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId
from farm.core.base.units import duration_text
from farm.core.operations.event import Subject, WorkEvent
from farm.core.results.reparse import Reread, RereadKind, reread_words
from farm.core.runs.measurement import UNKNOWN_ACCELERATOR, Outcome, Reading, RunFailure
from farm.services.files.adapters import adapter_of
from farm.services.results.evaluation import evidence_in, read_evidence
from farm.services.results.recording import measurement_of
from farm.store.jobs.attempts import Attempt
from farm.store.jobs.context import Work, work_of
from farm.store.operations.events import record_event
from farm.store.results.measurements import NewMeasurement, add_measurements, stored_values
from farm.store.results.placements import present_placements
from farm.store.results.provenance import counted_reports
from farm.store.results.reparse import (
    Selection,
    attempts_to_reread,
    differences,
    readings_of,
    supersede,
    withdraw,
)
from farm.store.results.report_context import Standing, standings_of

_SHOWN_CHARS = 60
_MOST_TOLD = 4
_FAILED_ADAPTER = "harness.adapter_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One attempt that is read otherwise, with all it takes to carry that out."""

    reread: Reread
    #: None where nothing was measured before.
    measurement_id: int | None
    #: None where nothing can be read now.
    measured: NewMeasurement | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A piece of the work: some attempts, in the order of their numbers."""

    found: tuple[Found, ...] = ()
    #: How many have evidence that an older version read, or nobody could.
    looked_at: int = 0
    #: How many were read by this version of their adapter already.
    up_to_date: int = 0
    #: How many have lost their evidence by the rules of retention.
    expired: int = 0
    #: Where the next piece begins; None where there is none.
    next_after: AttemptId | None = None


def look_again(
    connection: Connection, selection: Selection, *, after: AttemptId, limit: int, now: datetime
) -> Looked:
    """What the present adapters read otherwise in the next `limit` attempts. Changes nothing."""
    attempt_ids = attempts_to_reread(connection, selection, after=after, limit=limit)
    standings = standings_of(connection, attempt_ids)
    work_by_job = work_of(connection, [standing.job for standing in standings.values()])
    readings = readings_of(connection, attempt_ids)
    work = {each: work_by_job[standings[each].job.job_id] for each in attempt_ids}
    stale = [each for each in attempt_ids if _is_stale(work[each], readings.get(each))]
    reports = counted_reports(connection, stale)
    shown = _Shown(connection, [standings[each].attempt for each in stale])
    found: list[Found] = []
    for each in stale:
        if each not in reports:
            continue
        standing = shown.present(standings[each])
        compared = _compared(standing, work[each], reports[each], readings.get(each), now)
        if compared is not None:
            found.append(compared)
            shown.note(compared)
    return Looked(
        found=tuple(found),
        looked_at=len(reports),
        up_to_date=len(attempt_ids) - len(stale),
        expired=len(stale) - len(reports),
        next_after=attempt_ids[-1] if len(attempt_ids) == limit else None,
    )


def carry_out(connection: Connection, found: Sequence[Found], *, now: datetime, actor: str) -> list[Reread]:
    """Make what was found so, each with its event; what is otherwise by now is left out of the answer."""
    return [
        each.reread
        for each in found
        if each.reread.kind is RereadKind.BROKEN or _carried_out(connection, each, now=now, actor=actor)
    ]


class _Shown:
    """What earlier runs show by the readings of now: plans keep what was read when they were made.

    An earlier run has a lower number, so in a piece of work it comes before those that rest on it.
    """

    def __init__(self, connection: Connection, attempts: Sequence[Attempt]) -> None:
        rests_on = {each.plan.shown.attempt_id for each in attempts if each.plan.shown is not None}
        self._placement_by_attempt = present_placements(connection, rests_on)

    def present(self, standing: Standing) -> Standing:
        """The attempt with what counts now in its plan."""
        plan = standing.attempt.plan
        if plan.shown is None or plan.shown.attempt_id not in self._placement_by_attempt:
            return standing
        placement = self._placement_by_attempt[plan.shown.attempt_id]
        shown = None if placement is None else replace(plan.shown, placement=placement)
        return replace(standing, attempt=replace(standing.attempt, plan=replace(plan, shown=shown)))

    def note(self, found: Found) -> None:
        """What this piece is about to change."""
        if found.reread.kind is RereadKind.BROKEN:
            return
        reading = None if found.measured is None else found.measured.reading
        is_known = reading is not None and reading.accelerator != UNKNOWN_ACCELERATOR
        self._placement_by_attempt[found.reread.attempt_id] = (
            reading.placement if reading and is_known else None
        )


def _is_stale(work: Work, readings: Sequence[Mapping[str, Any]] | None) -> bool:
    """Whether an older version read it, or none could: what cannot be read leaves no version."""
    return not readings or readings[-1]["parser_version"] < adapter_of(work.program).parser_version


def _compared(
    standing: Standing,
    work: Work,
    report: bytes,
    readings: Sequence[Mapping[str, Any]] | None,
    now: datetime,
) -> Found | None:
    """None where it is read alike."""
    attempt, job = standing.attempt, standing.job
    evidence = evidence_in(report, attempt)
    reading = read_evidence(work, attempt, evidence)
    stored = next((row for row in readings or () if row["accepted"]), None)
    if isinstance(reading, RunFailure):
        return _unread(standing, work, reading, stored)
    assert isinstance(reading, Reading)
    measured = measurement_of(job, work, attempt, evidence, reading, now=now)
    if stored is None:
        kept = replace(measured, accepted=False, measured_at=attempt.finished_at or now)
        what = f"it ended as {job.outcome}, and {_figures(stored_values(measured))} can be read"
        return _found(RereadKind.READABLE, standing, work, None, kept, what)
    changed = differences(stored, measured)
    if not changed:
        return None
    new = replace(measured, measured_at=stored["measured_at"])
    return _found(RereadKind.CHANGED, standing, work, stored, new, _told(stored, stored_values(new), changed))


def _unread(
    standing: Standing, work: Work, failure: RunFailure, stored: Mapping[str, Any] | None
) -> Found | None:
    """What could not be read before either is no news."""
    if failure.code == _FAILED_ADAPTER:
        return _found(RereadKind.BROKEN, standing, work, stored, None, failure.message)
    if stored is None or failure.outcome is Outcome.INCONCLUSIVE:
        return None
    return _found(RereadKind.WITHDRAWN, standing, work, stored, None, f"{failure.message} ({failure.code})")


def _found(
    kind: RereadKind,
    standing: Standing,
    work: Work,
    stored: Mapping[str, Any] | None,
    measured: NewMeasurement | None,
    what: str,
) -> Found:
    reread = Reread(
        kind=kind,
        attempt_id=standing.attempt.attempt_id,
        job_id=standing.job.job_id,
        matrix_id=work.terms.matrix_id,
        harness=work.terms.harness,
        from_version=None if stored is None else stored["parser_version"],
        to_version=adapter_of(work.program).parser_version,
        what=what,
    )
    measurement_id = None if stored is None else stored["measurement_id"]
    return Found(reread=reread, measurement_id=measurement_id, measured=measured)


def _carried_out(connection: Connection, found: Found, *, now: datetime, actor: str) -> bool:
    if not _written(connection, found, now=now):
        return False
    record_event(
        connection,
        at=now,
        actor=actor,
        kind=WorkEvent.JOB_REREAD,
        subject=Subject.JOB,
        subject_id=found.reread.job_id,
        cause=f"attempt {found.reread.attempt_id}, {reread_words(found.reread)}",
    )
    return True


def _written(connection: Connection, found: Found, *, now: datetime) -> bool:
    reread, measurement_id = found.reread, found.measurement_id
    match reread.kind:
        case RereadKind.CHANGED:
            assert measurement_id is not None
            if not supersede(connection, measurement_id, now=now):
                return False
        case RereadKind.WITHDRAWN:
            assert measurement_id is not None
            version = reread.to_version
            return withdraw(connection, measurement_id, parser_version=version, reason=reread.what, now=now)
        case RereadKind.READABLE:
            readings = readings_of(connection, [reread.attempt_id]).get(reread.attempt_id, [])
            if any(row["accepted"] or row["parser_version"] >= reread.to_version for row in readings):
                return False
        case RereadKind.BROKEN:
            return False
    assert found.measured is not None
    add_measurements(connection, [found.measured])
    return True


def _told(stored: Mapping[str, Any], new: Mapping[str, Any], changed: Sequence[str]) -> str:
    """What is otherwise: the most telling first, and no more than anybody reads."""
    if "value_ns" in changed or "kind" in changed:
        return f"{_figures(stored)} became {_figures(new)}"
    shown = [f"{name} {_short(stored[name])} became {_short(new[name])}" for name in changed[:_MOST_TOLD]]
    more = len(changed) - _MOST_TOLD
    return "; ".join([*shown, *([f"{more} more"] if more > 0 else [])])


def _figures(values: Mapping[str, Any]) -> str:
    said = ", ".join(str(values[name]) for name in ("kind", "quality", "accelerator"))
    return f"{duration_text(values['value_ns'])} ({said})"


def _short(value: Any) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes of samples"
    text = "nothing" if value in (None, [], {}) else str(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
