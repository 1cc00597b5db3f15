"""The points that changes are sought in: streamed in the order of time, and those of some series."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, Digest, FactsId, MatrixId, SeriesId
from farm.core.devices.device import DeviceFacts
from farm.core.devices.software_version import build_names
from farm.database.rows import is_among, is_key_among
from farm.database.tables import cells, device_facts, is_set, points, programs, series, stale_points, variants
from farm.database.tables.history import point_progress

#: Rows that are in memory at once.
_ROWS_AT_ONCE = 5000
_FACTS = TypeAdapter(DeviceFacts)


class DetectionPoint(NamedTuple):
    """A point as detection needs it. A tuple, because histories have millions of them."""

    cell_id: CellId
    matrix_id: MatrixId
    device_id: DeviceId
    series_id: SeriesId
    baseline_series_id: SeriesId | None
    slot: int
    baseline_slot: int | None
    time_ns: float
    se_time: float | None
    baseline_ns: float | None
    se_speedup: float | None
    facts_id: FactsId | None
    control_level: int
    #: Microseconds since 1970.
    ended_us: int
    label: str
    variant_id: int | None
    program_id: int


_COLUMNS = [
    *(points.c[name] for name in DetectionPoint._fields[:13]),
    sa.type_coerce(points.c.ended_at, sa.BigInteger).label("ended_us"),
    cells.c.label,
    cells.c.variant_id,
    cells.c.program_id,
]


def _counted() -> sa.Select[tuple[object, ...]]:
    return (
        sa.select(*_COLUMNS)
        .join(cells, cells.c.cell_id == points.c.cell_id)
        .where(points.c.rounds > 0, points.c.replica == 1)
    )


def first_matrix_of_newest(connection: Connection, count: int) -> MatrixId | None:
    """Return the first matrix behind which are about so many points; None where there are fewer."""
    newest = sa.select(points.c.matrix_id).order_by(points.c.matrix_id.desc()).offset(count).limit(1)
    row = connection.execute(newest).one_or_none()
    return None if row is None else MatrixId(row.matrix_id + 1)


def points_in_order(connection: Connection, first: MatrixId | None) -> Iterator[DetectionPoint]:
    """Yield all points that count, by their time, from a matrix on; duplicates of baselines are left out."""
    query = _counted().order_by(points.c.ended_at, points.c.cell_id)
    if first is not None:
        query = query.where(points.c.matrix_id >= first)
    result = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query)
    for rows in result.partitions():
        yield from map(DetectionPoint._make, rows)


def points_of_some_series(connection: Connection, series_ids: Collection[SeriesId]) -> list[DetectionPoint]:
    """Return the points that count of some series, by their time."""
    query = _counted().where(is_key_among(connection, points.c.series_id, series_ids))
    rows = connection.execute(query.order_by(points.c.ended_at, points.c.cell_id))
    return list(map(DetectionPoint._make, rows))


def devices_measured_since(
    connection: Connection, slots: Collection[int], since_us: int, matrices: Collection[MatrixId]
) -> int:
    """Return the number of devices whose newest session of one of these slots is not from before a change.

    Args:
        connection: the database.
        slots: what was measured.
        since_us: the end of the first session that shows the change, in microseconds since 1970.
        matrices: those of such sessions: other devices may have ended their part of them earlier.
    """
    query = sa.select(sa.func.count(points.c.device_id.distinct())).where(
        is_set(points.c.newest),
        is_among(connection, points.c.slot, slots),
        sa.or_(
            sa.type_coerce(points.c.ended_at, sa.BigInteger) >= since_us,
            is_among(connection, points.c.matrix_id, matrices),
        ),
        points.c.rounds > 0,
    )
    return connection.execute(query).scalar_one()


@dataclass(frozen=True, slots=True, kw_only=True)
class PointState:
    """What changes whenever points do."""

    version: int
    pending: int
    newest_cell: int


def point_state(connection: Connection) -> PointState:
    """Return what changes whenever points are stored."""
    version = connection.execute(sa.select(point_progress.c.version)).scalar()
    pending = connection.execute(sa.select(sa.func.count()).select_from(stale_points)).scalar_one()
    newest = connection.execute(sa.select(sa.func.max(points.c.cell_id))).scalar()
    return PointState(version=version or 0, pending=pending, newest_cell=newest or 0)


class PointNames:
    """Names of what points refer to, read once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._series: dict[SeriesId, tuple[str | None, str]] = {}
        self._builds: dict[FactsId, str] = {}
        files = connection.execute(sa.select(variants.c.variant_id, variants.c.name, variants.c.digest))
        self._files = {variant_id: (name, Digest(digest)) for variant_id, name, digest in files}
        used = connection.execute(sa.select(programs.c.program_id, programs.c.digest))
        self._programs = {program_id: Digest(digest) for program_id, digest in used}

    def model_and_harness(self, series_id: SeriesId) -> tuple[str | None, str]:
        """Return the model of a series, None without one, and its harness."""
        if series_id not in self._series:
            query = sa.select(series.c.series_id, series.c.model, series.c.harness)
            of_device = sa.select(series.c.device_id).where(series.c.series_id == series_id).scalar_subquery()
            for row in self._connection.execute(query.where(series.c.device_id == of_device)):
                self._series[row.series_id] = row.model, row.harness
        return self._series[series_id]

    def file(self, point: DetectionPoint) -> Digest | None:
        """Return the digest of the model file of a point."""
        return None if point.variant_id is None else self._files[point.variant_id][1]

    def variant(self, point: DetectionPoint) -> str | None:
        """Return the name of the model file of a point."""
        return None if point.variant_id is None else self._files[point.variant_id][0]

    def program(self, point: DetectionPoint) -> Digest:
        """Return the digest of the program of a point."""
        return self._programs[point.program_id]

    def os(self, point: DetectionPoint) -> str | None:
        """Return the name of the build that a point was measured on; None if that is not known."""
        if point.facts_id is None:
            return None
        if point.facts_id not in self._builds:
            query = sa.select(device_facts.c.facts_id, device_facts.c.facts)
            rows = self._connection.execute(query.where(device_facts.c.device_id == point.device_id))
            facts = {row.facts_id: _FACTS.validate_python(row.facts, strict=False) for row in rows}
            self._builds |= build_names(facts)
        return self._builds[point.facts_id]
