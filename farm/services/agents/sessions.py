"""A new life of an agent: older sessions are fenced, unfinished attempts adopted or ended."""

from farm.core.base.ids import HostId
from farm.core.devices.host_state import SessionState
from farm.core.jobs.attempt import AttemptRecord, AttemptState
from farm.database.notifications import notify_hosts
from farm.database.transaction import Tx
from farm.services.agents.exchange.exchange import apply_effects
from farm.services.agents.exchange.reconcile import progress, raised_fences
from farm.services.agents.orphaned_runs import orphaned_runs
from farm.services.jobs.termination import finish_cancelled_attempt, lose_attempt, return_attempt
from farm.store.devices import devices
from farm.store.hosts import hosts
from farm.store.jobs import attempts
from farm.store.operations import database_epochs
from farm.store.operations.database_epochs import DatabaseEpoch
from farm.store.results.evidence import missing_reports
from farm.wire.agents.protocol import AttemptOrder, AttemptReport, SessionAnswer, SessionOpening
from farm.wire.base import check_served

#: Longest interval between two calls of an agent.
HEARTBEAT_S = 10.0


def open_session(tx: Tx, host_id: HostId, opening: SessionOpening) -> SessionAnswer:
    """Open a session, and decide on each attempt of the agent's journal.

    An attempt goes on when it is still live, or lost and nothing took its place, the agent holds its token,
    and its run had started; what was claimed or being prepared is returned; what was being measured and is
    not in the journal is lost. So is what a restored database saw no more of than its claim: its report may
    be among those sent again.

    Raises:
        InvalidInput: the agent's wire version is not served.
    """
    check_served(opening.wire_version)
    epoch = database_epochs.current_epoch(tx.connection)
    own_devices = devices.list_devices(tx.connection, host_id=host_id)
    apply_effects(tx, host_id, raised_fences(own_devices, opening.attempts))
    older = hosts.current_session(tx.connection, host_id)
    owned = attempts.live_attempts(tx.connection, older.session_id) if older else []
    if all(attempt.cpu_domain is None for attempt in owned):
        # Else phones of other hosts may have waited for that CPU.
        notify_hosts(tx.connection, [host_id])
    unwanted = attempts.attempts_to_stop(tx.connection, older.session_id) if older else set()
    if older:
        hosts.move_session(tx.by("farm"), older, SessionState.CLOSED, cause="a newer session opened")
    session = hosts.add_session(
        tx, host_id=host_id, boot_id=opening.boot_id, agent_version=opening.agent_version
    )
    hosts.record_adb_address(tx.connection, host_id, opening.adb_address)
    journal = {report.attempt_id: report for report in opening.attempts}
    adopted = {
        attempt.attempt_id
        for attempt in owned
        if attempt.attempt_id not in unwanted and _is_adoptable(attempt, journal.get(attempt.attempt_id))
    }
    lost = orphaned_runs(
        tx.connection, host_id, opening.attempts, live={attempt.attempt_id for attempt in owned}
    )
    for attempt in owned:
        if attempt.attempt_id in adopted:
            attempts.transfer_attempt(tx.connection, attempt, session.session_id)
            # At once: a grant that looks unstarted would be taken back.
            apply_effects(tx, host_id, progress(attempt, journal[attempt.attempt_id]))
        else:
            _end(tx, attempt, epoch, cancelled=attempt.attempt_id in unwanted)
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
        reports_wanted=tuple(missing_reports(tx.connection, host_id)),
    )


def _is_adoptable(attempt: AttemptRecord, entry: AttemptReport | None) -> bool:
    started = (AttemptState.MEASURING, AttemptState.REPORTING)
    return entry is not None and entry.fence == attempt.fence and entry.phase in started


def _end(tx: Tx, attempt: AttemptRecord, epoch: DatabaseEpoch, *, cancelled: bool) -> None:
    forgot = attempt.claimed_at < epoch.began_at
    cause = f"the database was {epoch.cause}" if forgot else "the agent was restarted"
    if attempt.state in (AttemptState.CLAIMED, AttemptState.PREPARING) and not forgot:
        return_attempt(tx.by("farm"), attempt, reason=cause)
    elif cancelled:
        finish_cancelled_attempt(tx.by("farm"), attempt, cause=f"its job was cancelled, and {cause}")
    else:
        lose_attempt(tx, attempt, cause=cause)
