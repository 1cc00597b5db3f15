"""Sessions whose points are to be computed, marked by the measurements that they have got since."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.database.rows import is_among, rows_query, rows_text, to_record
from farm.database.tables import cells, matrices, measurements, point_progress, stale_points
from farm.database.transaction import Tx
from farm.store.matrices.search import MatrixFilter, is_of_matching


class MeasuredSession(NamedTuple):
    """A matrix on a device."""

    matrix_id: MatrixId
    device_id: DeviceId


def devices_by_matrix(sessions: Iterable[MeasuredSession]) -> dict[MatrixId, list[DeviceId]]:
    """Return sessions by matrix: of pairs of columns in a list, SQLite would look up the first one only."""
    found: dict[MatrixId, list[DeviceId]] = {}
    for matrix_id, device_id in sessions:
        found.setdefault(matrix_id, []).append(device_id)
    return found


#: The condition that the sessions of a matrix have points. A number that is measured again, maybe by files
#: and programs of long ago, is no news of its series: the next usual session would seem to be a change.
HAS_POINTS = matrices.c.repeated_attempt.is_(None)

_SESSION: list[sa.ColumnClause[Any]] = [
    sa.column("matrix_id", sa.BigInteger),
    sa.column("device_id", sa.Text),
]


def is_of_sessions(connection: Connection, sessions: Collection[MeasuredSession]) -> sa.ColumnElement[bool]:
    """Return the condition that a cell is of one of some sessions, each looked up by its index."""
    rows = rows_text([tuple(session) for session in sessions])
    asked, own = rows_query(connection.dialect.name, _SESSION, rows).subquery(), cells.alias()
    is_own = sa.and_(own.c.matrix_id == asked.c.matrix_id, own.c.device_id == asked.c.device_id)
    return cells.c.cell_id.in_(sa.select(own.c.cell_id).join_from(asked, own, is_own))


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleSession:
    """A session whose points are to be computed, and the mark that says so."""

    matrix_id: MatrixId
    device_id: DeviceId
    version: int

    @property
    def session(self) -> MeasuredSession:
        """Return the session without its mark."""
        return MeasuredSession(self.matrix_id, self.device_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    measurement_id: int = 0
    version: int = 0


def _progress(connection: Connection) -> _Progress:
    row = connection.execute(sa.select(point_progress)).one_or_none()
    return _Progress() if row is None else to_record(_Progress, row)


#: The last measurement whose session is marked, the last of all, and whether there are marks.
_ANY_PENDING_QUERY = sa.select(
    sa.select(point_progress.c.measurement_id).scalar_subquery(),
    sa.select(sa.func.max(measurements.c.measurement_id)).scalar_subquery(),
    sa.exists(sa.select(stale_points.c.matrix_id)),
)


def has_unmarked(connection: Connection) -> bool:
    """Tell whether there are measurements whose sessions are not marked yet."""
    marked, last, _ = connection.execute(_ANY_PENDING_QUERY).one()
    return (last or 0) > (marked or 0)


def mark_measured(tx: Tx, *, limit: int) -> bool:
    """Mark the sessions of the next measurements; True if there are more of them.

    Ids of measurements become visible in their order: writers have one lock.
    """
    progress = _progress(tx.connection)
    following = (
        sa.select(measurements.c.measurement_id, measurements.c.cell_id)
        .where(measurements.c.measurement_id > progress.measurement_id)
        .order_by(measurements.c.measurement_id)
        .limit(limit)
        .subquery()
    )
    query = (
        sa.select(
            following.c.measurement_id,
            cells.c.matrix_id,
            cells.c.device_id,
            HAS_POINTS.label("has_points"),
        )
        .join(cells, cells.c.cell_id == following.c.cell_id)
        .join(matrices, matrices.c.matrix_id == cells.c.matrix_id)
    )
    rows = tx.connection.execute(query).all()
    if not rows:
        return False
    _mark(
        tx,
        {MeasuredSession(row.matrix_id, row.device_id) for row in rows if row.has_points},
        _Progress(measurement_id=max(row.measurement_id for row in rows), version=progress.version + 1),
    )
    return len(rows) == limit


def mark_sessions(tx: Tx, sessions: Collection[MeasuredSession]) -> None:
    """Mark sessions whose points change by something else than a new measurement, if they have points."""
    progress = _progress(tx.connection)
    ids = {session.matrix_id for session in sessions}
    query = sa.select(matrices.c.matrix_id).where(
        is_among(tx.connection, matrices.c.matrix_id, ids), HAS_POINTS
    )
    among = {*tx.connection.execute(query).scalars()}
    having = {session for session in sessions if session.matrix_id in among}
    _mark(tx, having, _Progress(measurement_id=progress.measurement_id, version=progress.version + 1))


def _mark(tx: Tx, sessions: Collection[MeasuredSession], after: _Progress) -> None:
    insert = (postgresql if tx.connection.dialect.name == "postgresql" else sqlite).insert
    times = {"marked_at": tx.now, "last_marked_at": tx.now}
    mark = insert(stale_points)
    rows = [{**session._asdict(), "version": after.version, **times} for session in sorted(sessions)]
    if rows:
        tx.connection.execute(
            mark.on_conflict_do_update(
                index_elements=["matrix_id", "device_id"],
                set_={name: mark.excluded[name] for name in ("version", "last_marked_at")},
            ),
            rows,
        )
    values = {"measurement_id": after.measurement_id, "version": after.version}
    progress = insert(point_progress).values(progress_id=1, **values)
    tx.connection.execute(progress.on_conflict_do_update(index_elements=["progress_id"], set_=values))


def find_stale(
    connection: Connection,
    *,
    quiet_since: datetime,
    marked_before: datetime,
    excluded: Collection[MeasuredSession] = (),
    limit: int,
) -> list[StaleSession]:
    """Return the newest sessions that are due: without a mark for a while, or marked long ago.

    They are of different devices, so that their points can be stored together.
    """
    is_due = sa.or_(stale_points.c.last_marked_at <= quiet_since, stale_points.c.marked_at <= marked_before)
    query = (
        sa.select(stale_points)
        .where(is_due)
        .order_by(stale_points.c.matrix_id.desc(), stale_points.c.device_id)
        .limit(len(excluded) + limit)
    )
    by_device: dict[DeviceId, StaleSession] = {}
    for row in connection.execute(query).all():
        stale = to_record(StaleSession, row)
        if stale.session not in excluded:
            by_device.setdefault(stale.device_id, stale)
    return [*by_device.values()][:limit]


def clear_marks(tx: Tx, stale: Collection[StaleSession]) -> set[MeasuredSession]:
    """Remove marks by comparing; return the sessions without those that were marked again, or computed by
    another process.
    """
    mark = sa.tuple_(stale_points.c.matrix_id, stale_points.c.device_id, stale_points.c.version)
    marks = [(own.matrix_id, own.device_id, own.version) for own in stale]
    removed = tx.connection.execute(
        stale_points.delete()
        .where(mark.in_(marks))
        .returning(stale_points.c.matrix_id, stale_points.c.device_id)
    )
    return {MeasuredSession(row.matrix_id, row.device_id) for row in removed}


_MARKED_QUERY = sa.select(stale_points.c.matrix_id, stale_points.c.device_id)
_UNMARKED_QUERY = (
    sa.select(cells.c.matrix_id, cells.c.device_id)
    .join(measurements, measurements.c.cell_id == cells.c.cell_id)
    .join(matrices, matrices.c.matrix_id == cells.c.matrix_id)
    .where(measurements.c.measurement_id > sa.bindparam("measurement_id"), HAS_POINTS)
)


def pending_sessions(
    connection: Connection,
    device_ids: Collection[DeviceId] | None = None,
    *,
    which: MatrixFilter | None = None,
    newest: int | None = None,
) -> list[MeasuredSession]:
    """Return the sessions whose stored points are not those of their measurements, the newest first.

    Mostly there are none, which a statement without a join tells.

    Args:
        connection: the database.
        device_ids: only of these devices.
        which: only of matrices of a name or a person.
        newest: so many at most.
    """
    behind = _last_marked_of_pending(connection)
    if behind is None:
        return []
    return sessions_behind(connection, behind, device_ids, which=which, newest=newest)


def pending_devices(
    connection: Connection,
    device_ids: Collection[DeviceId] | None = None,
    *,
    which: MatrixFilter | None = None,
) -> set[DeviceId]:
    """Return the devices of `pending_sessions`."""
    behind = _last_marked_of_pending(connection)
    if behind is None:
        return set()
    marked, unmarked = _pending_queries(connection, device_ids, which)
    found = marked.with_only_columns(stale_points.c.device_id).union(
        unmarked.with_only_columns(cells.c.device_id)
    )
    return {*connection.execute(found, {"measurement_id": behind}).scalars()}


def _last_marked_of_pending(connection: Connection) -> int | None:
    """Return the last measurement whose session is marked; None where no session is pending."""
    marked, last, has_marks = connection.execute(_ANY_PENDING_QUERY).one()
    return (marked or 0) if has_marks or (last or 0) > (marked or 0) else None


def sessions_behind(
    connection: Connection,
    measurement_id: int,
    device_ids: Collection[DeviceId] | None = None,
    *,
    which: MatrixFilter | None = None,
    newest: int | None = None,
) -> list[MeasuredSession]:
    """Return the sessions that are marked or have measurements behind one, the newest first."""
    marked, unmarked = _pending_queries(connection, device_ids, which)
    if newest is not None:
        by_age = marked.order_by(stale_points.c.matrix_id.desc(), stale_points.c.device_id)
        marked = sa.select(by_age.limit(newest).subquery())
    rows = connection.execute(marked.union(unmarked), {"measurement_id": measurement_id}).all()
    found = {MeasuredSession(row.matrix_id, row.device_id) for row in rows}
    return sorted(found, key=lambda session: (-session.matrix_id, session.device_id))[:newest]


def _pending_queries(
    connection: Connection, device_ids: Collection[DeviceId] | None, which: MatrixFilter | None
) -> tuple[sa.Select[Any], sa.Select[Any]]:
    """Return the queries of marked sessions, and of those with measurements behind a parameter."""
    marked, unmarked = _MARKED_QUERY, _UNMARKED_QUERY
    if device_ids is not None:
        marked = marked.where(is_among(connection, stale_points.c.device_id, device_ids))
        unmarked = unmarked.where(is_among(connection, cells.c.device_id, device_ids))
    if which is not None:
        marked = marked.where(is_of_matching(stale_points.c.matrix_id, which))
        unmarked = unmarked.where(is_of_matching(cells.c.matrix_id, which))
    return marked, unmarked
