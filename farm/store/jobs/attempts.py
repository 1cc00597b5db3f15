"""Attempts and their transitions."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, DeviceId, Digest, FactsId, HostId, JobId, SessionId
from farm.core.jobs.attempt import Attempt, AttemptEvent, AttemptRecord, AttemptState, advance
from farm.core.jobs.job import JobState
from farm.core.jobs.retry import FinishedAttempt
from farm.core.operations.event import WorkEvent
from farm.core.runs.plan import PlanFile, RunPlan
from farm.database.rows import find_record, is_among, to_record
from farm.database.tables import UtcTime, artifacts, attempts, is_live, jobs, sessions
from farm.database.transaction import Tx
from farm.store.operations.events import record_if_moved, record_transitions

_PLAN = TypeAdapter(RunPlan)
_FILES = TypeAdapter(tuple[PlanFile, ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAttempt:
    """A claim of a job for a device."""

    job_id: JobId
    device_id: DeviceId
    host_id: HostId
    facts_id: FactsId | None
    fence: int
    cpu_domain: str | None
    plan: RunPlan


# Distinguished by their jobs: to return them in order, SQLite would need a statement for each row.
_INSERT_STATEMENT = attempts.insert().returning(attempts.c.job_id, attempts.c.attempt_id)


def add_attempts(tx: Tx, claims: Sequence[NewAttempt], *, session_id: SessionId) -> list[AttemptId]:
    """Add live attempts in the order of the claims; each is its device's lease from here on.

    Raises:
        sqlalchemy.exc.IntegrityError: a device, job or CPU has a live attempt already; none is added.
    """
    inserted = tx.connection.execute(
        _INSERT_STATEMENT,
        [
            {
                "job_id": claim.job_id,
                "device_id": claim.device_id,
                "host_id": claim.host_id,
                "session_id": session_id,
                "facts_id": claim.facts_id,
                "fence": claim.fence,
                "cpu_domain": claim.cpu_domain,
                "state": AttemptState.CLAIMED,
                "plan": _PLAN.dump_python(claim.plan, mode="json"),
                "claimed_at": tx.now,
            }
            for claim in claims
        ],
    )
    id_by_job = {row.job_id: AttemptId(row.attempt_id) for row in inserted}
    attempt_ids = [id_by_job[claim.job_id] for claim in claims]
    record_transitions(
        tx.by("farm"),
        WorkEvent.ATTEMPT_CLAIMED,
        {
            attempt_id: f"job {claim.job_id} on {claim.device_id}, fence {claim.fence}"
            for attempt_id, claim in zip(attempt_ids, claims, strict=True)
        },
        from_state=None,
        to_state=AttemptState.CLAIMED,
    )
    return attempt_ids


_BY_ID_QUERY = sa.select(attempts).where(attempts.c.attempt_id == sa.bindparam("id"))


def find_attempt(connection: Connection, attempt_id: AttemptId) -> AttemptRecord | None:
    """Return an attempt, as `Attempt` while it has its plan, or None."""
    row = connection.execute(_BY_ID_QUERY, {"id": attempt_id}).one_or_none()
    return None if row is None else to_record(AttemptRecord if row.plan is None else Attempt, row)


#: Of the columns of attempts, a plan is by far the largest.
_WITHOUT_PLAN = [attempts.c[name] for name in AttemptRecord.__dataclass_fields__]


def find_live_attempt(connection: Connection, device_id: DeviceId) -> AttemptRecord | None:
    """Return the live attempt on a device, or None."""
    query = sa.select(*_WITHOUT_PLAN).where(is_live(attempts), attempts.c.device_id == device_id)
    return find_record(connection, AttemptRecord, query)


_LIVE_OF_SESSION_QUERY = sa.select(*_WITHOUT_PLAN).where(
    is_live(attempts), attempts.c.session_id == sa.bindparam("session_id")
)


def live_attempts(connection: Connection, session_id: SessionId) -> list[AttemptRecord]:
    """Return the live attempts of a session, oldest first."""
    return _oldest_first(connection, _LIVE_OF_SESSION_QUERY, session_id=session_id)


def live_attempts_of_hosts(connection: Connection, host_ids: Collection[HostId]) -> list[AttemptRecord]:
    """Return the live attempts on the devices of hosts, oldest first."""
    among = is_among(connection, attempts.c.host_id, host_ids)
    return _oldest_first(connection, sa.select(*_WITHOUT_PLAN).where(is_live(attempts), among))


_PLANS_QUERY = sa.select(attempts.c.attempt_id, attempts.c.plan).where(
    attempts.c.attempt_id.in_(sa.bindparam("attempt_ids", expanding=True)), attempts.c.plan.is_not(sa.null())
)


def plans_of(connection: Connection, attempt_ids: Collection[AttemptId]) -> dict[AttemptId, RunPlan]:
    """Return the plans of attempts; of settled ones they may be gone."""
    rows = connection.execute(_PLANS_QUERY, {"attempt_ids": list(attempt_ids)}) if attempt_ids else ()
    return {row.attempt_id: _PLAN.validate_python(row.plan) for row in rows}


_ATTEMPTS_TO_STOP_QUERY = (
    sa.select(attempts.c.attempt_id)
    .join(jobs, jobs.c.job_id == attempts.c.job_id)
    .where(
        is_live(attempts),
        attempts.c.session_id == sa.bindparam("session_id"),
        jobs.c.state == JobState.FINISHED,
    )
)


def attempts_to_stop(connection: Connection, session_id: SessionId) -> set[AttemptId]:
    """Return the live attempts of a session whose jobs are cancelled."""
    return set(connection.execute(_ATTEMPTS_TO_STOP_QUERY, {"session_id": session_id}).scalars())


def unstarted_attempts(connection: Connection, *, after: timedelta, now: datetime) -> list[AttemptRecord]:
    """Return the live attempts that had not started some time after their claim, oldest first.

    Only the agent knows: those of which it said nothing since then are not among them.
    """
    query = (
        sa.select(*_WITHOUT_PLAN, sessions.c.heartbeat_at)
        .join(sessions, sessions.c.session_id == attempts.c.session_id)
        .where(
            is_live(attempts), attempts.c.state == AttemptState.CLAIMED, attempts.c.claimed_at < now - after
        )
    )
    rows = [row for row in connection.execute(query) if row.heartbeat_at > row.claimed_at + after]
    return sorted((to_record(AttemptRecord, row) for row in rows), key=lambda attempt: attempt.attempt_id)


def _oldest_first(connection: Connection, query: sa.Select[Any], **parameters: object) -> list[AttemptRecord]:
    # Sorted here: with ORDER BY, SQLite would scan the table instead of the index of live rows.
    rows = [to_record(AttemptRecord, row) for row in connection.execute(query, parameters)]
    return sorted(rows, key=lambda attempt: attempt.attempt_id)


def attempts_of_jobs(connection: Connection, job_ids: Collection[JobId]) -> dict[JobId, list[AttemptRecord]]:
    """Return by job its attempts, oldest first, without their plans; jobs without one are missing."""
    query = (
        sa.select(*_WITHOUT_PLAN)
        .where(is_among(connection, attempts.c.job_id, job_ids))
        .order_by(attempts.c.attempt_id)
    )
    by_job: defaultdict[JobId, list[AttemptRecord]] = defaultdict(list)
    for row in connection.execute(query):
        by_job[row.job_id].append(to_record(AttemptRecord, row))
    return dict(by_job)


def expired_files(connection: Connection, attempt_id: AttemptId) -> list[Digest]:
    """Return the files of a live attempt's plan that the farm no longer has."""
    planned = sa.select(attempts.c.plan["files"]).where(attempts.c.attempt_id == attempt_id)
    files = _FILES.validate_python(connection.execute(planned).scalar_one())
    digests = {file.digest for file in files}
    query = sa.select(artifacts.c.digest).where(
        artifacts.c.digest.in_(digests), artifacts.c.expired_at.is_not(None)
    )
    return sorted(connection.execute(query).scalars())


