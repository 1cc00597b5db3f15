"""Duties: what one farm process does for all of them."""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.jobs.leader_lease import LeaderLease, LeaseDecision, decide_lease
from farm.core.operations.event import EventSubject, FarmEvent
from farm.database.tables import leader_leases
from farm.store.operations.events import record_event


def find_lease(connection: Connection, lease: str) -> LeaderLease | None:
    """Who holds a duty, and until when."""
    row = connection.execute(sa.select(leader_leases).where(leader_leases.c.lease == lease)).one_or_none()
    return None if row is None else LeaderLease(holder=row.holder, expires_at=row.expires_at)


def acquire_lease(
    connection: Connection, lease: str, process: str, *, now: datetime, duration: timedelta
) -> LeaseDecision:
    """Take a duty, or keep it, for the length of a lease from now; no row moves where another has it."""
    found = find_lease(connection, lease)
    whose = decide_lease(found, process, now=now, lease=duration)
    if whose is LeaseDecision.ELSEWHERE and connection.dialect.name != "sqlite":
        return whose
    if whose is LeaseDecision.ELSEWHERE:
        # One process at a time has the file: this holder is an earlier life, which was killed.
        whose = LeaseDecision.TAKEN
    values = {"holder": process, "expires_at": now + duration}
    if found is None:
        connection.execute(leader_leases.insert().values(lease=lease, **values))
    else:
        connection.execute(leader_leases.update().where(leader_leases.c.lease == lease).values(values))
    if whose is LeaseDecision.TAKEN:
        record_event(
            connection,
            at=now,
            actor="farm",
            kind=FarmEvent.LEASE_ACQUIRED,
            subject=EventSubject.LEADER_LEASE,
            subject_id=lease,
            from_state=None if found is None else found.holder,
            to_state=process,
        )
    return whose


def release_lease(connection: Connection, lease: str, process: str, *, now: datetime) -> None:
    """Let others have a duty at once; nothing happens when another has it already."""
    connection.execute(
        leader_leases.update()
        .where(leader_leases.c.lease == lease, leader_leases.c.holder == process)
        .values(expires_at=now)
    )
