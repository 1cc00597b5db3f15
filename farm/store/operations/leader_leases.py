"""Leader leases: each names the farm process that runs a periodic task for all of them."""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.jobs.leader_lease import LeaderLease, LeaseDecision, decide_lease
from farm.core.operations.event import EventSubject, FarmEvent
from farm.database.tables import leader_leases
from farm.store.operations.events import record_event


def find_lease(connection: Connection, lease: str) -> LeaderLease | None:
    """Return a lease by its name, or None."""
    row = connection.execute(sa.select(leader_leases).where(leader_leases.c.lease == lease)).one_or_none()
    return None if row is None else LeaderLease(holder=row.holder, expires_at=row.expires_at)


def acquire_lease(
    connection: Connection, lease: str, process: str, *, now: datetime, duration: timedelta
) -> LeaseDecision:
    """Acquire or renew a lease; no row changes if another process holds it."""
    current = find_lease(connection, lease)
    decision = decide_lease(current, process, now=now, lease=duration)
    if decision is LeaseDecision.ELSEWHERE and connection.dialect.name != "sqlite":
        return decision
    if decision is LeaseDecision.ELSEWHERE:
        # One process at a time uses the file: this holder is an earlier process, which was killed.
        decision = LeaseDecision.TAKEN
    values = {"holder": process, "expires_at": now + duration}
    if current is None:
        connection.execute(leader_leases.insert().values(lease=lease, **values))
    else:
        connection.execute(leader_leases.update().where(leader_leases.c.lease == lease).values(values))
    if decision is LeaseDecision.TAKEN:
        record_event(
            connection,
            at=now,
            actor="farm",
            kind=FarmEvent.LEASE_ACQUIRED,
            subject=EventSubject.LEADER_LEASE,
            subject_id=lease,
            from_state=None if current is None else current.holder,
            to_state=process,
        )
    return decision


def release_lease(connection: Connection, lease: str, process: str, *, now: datetime) -> None:
    """Release a lease at once; no row changes if another process holds it."""
    connection.execute(
        leader_leases.update()
        .where(leader_leases.c.lease == lease, leader_leases.c.holder == process)
        .values(expires_at=now)
    )
