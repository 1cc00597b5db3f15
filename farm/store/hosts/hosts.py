"""Hosts, their credentials and changes by operators, and the sessions of the agents on them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId, SessionId
from farm.core.devices.host_state import (
    EVENT_BY_SESSION_STATE,
    OPEN_SESSION,
    TARGET_BY_HOST_EVENT,
    HostEvent,
    HostState,
    SessionState,
    advance_host,
    advance_session,
)
from farm.core.operations.event import EnrollmentEvent, FleetEvent
from farm.core.operations.host_clock import ClockDifference
from farm.database.rows import find_record, is_among, to_record
from farm.database.tables import UtcTime, hosts, is_one_of, sessions
from farm.database.tables.columns import BigId
from farm.database.transaction import Tx
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


def put_host(tx: Tx, *, host_id: HostId, credential_hash: str, auto_admit: bool) -> None:
    """Register a host, or give an existing one a new credential."""
    updated = tx.connection.execute(
        hosts.update()
        .where(hosts.c.host_id == host_id)
        .values(credential_hash=credential_hash, auto_admit=auto_admit)
    )
    if updated.rowcount == 0:
        tx.connection.execute(
            hosts.insert().values(
                host_id=host_id,
                state=HostState.ACTIVE,
                auto_admit=auto_admit,
                credential_hash=credential_hash,
                created_at=tx.now,
            )
        )
        record_event(
            tx.by(f"agent:{host_id}"), EnrollmentEvent.HOST_ENROLLED, host_id, to_state=HostState.ACTIVE
        )


def is_auto_admitting(connection: Connection, host_id: HostId) -> bool:
    """Return True if new devices of the host are admitted automatically."""
    return bool(connection.execute(sa.select(hosts.c.auto_admit).where(hosts.c.host_id == host_id)).scalar())


def record_adb_address(connection: Connection, host_id: HostId, adb_address: str | None) -> None:
    """Record the address of a host's adb server; None if its agent does not report it."""
    connection.execute(hosts.update().where(hosts.c.host_id == host_id).values(adb_address=adb_address))


def find_adb_address(connection: Connection, host_id: HostId) -> str | None:
    """Return the address of a host's adb server on that machine; None if it was not reported."""
    return connection.execute(sa.select(hosts.c.adb_address).where(hosts.c.host_id == host_id)).scalar()


_BY_CREDENTIAL_QUERY = sa.select(hosts.c.host_id).where(
    hosts.c.credential_hash == sa.bindparam("credential_hash"), hosts.c.state != HostState.RETIRED
)


def find_host_by_credential(connection: Connection, credential_hash: str) -> HostId | None:
    """Return the host with a credential's hash; None if there is none or it is retired."""
    host_id = connection.execute(
        _BY_CREDENTIAL_QUERY, {"credential_hash": credential_hash}
    ).scalar_one_or_none()
    return None if host_id is None else HostId(host_id)


_BY_ID_QUERY = sa.select(sessions).where(sessions.c.session_id == sa.bindparam("session_id"))


def find_session(connection: Connection, session_id: SessionId) -> Session | None:
    """Return a session by its id, in any state, or None."""
    return find_record(connection, Session, _BY_ID_QUERY, {"session_id": session_id})


def current_session(connection: Connection, host_id: HostId) -> Session | None:
    """Return the host's open (live or silent) session, or None."""
    query = sa.select(sessions).where(
        sessions.c.host_id == host_id,
        is_one_of(sessions.c.state, OPEN_SESSION),
    )
    return find_record(connection, Session, query)


def last_sessions(
    connection: Connection, host_ids: Collection[HostId] | None = None
) -> dict[HostId, Session]:
    """Return the last session of each host, or of some; hosts whose agents never called are missing."""
    newest = sa.select(sessions.c.host_id, sa.func.max(sessions.c.epoch).label("epoch"))
    if host_ids is not None:
        newest = newest.where(is_among(connection, sessions.c.host_id, host_ids))
    last = newest.group_by(sessions.c.host_id).subquery()
    query = sa.select(sessions).join(
        last, sa.and_(last.c.host_id == sessions.c.host_id, last.c.epoch == sessions.c.epoch)
    )
    return {HostId(row.host_id): to_record(Session, row) for row in connection.execute(query)}


def add_session(tx: Tx, *, host_id: HostId, boot_id: str, agent_version: str) -> Session:
    """Open the next session of a host, whose older ones must be closed."""
    last = tx.connection.execute(
        sa.select(sa.func.max(sessions.c.epoch)).where(sessions.c.host_id == host_id)
    ).scalar()
    row = tx.connection.execute(
        sessions.insert()
        .values(
            host_id=host_id,
            epoch=(last or 0) + 1,
            state=SessionState.LIVE,
            boot_id=boot_id,
            agent_version=agent_version,
            exchange_seq=0,
            opened_at=tx.now,
            heartbeat_at=tx.now,
        )
        .returning(sessions)
    ).one()
    session = to_record(Session, row)
    record_event(
        tx.by(f"agent:{host_id}"),
        EnrollmentEvent.SESSION_OPENED,
        session.session_id,
        to_state=SessionState.LIVE,
        cause=f"epoch {session.epoch}",
    )
    return session


def move_session(tx: Tx, session: Session, to: SessionState, *, cause: str) -> bool:
    """Change a session's state by compare-and-set, with its event row; False if no transition leads there."""
    event = EVENT_BY_SESSION_STATE[to]
    if advance_session(session.state, event) is None:
        return False
    return record_if_moved(
        tx,
        sessions.update()
        .where(sessions.c.session_id == session.session_id, sessions.c.state == session.state)
        .values(state=to),
        event,
        session.session_id,
        from_state=session.state,
        to_state=to,
        cause=cause,
    )


