"""Lowered ceilings of clocks in the last runs of a device."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.results.ceiling_history import RunCeilings
from farm.database.rows import to_record
from farm.database.tables import attempts, measurements


def last_ceilings(connection: Connection, device_id: DeviceId, *, limit: int) -> list[RunCeilings]:
    """Return those of the accepted measurements among a device's last attempts, as far as they are known."""
    # By fence, whose index has a device's last attempts.
    last = (
        sa.select(attempts.c.attempt_id)
        .where(attempts.c.device_id == device_id)
        .order_by(attempts.c.fence.desc())
        .limit(limit)
        .subquery()
    )
    query = (
        sa.select(measurements.c.measured_at, measurements.c.ceilings)
        .join(last, last.c.attempt_id == measurements.c.attempt_id)
        .where(measurements.c.accepted, measurements.c.ceilings.is_not(None))
        .order_by(measurements.c.measurement_id)
    )
    return [to_record(RunCeilings, row) for row in connection.execute(query)]
