"""The one loop call of an agent: note what it says, give it work, tell it what it owns."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy.engine import Connection

from farm.core.base.ids import Digest, HostId, SessionId
from farm.core.devices.host_state import SessionState
from farm.core.errors import Forbidden, SessionFenced
from farm.core.jobs.attempt import AttemptState
from farm.core.jobs.timeouts import DEFAULT_TIMEOUTS, AgentTimeouts
from farm.services.access.refused_requests import FOREIGN_CREDENTIAL_HINT
from farm.services.agents.fencing import apply_reported_fences
from farm.services.agents.inventory import InventoryResult, record_devices
from farm.services.agents.orphaned_runs import orphaned_runs
from farm.services.agents.phases import record_attempts
from farm.services.checks.checks import check_files
from farm.services.checks.incidents import record_full_controllers, record_pressure
from farm.services.jobs.claim import claim_jobs
from farm.services.upkeep.device_actions import device_actions_of_host, record_device_actions
from farm.services.upkeep.recovery import may_recover
from farm.store.devices import pending_cleanups
from farm.store.hosts import hosts
from farm.store.hosts.hosts import Session
from farm.store.jobs import attempts
from farm.store.jobs.attempts import Attempt
from farm.store.jobs.queues import next_job_files
from farm.store.operations import database_epochs
from farm.wire.agents.protocol import Assignment, CleanupOrder, Exchange, ExchangeAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeResult:
    """An answer, and whether it tells the agent anything it does not know."""

    answer: ExchangeAnswer
    has_news: bool


def exchange(
    connection: Connection,
    host_id: HostId,
    session_id: SessionId,
    said: Exchange,
    *,
    now: datetime,
    patience: AgentTimeouts = DEFAULT_TIMEOUTS,
) -> ExchangeResult:
    """Apply what an agent says and answer. An exchange older than one already applied only gets an answer.

    Raises:
        Forbidden: the session is another host's.
        SessionFenced: the session is not the host's current one, or the database was restored since.
    """
    session = _get_current_session(connection, host_id, session_id)
    _check_epoch(connection, said)
    noted = InventoryResult(wanted=(), unchanged=None)
    is_newer = hosts.record_heartbeat(connection, session_id, seq=said.seq, now=now)
    if is_newer:
        if session.state is SessionState.SILENT:
            hosts.move_session(connection, session, SessionState.LIVE, now=now, cause="its agent is back")
        apply_reported_fences(connection, host_id, said.attempts, now=now)
        record_attempts(connection, session, said.attempts, now=now)
        record_pressure(connection, host_id, said.pressure, now=now)
        record_full_controllers(connection, host_id, said.full_controllers, now=now)
        held = {report.attempt_id for report in said.attempts}
        noted = record_devices(connection, host_id, said.devices, held=held, now=now)
        record_device_actions(connection, host_id, said.device_actions, now=now)
    is_latest = is_newer or session.exchange_seq == said.seq
    if said.device_actions:
        # Whether a phone has an errand may have changed since.
        noted = replace(noted, unchanged=None)
    return _full_answer(connection, session, said, noted, patience, is_latest=is_latest, now=now)


def peek(
    connection: Connection,
    host_id: HostId,
    session_id: SessionId,
    said: Exchange,
    *,
    now: datetime,
    patience: AgentTimeouts = DEFAULT_TIMEOUTS,
) -> ExchangeResult:
    """Claim what can be claimed and say what the session owns; for an exchange that was already applied.

    Raises:
        Forbidden: the session is another host's.
        SessionFenced: the session is not the host's current one.
    """
    session = _get_current_session(connection, host_id, session_id)
    is_latest = session.exchange_seq == said.seq
    noted = InventoryResult(wanted=(), unchanged=None)
    return _full_answer(connection, session, said, noted, patience, is_latest=is_latest, now=now)


def idle_answer(said: Exchange, patience: AgentTimeouts = DEFAULT_TIMEOUTS) -> ExchangeResult:
    """The answer to an exchange that asks nothing, while there is nothing to do."""
    return ExchangeResult(answer=_answer(said, patience), has_news=False)


def _answer(said: Exchange, patience: AgentTimeouts, **values: Any) -> ExchangeAnswer:
    return ExchangeAnswer(
        seq=said.seq,
        start_within_s=patience.start_within.total_seconds(),
        lost_after_s=patience.lost_after.total_seconds(),
        **values,
    )


def _full_answer(
    connection: Connection,
    session: Session,
    said: Exchange,
    noted: InventoryResult,
    patience: AgentTimeouts,
    *,
    is_latest: bool,
    now: datetime,
) -> ExchangeResult:
    host_id, session_id = session.host_id, session.session_id
    live = attempts.live_attempts(connection, session_id)
    # What is claimed below is wanted.
    unwanted = attempts.attempts_to_stop(connection, session_id) if live else set()
    begun = orphaned_runs(connection, host_id, said.attempts, live={attempt.attempt_id for attempt in live})
    if is_latest and said.pressure is None:
        claimed = claim_jobs(
            connection, host_id, session_id, going_on=len(begun), known=noted.unchanged, now=now
        )
        live = attempts.live_attempts(connection, session_id) if claimed else live
    # What is no longer wanted is left out, and thereby stopped.
    owned = [attempt for attempt in live if attempt.attempt_id not in unwanted]
    at_work = {attempt.device_id for attempt in begun}
    answer = _answer(
        said,
        patience,
        assignments=tuple(_assignment(attempt) for attempt in (*owned, *begun)),
        facts_wanted=tuple(noted.wanted),
        prefetch=upcoming_files(connection, host_id),
        device_actions=device_actions_of_host(connection, host_id),
        may_recover=may_recover(connection, host_id, said.devices),
        clean_ups=tuple(
            CleanupOrder(device_id=device_id, fence=fence)
            for device_id, fence in pending_cleanups.uncleaned_devices(connection, host_id)
            if device_id not in at_work
        ),
    )
    return ExchangeResult(answer=answer, has_news=_is_news(said, answer))


def _get_current_session(connection: Connection, host_id: HostId, session_id: SessionId) -> Session:
    session = hosts.find_session(connection, session_id)
    if session is None:
        raise SessionFenced(f"host {host_id} has no session {session_id}")
    if session.host_id != host_id:
        raise Forbidden(f"session {session_id} is not of host {host_id}", hint=FOREIGN_CREDENTIAL_HINT)
    if session.state is SessionState.CLOSED:
        raise SessionFenced(
            f"session {session_id} is closed: a newer one of {host_id} was opened",
            hint="when nobody restarted the agent, another one has its credential: a copied folder, say",
        )
    if session.state not in (SessionState.LIVE, SessionState.SILENT):
        raise SessionFenced(f"session {session_id} is {session.state}")
    return session


def _check_epoch(connection: Connection, said: Exchange) -> None:
    epoch = database_epochs.current_epoch(connection)
    if said.database_epoch not in ("", epoch.epoch):
        raise SessionFenced(f"the farm's database was {epoch.cause}")


def _assignment(attempt: Attempt) -> Assignment:
    unstarted = attempt.state is AttemptState.CLAIMED
    return Assignment(
        attempt_id=attempt.attempt_id,
        job_id=attempt.job_id,
        device_id=attempt.device_id,
        fence=attempt.fence,
        plan=attempt.plan if unstarted else None,
    )


def upcoming_files(connection: Connection, host_id: HostId) -> tuple[Digest, ...]:
    """The files that the next job of each of the host's phones needs, each once."""
    for_check = tuple(file.digest for file in check_files())
    needed = (job.digests or for_check for job in next_job_files(connection, host_id))
    return tuple(dict.fromkeys(digest for digests in needed for digest in digests))


def _is_news(said: Exchange, answer: ExchangeAnswer) -> bool:
    held = {report.attempt_id for report in said.attempts if report.phase is not AttemptState.RETURNED}
    owned = {assignment.attempt_id for assignment in answer.assignments}
    asked = {device_action.device_action_id for device_action in answer.device_actions} - set(
        said.device_actions_in_progress
    )
    return held != owned or bool(answer.facts_wanted) or bool(asked)
