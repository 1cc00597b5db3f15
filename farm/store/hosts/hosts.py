"""Hosts, their credentials, and the sessions of the agents on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId, SessionId
from farm.core.devices.host_state import (
    EVENT_BY_SESSION_STATE,
    OPEN_SESSION,
    HostState,
    SessionState,
    advance_session,
)
from farm.core.jobs.timeouts import CLOCK_TOLERANCE
from farm.core.operations.event import EnrollmentEvent, EventSubject
from farm.database.tables import UtcTime, hosts, is_one_of, sessions
from farm.database.tables.columns import BigId
from farm.store.operations.events import record_event, record_if_moved


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session: one run of an agent's process."""

    session_id: SessionId
    host_id: HostId
    epoch: int
    state: SessionState
    #: The id of the host's boot.
    boot_id: str
    exchange_seq: int
    agent_version: str
    opened_at: datetime
    heartbeat_at: datetime


def put_host(
    connection: Connection, *, host_id: HostId, credential_hash: str, auto_admit: bool, now: datetime
) -> None:
    """Register a host, or give an existing one a new credential."""
    updated = connection.execute(
        hosts.update()
        .where(hosts.c.host_id == host_id)
        .values(credential_hash=credential_hash, auto_admit=auto_admit)
    )
    if updated.rowcount == 0:
        connection.execute(
            hosts.insert().values(
                host_id=host_id,
                state=HostState.ACTIVE,
                auto_admit=auto_admit,
                credential_hash=credential_hash,
                created_at=now,
            )
        )
        record_event(
            connection,
            at=now,
            actor=f"agent:{host_id}",
            kind=EnrollmentEvent.HOST_ENROLLED,
            subject=EventSubject.HOST,
            subject_id=host_id,
            to_state=HostState.ACTIVE,
        )


def is_auto_admitting(connection: Connection, host_id: HostId) -> bool:
    """Return True if new devices of the host are admitted automatically."""
    return bool(connection.execute(sa.select(hosts.c.auto_admit).where(hosts.c.host_id == host_id)).scalar())


def record_adb_port(connection: Connection, host_id: HostId, adb_port: int | None) -> None:
    """Record the port of a host's adb server; None if its agent does not report it."""
    connection.execute(hosts.update().where(hosts.c.host_id == host_id).values(adb_port=adb_port))


def find_adb_port(connection: Connection, host_id: HostId) -> int | None:
    """Return the port of a host's adb server on its loopback; None if it was not reported."""
    return connection.execute(sa.select(hosts.c.adb_port).where(hosts.c.host_id == host_id)).scalar()


def find_host_by_credential(connection: Connection, credential_hash: str) -> HostId | None:
    """Return the host with a credential's hash; None if there is none or it is retired."""
    host_id = connection.execute(
        _by_credential_query(), {"credential_hash": credential_hash}
    ).scalar_one_or_none()
    return None if host_id is None else HostId(host_id)


@cache
def _by_credential_query() -> sa.Select[Any]:
    """Build the query once: every request of an agent runs it."""
    return sa.select(hosts.c.host_id).where(
        hosts.c.credential_hash == sa.bindparam("credential_hash"), hosts.c.state != HostState.RETIRED
    )


def _session(row: sa.Row[tuple[object, ...]]) -> Session:
    return Session(
        session_id=row.session_id,
        host_id=row.host_id,
        epoch=row.epoch,
        state=SessionState(row.state),
        boot_id=row.boot_id,
        exchange_seq=row.exchange_seq,
        agent_version=row.agent_version,
        opened_at=row.opened_at,
        heartbeat_at=row.heartbeat_at,
    )


def find_session(connection: Connection, session_id: SessionId) -> Session | None:
    """Return a session by its id, in any state, or None."""
    row = connection.execute(_by_id_query(), {"session_id": session_id}).one_or_none()
    return None if row is None else _session(row)


@cache
def _by_id_query() -> sa.Select[Any]:
    return sa.select(sessions).where(sessions.c.session_id == sa.bindparam("session_id"))


def current_session(connection: Connection, host_id: HostId) -> Session | None:
    """Return the host's open (live or silent) session, or None."""
    row = connection.execute(
        sa.select(sessions).where(
            sessions.c.host_id == host_id,
            is_one_of(sessions.c.state, OPEN_SESSION),
        )
    ).one_or_none()
    return None if row is None else _session(row)


def last_sessions(connection: Connection, host_id: HostId | None = None) -> dict[HostId, Session]:
    """Return the last session of each host, or of one; hosts whose agents never called are missing."""
    newest = sa.select(sessions.c.host_id, sa.func.max(sessions.c.epoch).label("epoch"))
    if host_id is not None:
        newest = newest.where(sessions.c.host_id == host_id)
    last = newest.group_by(sessions.c.host_id).subquery()
    query = sa.select(sessions).join(
        last, sa.and_(last.c.host_id == sessions.c.host_id, last.c.epoch == sessions.c.epoch)
    )
    return {HostId(row.host_id): _session(row) for row in connection.execute(query)}


