"""A new life of an agent: older sessions are fenced, unfinished attempts adopted or ended."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.devices.host_state import SessionState
from farm.core.jobs.attempt import Attempt, AttemptState
from farm.database.notifications import notify_hosts
from farm.services.access.enrollment import check_wire_version
from farm.services.agents.exchange.apply import apply
from farm.services.agents.exchange.reconcile import progress, raised_fences
from farm.services.agents.orphaned_runs import orphaned_runs
from farm.services.jobs.termination import finish_cancelled_attempt, lose_attempt, return_attempt
from farm.store.devices import devices
from farm.store.hosts import hosts
from farm.store.jobs import attempts
from farm.store.operations import database_epochs
from farm.store.operations.database_epochs import DatabaseEpoch
from farm.store.results.missing_reports import missing_reports
from farm.wire.agents.protocol import AttemptOrder, AttemptReport, SessionAnswer, SessionOpening

#: How often an agent calls at least.
HEARTBEAT_S = 10.0


def open_session(
    connection: Connection, host_id: HostId, opening: SessionOpening, *, now: datetime
) -> SessionAnswer:
    """Open a session, and say for each attempt of the agent's journal what becomes of it.

    An attempt goes on when it is still live, or lost and nothing took its place, the agent holds its token,
    and its run had started; what was claimed or being prepared is given back; what was being measured and is
    not in the journal is lost. So is what a restored database saw no more of than its claim: its report may
    be among those sent again.

    Raises:
        InvalidInput: the agent's wire version is not served.
    """
    check_wire_version(opening.wire_version)
    epoch = database_epochs.current_epoch(connection)
    known = devices.list_devices(connection, host_id=host_id)
    apply(connection, host_id, raised_fences(known, opening.attempts), now=now)
    older = hosts.current_session(connection, host_id)
    owned = attempts.live_attempts(connection, older.session_id) if older else []
    if all(attempt.cpu_domain is None for attempt in owned):
        # Else phones of other hosts may have waited for that CPU.
        notify_hosts(connection, [host_id])
    unwanted = attempts.attempts_to_stop(connection, older.session_id) if older else set()
    if older:
        hosts.move_session(connection, older, SessionState.CLOSED, now=now, cause="a newer session opened")
    session = hosts.add_session(
        connection,
        host_id=host_id,
        boot_id=opening.boot_id,
        agent_version=opening.agent_version,
        now=now,
    )
    hosts.record_adb_port(connection, host_id, opening.adb_port)
    journal = {report.attempt_id: report for report in opening.attempts}
    adopted = {
        attempt.attempt_id
        for attempt in owned
        if attempt.attempt_id not in unwanted and _is_adoptable(attempt, journal.get(attempt.attempt_id))
    }
    lost = orphaned_runs(
        connection, host_id, opening.attempts, live={attempt.attempt_id for attempt in owned}
    )
    for attempt in owned:
        if attempt.attempt_id in adopted:
            attempts.transfer_attempt(connection, attempt, session.session_id)
            # At once: a grant that looks unstarted would be taken back.
            apply(connection, host_id, progress(attempt, journal[attempt.attempt_id]), now=now)
        else:
            _end(connection, attempt, epoch, cancelled=attempt.attempt_id in unwanted, now=now)
    wanted = adopted | {attempt.attempt_id for attempt in lost}
    orders = tuple(
        AttemptOrder(attempt_id=entry, do="continue", why="nothing took its place")
        if entry in wanted
        else AttemptOrder(attempt_id=entry, do="abandon", why="the attempt is over, or its run never started")
        for entry in journal
    )
    return SessionAnswer(
        session_id=session.session_id,
        epoch=session.epoch,
        heartbeat_s=HEARTBEAT_S,
        orders=orders,
        database_epoch=epoch.epoch,
        reports_wanted=tuple(missing_reports(connection, host_id)),
    )


def _is_adoptable(attempt: Attempt, entry: AttemptReport | None) -> bool:
    started = (AttemptState.MEASURING, AttemptState.REPORTING)
    return entry is not None and entry.fence == attempt.fence and entry.phase in started


def _end(
    connection: Connection, attempt: Attempt, epoch: DatabaseEpoch, *, cancelled: bool, now: datetime
) -> None:
    forgot = attempt.claimed_at < epoch.began_at
    cause = f"the database was {epoch.cause}" if forgot else "the agent was restarted"
    if attempt.state in (AttemptState.CLAIMED, AttemptState.PREPARING) and not forgot:
        return_attempt(connection, attempt, now=now, actor="farm", reason=cause)
    elif cancelled:
        finish_cancelled_attempt(
            connection, attempt, now=now, actor="farm", cause=f"its job was cancelled, and {cause}"
        )
    else:
        lose_attempt(connection, attempt, now=now, cause=cause)
