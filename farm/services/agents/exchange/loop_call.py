"""The loop call of an agent: apply what it says, give it work, and tell it what it owns."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId, SessionId
from farm.core.jobs.timeouts import DEFAULT_TIMEOUTS, AgentTimeouts
from farm.services.agents.exchange.answer import AtWork, CallAnswer, answer
from farm.services.agents.exchange.exchange import Applied, current_session, exchange
from farm.services.agents.orphaned_runs import orphaned_runs
from farm.services.jobs.claim import claim_jobs
from farm.store.devices import devices
from farm.store.jobs import attempts
from farm.wire.agents.protocol import Exchange


def answer_call(
    connection: Connection,
    host_id: HostId,
    session_id: SessionId,
    said: Exchange,
    *,
    now: datetime,
    patience: AgentTimeouts = DEFAULT_TIMEOUTS,
) -> CallAnswer:
    """Apply what an agent says and answer. An exchange older than one already applied only gets an answer.

    Raises:
        Forbidden: the session is another host's.
        SessionFenced: the session is not the host's current one, or the database was restored since.
    """
    applied = exchange(connection, host_id, session_id, said, now=now)
    return _answered(connection, applied, said, patience, now=now)


def answer_again(
    connection: Connection,
    host_id: HostId,
    session_id: SessionId,
    said: Exchange,
    *,
    now: datetime,
    patience: AgentTimeouts = DEFAULT_TIMEOUTS,
) -> CallAnswer:
    """Claim what can be claimed and say what the session owns; for an exchange that was already applied.

    Raises:
        Forbidden: the session is another host's.
        SessionFenced: the session is not the host's current one.
    """
    session = current_session(connection, host_id, session_id)
    applied = Applied(session=session, is_latest=session.exchange_seq == said.seq)
    return _answered(connection, applied, said, patience, now=now)


def _answered(
    connection: Connection, applied: Applied, said: Exchange, patience: AgentTimeouts, *, now: datetime
) -> CallAnswer:
    host_id, session_id = applied.session.host_id, applied.session.session_id
    known = applied.devices
    if known is None:
        known = devices.list_devices(connection, host_id=host_id)
    live = attempts.live_attempts(connection, session_id)
    # What is claimed below is wanted.
    unwanted = attempts.attempts_to_stop(connection, session_id) if live else set()
    orphaned = orphaned_runs(
        connection, host_id, said.attempts, live={attempt.attempt_id for attempt in live}
    )
    if applied.is_latest and said.pressure is None:
        claimed = claim_jobs(connection, host_id, session_id, going_on=len(orphaned), known=known, now=now)
        live = attempts.live_attempts(connection, session_id) if claimed else live
    at_work = AtWork(
        devices=known,
        owned=[attempt for attempt in live if attempt.attempt_id not in unwanted],
        orphaned=orphaned,
        busy={attempt.device_id for attempt in live},
    )
    return answer(connection, host_id, said, at_work, facts_wanted=applied.facts_wanted, patience=patience)
