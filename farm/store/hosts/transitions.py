"""Hosts, and their changes by operators, each with its event row."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.devices.host_state import TARGET_BY_HOST_EVENT, HostEvent, HostState, advance_host
from farm.core.operations.event import EventSubject, FleetEvent
from farm.database.tables import hosts
from farm.store.hosts.hosts import Session, last_sessions
from farm.store.operations.events import record_event, record_if_moved


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host's row, with the last session of its agent."""

    host_id: HostId
    state: HostState
    auto_admit: bool
    adb_port: int | None
    #: The most concurrent runs; None: no limit.
    max_runs: int | None
    created_at: datetime
    #: None if its agent never called.
    session: Session | None


def list_hosts(connection: Connection) -> list[Host]:
    """Return all hosts in the order of their ids."""
    session_by_host = last_sessions(connection)
    rows = connection.execute(sa.select(hosts).order_by(hosts.c.host_id))
    return [_host(row, session_by_host.get(row.host_id)) for row in rows]


def find_host(connection: Connection, host_id: HostId) -> Host | None:
    """Return a host, or None."""
    row = connection.execute(sa.select(hosts).where(hosts.c.host_id == host_id)).one_or_none()
    return None if row is None else _host(row, last_sessions(connection, host_id).get(host_id))


def move_host(
    connection: Connection, host: Host, event: HostEvent, *, now: datetime, actor: str, cause: str | None
) -> bool:
    """Change a host's state by compare-and-set; False if it changed or no transition leads there."""
    if advance_host(host.state, event) is None:
        return False
    to = TARGET_BY_HOST_EVENT[event]
    return record_if_moved(
        connection,
        hosts.update().where(hosts.c.host_id == host.host_id, hosts.c.state == host.state).values(state=to),
        at=now,
        actor=actor,
        kind=event,
        subject=EventSubject.HOST,
        subject_id=host.host_id,
        from_state=host.state,
        to_state=to,
        cause=cause,
    )


def reactivate_host(connection: Connection, host_id: HostId, *, now: datetime) -> None:
    """Make a retired host active again; other states stay unchanged."""
    host = find_host(connection, host_id)
    if host is not None and host.state is HostState.RETIRED:
        move_host(
            connection, host, HostEvent.REJOINED, now=now, actor=f"agent:{host_id}", cause="it joined anew"
        )


def put_max_runs(
    connection: Connection, host: Host, max_runs: int | None, *, now: datetime, actor: str, reason: str | None
) -> None:
    """Set the most concurrent runs of a host; None removes the limit."""
    connection.execute(hosts.update().where(hosts.c.host_id == host.host_id).values(max_runs=max_runs))
    change = f"from {host.max_runs or 'no limit'} to {max_runs or 'no limit'}"
    record_event(
        connection,
        at=now,
        actor=actor,
        kind=FleetEvent.HOST_LIMITED,
        subject=EventSubject.HOST,
        subject_id=host.host_id,
        cause=change if reason is None else f"{change}: {reason}",
    )


def _host(row: sa.Row[Any], session: Session | None) -> Host:
    return Host(
        host_id=row.host_id,
        state=HostState(row.state),
        auto_admit=row.auto_admit,
        adb_port=row.adb_port,
        max_runs=row.max_runs,
        created_at=row.created_at,
        session=session,
    )
