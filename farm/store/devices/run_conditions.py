"""The condition of a device at its last runs: temperatures before them, and limited clocks in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, DeviceId
from farm.core.runs.measurement import Quality
from farm.core.runs.trace_findings import Ceiling
from farm.database.rows import to_record
from farm.database.tables import attempts, measurements


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCondition:
    """The condition of a device at one run, as far as it is known."""

    attempt_id: AttemptId
    measured_at: datetime
    quality: Quality
    #: Right before the run.
    start_battery_c: float | None
    start_skin_c: float | None
    #: Ceilings of clocks that were below the hardware's; None: not known.
    ceilings: Sequence[Ceiling] | None

    @property
    def clock_pct(self) -> float | None:
        """Return the lowest ceiling of any clock, in percent of its hardware's; 100 if none was lowered."""
        if self.ceilings is None:
            return None
        return round(min((100 * one.lowest_hz / one.hardware_hz for one in self.ceilings), default=100.0), 1)


def last_run_conditions(connection: Connection, device_id: DeviceId, *, limit: int) -> list[RunCondition]:
    """Return those of the measurements among a device's last attempts, the newest first."""
    # By fence, whose index has a device's last attempts.
    last = (
        sa.select(attempts.c.attempt_id)
        .where(attempts.c.device_id == device_id)
        .order_by(attempts.c.fence.desc())
        .limit(limit)
        .subquery()
    )
    names = ("attempt_id", "measured_at", "quality", "start_battery_c", "start_skin_c", "ceilings")
    query = (
        sa.select(*(measurements.c[name] for name in names))
        .join(last, last.c.attempt_id == measurements.c.attempt_id)
        .where(measurements.c.accepted)
        .order_by(measurements.c.measurement_id.desc())
    )
    return [to_record(RunCondition, row) for row in connection.execute(query)]
