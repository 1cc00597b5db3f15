"""Time out silent agents and unstarted attempts, and end incidents that are over. Idempotent."""

from datetime import datetime, timedelta

from farm.core.devices.host_state import SessionState
from farm.core.jobs.timeouts import DEFAULT_TIMEOUTS, AgentTimeouts
from farm.database.notifications import notify_hosts
from farm.database.transaction import Tx
from farm.services.checks.incidents import end_incidents
from farm.services.hosts.admin import abandon_session
from farm.services.jobs.termination import return_attempt
from farm.store.hosts import hosts
from farm.store.hosts.hosts import Session
from farm.store.jobs import attempts


def reap(tx: Tx, *, up_since: datetime, timeouts: AgentTimeouts = DEFAULT_TIMEOUTS) -> None:
    """Apply the time-outs that have passed; none passes while the farm is down.

    Args:
        up_since: when this farm began to listen; deadlines count from there at the earliest.
    """
    # After the clock was set back, a heartbeat lies in the future, and would keep a dead agent alive until
    # then.
    hosts.reset_heartbeats_after(tx, tx.now + timeouts.silent_after)
    # Only of agents that called after the deadline: a silent agent may have started the run, and it would
    # count.
    if tx.now - up_since >= timeouts.unstarted_after:
        for attempt in attempts.unstarted_attempts(tx.connection, after=timeouts.unstarted_after, now=tx.now):
            return_attempt(tx.by("farm"), attempt, reason="the agent did not start it")
            notify_hosts(tx.connection, [attempt.host_id])
    for session in _overdue_sessions(tx, SessionState.LIVE, up_since, timeouts.silent_after):
        hosts.move_session(tx.by("farm"), session, SessionState.SILENT, cause="no exchange in time")
    for session in _overdue_sessions(tx, SessionState.SILENT, up_since, timeouts.lost_after):
        _lose_session(tx, session, timeouts)
    end_incidents(tx)


def _overdue_sessions(tx: Tx, state: SessionState, up_since: datetime, after: timedelta) -> list[Session]:
    if tx.now - up_since < after:
        return []
    return hosts.sessions_last_heard_before(tx.connection, state, tx.now - after)


def _lose_session(tx: Tx, session: Session, timeouts: AgentTimeouts) -> None:
    limit_s = timeouts.lost_after.total_seconds()
    cause = f"host {session.host_id} has not called for more than {limit_s:.0f} s"
    if not hosts.move_session(tx.by("farm"), session, SessionState.LOST, cause=cause):
        return
    abandon_session(tx, session, cause=cause, code="host.lost")
