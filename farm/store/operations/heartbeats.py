"""Batched handling of idle heartbeats: the state of many sessions, and their devices."""

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId, SessionId
from farm.core.checks.failures import REPORTED_BY_AGENTS
from farm.core.devices.device import Presence
from farm.core.devices.host_state import HostState, SessionState
from farm.database.rows import to_record
from farm.database.tables import JOB_IS_QUEUED, devices, hosts, incidents, jobs, literal, sessions
from farm.database.tables.columns import UtcTime
from farm.database.transaction import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatState:
    """A session, and whether work waits for its host."""

    host_id: HostId
    credential_hash: str
    host_state: HostState
    state: SessionState
    exchange_seq: int
    #: True if a job is queued for a device of the host, blocked or not.
    has_jobs: bool
    #: True if the host has an open incident.
    has_incident: bool


_HAS_JOBS = sa.exists().where(
    devices.c.host_id == sessions.c.host_id,
    jobs.c.device_id == devices.c.device_id,
    JOB_IS_QUEUED,
)
_HAS_INCIDENT = sa.exists().where(
    incidents.c.host_id == sessions.c.host_id,
    incidents.c.kind.in_([literal(kind) for kind in REPORTED_BY_AGENTS]),
    incidents.c.ended_at.is_(None),
)
_STATES_QUERY = (
    sa.select(
        sessions.c.session_id,
        sessions.c.host_id,
        hosts.c.credential_hash,
        hosts.c.state.label("host_state"),
        sessions.c.state,
        sessions.c.exchange_seq,
        _HAS_JOBS.label("has_jobs"),
        _HAS_INCIDENT.label("has_incident"),
    )
    .join(hosts, hosts.c.host_id == sessions.c.host_id)
    .where(sessions.c.session_id.in_(sa.bindparam("session_ids", expanding=True)))
)


def heartbeat_states(
    connection: Connection, session_ids: Collection[SessionId]
) -> dict[SessionId, HeartbeatState]:
    """Return the states of these sessions, by one statement; unknown ones are missing."""
    return {
        SessionId(row.session_id): to_record(HeartbeatState, row)
        for row in connection.execute(_STATES_QUERY, {"session_ids": list(session_ids)})
    }


_DEVICES_SEEN_STATEMENT = (
    devices.update()
    .where(
        devices.c.host_id.in_(sa.bindparam("host_ids", expanding=True)),
        devices.c.presence != Presence.ABSENT,
    )
    .values(seen_at=sa.bindparam("moment", type_=UtcTime()))
)


def record_devices_seen(tx: Tx, host_ids: Collection[HostId]) -> None:
    """Record that all devices of these hosts are present and unchanged."""
    if host_ids:
        tx.connection.execute(_DEVICES_SEEN_STATEMENT, {"host_ids": list(host_ids), "moment": tx.now})