def add_session(
    connection: Connection, *, host_id: HostId, boot_id: str, agent_version: str, now: datetime
) -> Session:
    """Open the next session of a host, whose older ones must be closed."""
    last = connection.execute(
        sa.select(sa.func.max(sessions.c.epoch)).where(sessions.c.host_id == host_id)
    ).scalar()
    row = connection.execute(
        sessions.insert()
        .values(
            host_id=host_id,
            epoch=(last or 0) + 1,
            state=SessionState.LIVE,
            boot_id=boot_id,
            agent_version=agent_version,
            exchange_seq=0,
            opened_at=now,
            heartbeat_at=now,
        )
        .returning(sessions)
    ).one()
    session = _session(row)
    record_event(
        connection,
        at=now,
        actor=f"agent:{host_id}",
        kind=EnrollmentEvent.SESSION_OPENED,
        subject=EventSubject.SESSION,
        subject_id=session.session_id,
        to_state=SessionState.LIVE,
        cause=f"epoch {session.epoch}",
    )
    return session


def move_session(
    connection: Connection,
    session: Session,
    to: SessionState,
    *,
    now: datetime,
    cause: str,
    actor: str = "farm",
) -> bool:
    """Change a session's state by compare-and-set, with its event row; False if no transition leads there."""
    event = EVENT_BY_SESSION_STATE[to]
    if advance_session(session.state, event) is None:
        return False
    return record_if_moved(
        connection,
        sessions.update()
        .where(sessions.c.session_id == session.session_id, sessions.c.state == session.state)
        .values(state=to),
        at=now,
        actor=actor,
        kind=event,
        subject=EventSubject.SESSION,
        subject_id=session.session_id,
        from_state=session.state,
        to_state=to,
        cause=cause,
    )


def record_heartbeat(connection: Connection, session_id: SessionId, *, seq: int, now: datetime) -> bool:
    """Record an exchange; False, and no change, if a later one was recorded before.

    I11: the clock of another farm process may be ahead by the tolerance; its later time stays.
    """
    values = {"of_session": session_id, "seq": seq, "moment": now, "ahead": now + CLOCK_TOLERANCE}
    return connection.execute(_heartbeat_statement(), values).rowcount == 1


def record_heartbeats(
    connection: Connection, seq_by_session: Mapping[SessionId, int], *, now: datetime
) -> None:
    """Record the exchanges of many sessions, as `record_heartbeat` does."""
    ahead = now + CLOCK_TOLERANCE
    rows = [
        {"of_session": session_id, "seq": seq, "moment": now, "ahead": ahead}
        for session_id, seq in sorted(seq_by_session.items())
    ]
    if rows:
        connection.execute(_heartbeat_statement(), rows)


@cache
def _heartbeat_statement() -> sa.Update:
    seq, moment = sa.bindparam("seq", type_=BigId), sa.bindparam("moment", type_=UtcTime())
    is_ahead = sa.and_(sessions.c.heartbeat_at > moment, sessions.c.heartbeat_at <= sa.bindparam("ahead"))
    return (
        sessions.update()
        .where(sessions.c.session_id == sa.bindparam("of_session"), sessions.c.exchange_seq < seq)
        .values(exchange_seq=seq, heartbeat_at=sa.case((is_ahead, sessions.c.heartbeat_at), else_=moment))
    )


def sessions_in_state(connection: Connection, state: SessionState) -> list[Session]:
    """Return all sessions in a state, oldest first."""
    query = sa.select(sessions).where(sessions.c.state == state).order_by(sessions.c.session_id)
    return [_session(row) for row in connection.execute(query)]


def reset_heartbeats_after(connection: Connection, moment: datetime, *, now: datetime) -> None:
    """Set heartbeats of open sessions that are later than a time to now, after the clock was set back."""
    connection.execute(
        sessions.update()
        .where(is_one_of(sessions.c.state, OPEN_SESSION), sessions.c.heartbeat_at > moment)
        .values(heartbeat_at=now)
    )


def sessions_last_heard_before(
    connection: Connection, state: SessionState, moment: datetime
) -> list[Session]:
    """Return the open sessions in a state whose last heartbeat is before a time."""
    rows = connection.execute(
        sa.select(sessions).where(
            is_one_of(sessions.c.state, OPEN_SESSION),
            sessions.c.state == state,
            sessions.c.heartbeat_at < moment,
        )
    )
    return [_session(row) for row in rows]
