"""Leader leases: each names the farm process that runs a periodic task for all of them."""

from datetime import timedelta

import sqlalchemy as sa

from farm.core.operations.event import FarmEvent
from farm.core.operations.leader_lease import LeaderLease, LeaseDecision, decide_lease
from farm.database.rows import find_record
from farm.database.tables import leader_leases
from farm.database.transaction import Tx
from farm.store.operations.events import record_event


def acquire_lease(tx: Tx, lease: str, process: str, *, duration: timedelta) -> LeaseDecision:
    """Acquire or renew a lease; no row changes if another process holds it."""
    query = sa.select(leader_leases).where(leader_leases.c.lease == lease)
    current = find_record(tx.connection, LeaderLease, query)
    decision = decide_lease(current, process, now=tx.now, lease=duration)
    if decision is LeaseDecision.ELSEWHERE and tx.connection.dialect.name != "sqlite":
        return decision
    if decision is LeaseDecision.ELSEWHERE:
        # One process at a time uses the file: this holder is an earlier process, which was killed.
        decision = LeaseDecision.ACQUIRED
    values = {"holder": process, "expires_at": tx.now + duration}
    if current is None:
        tx.connection.execute(leader_leases.insert().values(lease=lease, **values))
    else:
        tx.connection.execute(leader_leases.update().where(leader_leases.c.lease == lease).values(values))
    if decision is LeaseDecision.ACQUIRED:
        record_event(
            tx.by("farm"),
            FarmEvent.LEASE_ACQUIRED,
            lease,
            from_state=None if current is None else current.holder,
            to_state=process,
        )
    return decision


def release_lease(tx: Tx, lease: str, process: str) -> None:
    """Release a lease at once; no row changes if another process holds it."""
    tx.connection.execute(
        leader_leases.update()
        .where(leader_leases.c.lease == lease, leader_leases.c.holder == process)
        .values(expires_at=tx.now)
    )