_SEQ, _MOMENT = sa.bindparam("seq", type_=BigId), sa.bindparam("moment", type_=UtcTime())
_LATER = sa.case((sessions.c.heartbeat_at > _MOMENT, sessions.c.heartbeat_at), else_=_MOMENT)
_HEARTBEAT_STATEMENT = (
    sessions.update()
    .where(sessions.c.session_id == sa.bindparam("of_session"), sessions.c.exchange_seq < _SEQ)
    .values(exchange_seq=_SEQ, heartbeat_at=_LATER)
)


def record_heartbeat(tx: Tx, session_id: SessionId, *, seq: int) -> bool:
    """Record an exchange; False, and no change, if a later one was recorded before.

    I11: a later time, by the clock of another farm process, stays. A clock that was set back is the reaper's
    matter.
    """
    values = {"of_session": session_id, "seq": seq, "moment": tx.now}
    return tx.connection.execute(_HEARTBEAT_STATEMENT, values).rowcount == 1


def record_heartbeats(tx: Tx, seq_by_session: Mapping[SessionId, int]) -> None:
    """Record the exchanges of many sessions, as `record_heartbeat` does."""
    rows = [
        {"of_session": session_id, "seq": seq, "moment": tx.now}
        for session_id, seq in sorted(seq_by_session.items())
    ]
    if rows:
        tx.connection.execute(_HEARTBEAT_STATEMENT, rows)


def sessions_in_state(connection: Connection, state: SessionState) -> list[Session]:
    """Return all sessions in a state, oldest first."""
    query = sa.select(sessions).where(sessions.c.state == state).order_by(sessions.c.session_id)
    return [to_record(Session, row) for row in connection.execute(query)]


def reset_heartbeats_after(tx: Tx, moment: datetime) -> None:
    """Set heartbeats of open sessions that are later than a time to now, after the clock was set back."""
    tx.connection.execute(
        sessions.update()
        .where(is_one_of(sessions.c.state, OPEN_SESSION), sessions.c.heartbeat_at > moment)
        .values(heartbeat_at=tx.now)
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
    return [to_record(Session, row) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host's row, with the last session of its agent."""

    host_id: HostId
    state: HostState
    auto_admit: bool
    adb_address: str | None
    #: The most concurrent runs; None: no limit.
    max_runs: int | None
    created_at: datetime
    #: How far its clock was ahead of the farm's when they were compared last; None: never.
    clock_ahead_s: float | None
    clock_uncertainty_s: float | None
    clock_compared_at: datetime | None
    #: None if its agent never called.
    session: Session | None


def list_hosts(connection: Connection) -> list[Host]:
    """Return all hosts in the order of their ids."""
    session_by_host = last_sessions(connection)
    rows = connection.execute(sa.select(hosts).order_by(hosts.c.host_id))
    return [to_record(Host, row, session=session_by_host.get(row.host_id)) for row in rows]


def hosts_page(connection: Connection, *, after: HostId, limit: int) -> list[Host]:
    """Return up to `limit` hosts whose ids follow `after`, in the order of their ids."""
    query = sa.select(hosts).where(hosts.c.host_id > after).order_by(hosts.c.host_id).limit(limit)
    page = connection.execute(query).all()
    session_by_host = last_sessions(connection, [row.host_id for row in page])
    return [to_record(Host, row, session=session_by_host.get(row.host_id)) for row in page]


def find_host(connection: Connection, host_id: HostId) -> Host | None:
    """Return a host, or None."""
    row = connection.execute(sa.select(hosts).where(hosts.c.host_id == host_id)).one_or_none()
    session = last_sessions(connection, [host_id]).get(host_id)
    return None if row is None else to_record(Host, row, session=session)


def put_host_clock(tx: Tx, host_id: HostId, difference: ClockDifference) -> None:
    """Record the last comparison of a host's clock with the farm's."""
    tx.connection.execute(
        hosts.update()
        .where(hosts.c.host_id == host_id)
        .values(
            clock_ahead_s=difference.ahead_s,
            clock_uncertainty_s=difference.uncertainty_s,
            clock_compared_at=tx.now,
        )
    )


def move_host(tx: Tx, host: Host, event: HostEvent, *, cause: str | None) -> bool:
    """Change a host's state by compare-and-set; False if it changed or no transition leads there."""
    if advance_host(host.state, event) is None:
        return False
    to = TARGET_BY_HOST_EVENT[event]
    return record_if_moved(
        tx,
        hosts.update().where(hosts.c.host_id == host.host_id, hosts.c.state == host.state).values(state=to),
        event,
        host.host_id,
        from_state=host.state,
        to_state=to,
        cause=cause,
    )


def reactivate_host(tx: Tx, host_id: HostId) -> None:
    """Make a retired host active again; other states stay unchanged."""
    host = find_host(tx.connection, host_id)
    if host is not None and host.state is HostState.RETIRED:
        move_host(tx.by(f"agent:{host_id}"), host, HostEvent.REJOINED, cause="it joined again")


def put_max_runs(tx: Tx, host: Host, max_runs: int | None, *, reason: str | None) -> None:
    """Set the most concurrent runs of a host; None removes the limit."""
    tx.connection.execute(hosts.update().where(hosts.c.host_id == host.host_id).values(max_runs=max_runs))
    change = f"from {host.max_runs or 'no limit'} to {max_runs or 'no limit'}"
    record_event(
        tx, FleetEvent.HOST_LIMITED, host.host_id, cause=change if reason is None else f"{change}: {reason}"
    )