def count_attempts(connection: Connection, job_id: JobId, state: AttemptState) -> int:
    """Count the attempts of a job in a state."""
    query = sa.select(sa.func.count()).where(attempts.c.job_id == job_id, attempts.c.state == state)
    return connection.execute(query).scalar_one()


def past_attempts(
    connection: Connection, job_id: JobId, *, without: AttemptId | None = None
) -> list[FinishedAttempt]:
    """Return the finished and lost attempts of a job but one, oldest first; give-backs cost nothing."""
    query = (
        sa.select(
            attempts.c.attempt_id, attempts.c.outcome, attempts.c.blame, attempts.c.code, attempts.c.device_id
        )
        .where(attempts.c.job_id == job_id, attempts.c.outcome.is_not(None))
        .order_by(attempts.c.attempt_id)
    )
    return [to_record(FinishedAttempt, row) for row in connection.execute(query) if row.attempt_id != without]


#: Of one attempt, or of many at once; its parameters name the columns to set.
MOVE_ATTEMPT_STATEMENT = attempts.update().where(
    attempts.c.attempt_id == sa.bindparam("of_attempt"), attempts.c.state == sa.bindparam("state_before")
)


def move_attempt(
    tx: Tx,
    attempt: AttemptRecord,
    event: AttemptEvent,
    *,
    cause: str | None = None,
    values: Mapping[str, object] | None = None,
) -> bool:
    """Move an attempt by compare-and-set, with its event row; False when it is no longer where it was."""
    to = advance(attempt.state, event)
    if to is None:
        return False
    changes: dict[str, object] = {"state": to, "waiting_for": None, **(values or {})}
    if to in (AttemptState.FINISHED, AttemptState.RETURNED, AttemptState.LOST):
        changes["finished_at"] = tx.now
    elif to is AttemptState.MEASURING:
        changes["measuring_at"] = tx.now
    return record_if_moved(
        tx,
        MOVE_ATTEMPT_STATEMENT,
        event,
        attempt.attempt_id,
        parameters={"of_attempt": attempt.attempt_id, "state_before": attempt.state, **changes},
        from_state=attempt.state,
        to_state=to,
        cause=cause,
    )


def record_waiting(tx: Tx, attempt: AttemptRecord, waiting_for: str | None) -> None:
    """Record what an attempt's agent waits for before the run; not a transition, so without an event."""
    unfit_at = sa.literal(None if waiting_for is None else tx.now, UtcTime())
    tx.connection.execute(
        attempts.update()
        .where(attempts.c.attempt_id == attempt.attempt_id, attempts.c.state == attempt.state)
        .values(waiting_for=waiting_for, unfit_at=sa.func.coalesce(attempts.c.unfit_at, unfit_at))
    )


def transfer_attempt(connection: Connection, attempt: AttemptRecord, session_id: SessionId) -> None:
    """Give a live attempt to the next session of its host."""
    connection.execute(
        attempts.update()
        .where(attempts.c.attempt_id == attempt.attempt_id, is_live(attempts))
        .values(session_id=session_id)
    )
