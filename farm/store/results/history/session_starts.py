"""The cells of sessions and what was measured of them, as plain tuples: of many sessions at once."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, FactsId, MatrixId, SeriesId
from farm.core.devices.controls import ControlLevel
from farm.core.runs.measurement import Quality, SampleKind
from farm.database.rows import is_among
from farm.database.tables import cells, measurements
from farm.store.results.history.stale_points import MeasuredSession, devices_by_matrix
from farm.store.results.measurements import is_accepted, with_enums


class SessionCell(NamedTuple):
    """A cell of a session, and its place in the matrix."""

    cell_id: CellId
    matrix_id: MatrixId
    device_id: DeviceId
    cell_index: int
    baseline_index: int | None
    replica: int

    @property
    def session(self) -> MeasuredSession:
        """Return its session."""
        return MeasuredSession(self.matrix_id, self.device_id)


class MeasuredStart(NamedTuple):
    """What is compared of one process start: a `MeasuredValue`."""

    cell_id: CellId
    series_id: SeriesId
    round: int
    block: int
    repeat: int
    value_ns: float
    clock_step_ns: int
    facts_id: FactsId | None
    start_skin_c: float | None
    start_battery_c: float | None
    boot_id: str | None
    start_uptime_s: float | None
    measured_at: datetime
    kind: SampleKind
    quality: Quality
    control_level: ControlLevel


# Built once: that takes longer than the answer for a small session.
_CELLS_QUERY = (
    sa.select(
        cells.c.cell_id,
        cells.c.matrix_id,
        cells.c.device_id,
        cells.c.cell_index,
        cells.c.baseline_index,
        cells.c.replica,
    )
    .where(
        cells.c.matrix_id == sa.bindparam("matrix_id"),
        cells.c.device_id.in_(sa.bindparam("device_ids", expanding=True)),
    )
    .order_by(cells.c.device_id, cells.c.cell_index)
)
_STARTS_QUERY = sa.select(*(measurements.c[name] for name in MeasuredStart._fields)).order_by(
    measurements.c.measurement_id
)


def cells_of_sessions(connection: Connection, sessions: Collection[MeasuredSession]) -> list[SessionCell]:
    """Return the cells of sessions, by matrix, device and index."""
    return [
        SessionCell._make(row)
        for matrix_id, device_ids in sorted(devices_by_matrix(sessions).items())
        for row in connection.execute(_CELLS_QUERY, {"matrix_id": matrix_id, "device_ids": device_ids}).all()
    ]


def starts_of_cells(
    connection: Connection, cell_ids: Collection[CellId]
) -> dict[CellId, list[MeasuredStart]]:
    """Return the accepted measurements of cells, oldest first; cells without any are missing."""
    query = _STARTS_QUERY.where(
        is_among(connection, measurements.c.cell_id, cell_ids), is_accepted(connection)
    )
    starts: defaultdict[CellId, list[MeasuredStart]] = defaultdict(list)
    for row in connection.execute(query).all():
        starts[row[0]].append(MeasuredStart._make(with_enums(row)))
    return dict(starts)
