"""Notes how far an agent says its attempts are."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.jobs.attempt import AttemptEvent, AttemptState
from farm.core.jobs.deferral import JOB_DEFERRED
from farm.services.jobs.termination import finish_cancelled_attempt, lose_attempt, return_attempt
from farm.store.hosts.hosts import Session
from farm.store.jobs import attempts
from farm.store.jobs.attempts import Attempt
from farm.wire.agents.protocol import AttemptReport

_EVENT_BY_PHASE = {
    AttemptState.PREPARING: AttemptEvent.PREPARED,
    AttemptState.MEASURING: AttemptEvent.STARTED,
    AttemptState.REPORTING: AttemptEvent.ENDED,
}


def record_attempts(
    connection: Connection, session: Session, reports: Sequence[AttemptReport], *, now: datetime
) -> None:
    """Apply a full list of what an agent has in hand; what quotes another fence or session changes nothing.

    An attempt of a cancelled job ends as soon as its agent no longer lists it. Any other that the agent had
    begun and lists no longer is lost: it let go of it, for one because the farm refused its report for good.
    Nothing else would ever end it while the agent lives.
    """
    owned = attempts.live_attempts(connection, session.session_id)
    unwanted = attempts.attempts_to_stop(connection, session.session_id)
    report_by_id = {report.attempt_id: report for report in reports}
    for attempt in owned:
        report = report_by_id.get(attempt.attempt_id)
        if report is not None:
            is_unwanted = attempt.attempt_id in unwanted
            record_phase(connection, attempt, _as_preparing(report) if is_unwanted else report, now=now)
        elif attempt.attempt_id in unwanted:
            _end_unlisted(connection, attempt, now=now)
        elif attempt.state is not AttemptState.CLAIMED:
            lose_attempt(connection, attempt, now=now, cause="its agent let go of it", code="host.let_go")


def _end_unlisted(connection: Connection, attempt: Attempt, *, now: datetime) -> None:
    """End an attempt of a cancelled job that its agent lists no longer, or never did."""
    actor = f"agent:{attempt.host_id}"
    if attempt.state is AttemptState.CLAIMED:
        return_attempt(
            connection, attempt, now=now, actor=actor, reason="its job was cancelled before it began"
        )
    else:
        cause = "its job was cancelled, and its agent stopped it"
        finish_cancelled_attempt(connection, attempt, now=now, actor=actor, cause=cause)


def _as_preparing(report: AttemptReport) -> AttemptReport:
    """The report of an attempt that will be stopped: what the agent has in hand, it has to clean up."""
    if report.phase is not AttemptState.CLAIMED:
        return report
    return report.model_copy(update={"phase": AttemptState.PREPARING})


def record_phase(connection: Connection, attempt: Attempt, report: AttemptReport, *, now: datetime) -> None:
    """Move a live attempt to the phase its agent reports, unless that quotes another fence."""
    actor = f"agent:{attempt.host_id}"
    if attempt.fence != report.fence:
        return
    if report.phase is AttemptState.RETURNED:
        reason = report.reason or "the agent put it off"
        return_attempt(connection, attempt, now=now, actor=actor, reason=reason, code=JOB_DEFERRED)
    elif event := _EVENT_BY_PHASE.get(report.phase):
        moved = attempts.move_attempt(connection, attempt, event, now=now, actor=actor)
        attempt = replace(attempt, state=AttemptState(report.phase), waiting_for=None) if moved else attempt
    if attempt.state is report.phase and attempt.waiting_for != report.waiting_for:
        attempts.record_waiting(connection, attempt, report.waiting_for)
