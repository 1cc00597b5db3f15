"""Notices what went quiet: agents that stopped calling, grants nobody started. Run twice it does no harm."""

from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.devices.host_state import SessionState
from farm.core.jobs.timeouts import DEFAULT_TIMEOUTS, AgentTimeouts
from farm.database.notifications import notify_hosts
from farm.services.checks.incidents import end_incidents
from farm.services.hosts.host_teardown import abandon_session
from farm.services.jobs.termination import return_attempt
from farm.store.hosts import hosts
from farm.store.hosts.hosts import Session
from farm.store.jobs import attempts


def reap(
    connection: Connection, *, now: datetime, up_since: datetime, patience: AgentTimeouts = DEFAULT_TIMEOUTS
) -> None:
    """Move what is overdue. Nothing is overdue that fell due while the farm itself was down.

    Args:
        up_since: when this farm began to listen; deadlines count from there at the earliest.
    """
    # No lease for as long as a clock went back.
    hosts.reset_heartbeats_after(connection, now + patience.silent_after, now=now)
    # Before sessions: a grant that was never heard of must not count as a run that was lost, or its phone
    # would wait for a clean-up that nobody knows of.
    if now - up_since >= patience.unstarted_after:
        for attempt in attempts.unstarted_attempts(connection, claimed_before=now - patience.unstarted_after):
            return_attempt(connection, attempt, now=now, actor="farm", reason="the agent did not start it")
            notify_hosts(connection, [attempt.host_id])
    for session in _overdue(connection, SessionState.LIVE, now, up_since, patience.silent_after):
        hosts.move_session(connection, session, SessionState.SILENT, now=now, cause="no exchange in time")
    for session in _overdue(connection, SessionState.SILENT, now, up_since, patience.lost_after):
        _lose_session(connection, session, patience, now=now)
    end_incidents(connection, now=now)


def _overdue(
    connection: Connection, state: SessionState, now: datetime, up_since: datetime, after: timedelta
) -> list[Session]:
    if now - up_since < after:
        return []
    return hosts.sessions_last_heard_before(connection, state, now - after)


def _lose_session(
    connection: Connection, session: Session, patience: AgentTimeouts, *, now: datetime
) -> None:
    quiet_s = patience.lost_after.total_seconds()
    cause = f"host {session.host_id} has not been heard of for {quiet_s:.0f} s"
    if not hosts.move_session(connection, session, SessionState.LOST, now=now, cause=cause):
        return
    abandon_session(connection, session, now=now, cause=cause, code="host.lost")
