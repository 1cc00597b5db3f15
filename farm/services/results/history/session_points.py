"""Compute the points of a session from its measurements, and store them beside settling.

A session is a matrix on a device. What is computed of what was known at one mark is stored only if no other
mark has come since, in the transaction that removes the mark: a process that is killed leaves the mark, and
of two at work one stores nothing.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, SeriesId
from farm.core.results.history.session_point import PointValues, SessionPoint, compared_values, own_values
from farm.database.transaction import Tx
from farm.services.results.speedups import comparisons_of
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CellRow
from farm.store.results import measurements
from farm.store.results.history.points import replace_points, slots_of_series
from farm.store.results.history.stale_points import (
    MeasuredSession,
    StaleSession,
    clear_mark,
    find_stale,
    pending_sessions,
)
from farm.store.results.measurements import Measurement
from farm.store.results.provenance import builds_of

#: Points are computed once no measurement has come for this time, which costs once for each session and not
#: once for each measurement; and of sessions that never pause, so often.
QUIET_S = 20.0
AT_LEAST_EVERY_S = 600.0
#: Of sessions whose points are not computed yet, so many are computed for an answer, the newest.
COMPUTED_AT_ONCE = 20


def find_due_session(
    connection: Connection, *, now: datetime, excluded: Collection[MeasuredSession] = ()
) -> StaleSession | None:
    """Return the session whose points are to be computed next; None while there is none."""
    return find_stale(
        connection,
        quiet_since=now - timedelta(seconds=QUIET_S),
        marked_before=now - timedelta(seconds=AT_LEAST_EVERY_S),
        excluded=excluded,
    )


def session_points(connection: Connection, session: MeasuredSession) -> list[SessionPoint]:
    """Return the points of all cells of a session that have a measurement, whether stored or not."""
    matrix = matrices.get_matrix(connection, session.matrix_id)
    cells = matrices.list_cells(connection, session.matrix_id, device_id=session.device_id)
    measured = _measured(connection, cells)
    values: dict[CellId, tuple[PointValues, SeriesId | None]] = {}
    compared = [cell for cell in cells if cell.baseline_index is not None and cell.cell_id in measured]
    for inputs in comparisons_of(connection, matrix, compared):
        result, pairs = inputs.compare()
        values[inputs.candidate.cell_id] = compared_values(result, pairs), inputs.series[0]
    builds = builds_of(connection, {value.facts_id for own in measured.values() for value in own})
    for cell in cells:
        own = measured.get(cell.cell_id)
        if own and values.get(cell.cell_id, (None, None))[1] is None:
            # Nothing was measured of its baseline, or there is none.
            values[cell.cell_id] = own_values(own, builds), None
    return list(_points(connection, cells, measured, values))


def pending_points(
    connection: Connection, device_ids: Collection[DeviceId] | None = None
) -> dict[MeasuredSession, list[SessionPoint]]:
    """Return the points of the newest sessions whose stored ones are not those of their measurements."""
    pending = pending_sessions(connection, device_ids)[:COMPUTED_AT_ONCE]
    return {session: session_points(connection, session) for session in pending}


def _measured(connection: Connection, cells: Sequence[CellRow]) -> dict[CellId, list[Measurement]]:
    measured: defaultdict[CellId, list[Measurement]] = defaultdict(list)
    for measurement in measurements.accepted_of_cells(connection, [cell.cell_id for cell in cells]):
        measured[measurement.cell_id].append(measurement)
    return dict(measured)


def _points(
    connection: Connection,
    cells: Sequence[CellRow],
    measured: Mapping[CellId, Sequence[Measurement]],
    values: Mapping[CellId, tuple[PointValues, SeriesId | None]],
) -> Iterator[SessionPoint]:
    own_series = {cell_id: own[-1].series_id for cell_id, own in measured.items()}
    slots = slots_of_series(connection, {*own_series.values()})
    for cell in cells:
        if cell.cell_id not in measured:
            continue
        own, baseline_id = values[cell.cell_id]
        times = [value.measured_at for value in measured[cell.cell_id]]
        yield SessionPoint(
            cell_id=cell.cell_id,
            matrix_id=cell.matrix_id,
            device_id=cell.device_id,
            series_id=own_series[cell.cell_id],
            baseline_series_id=baseline_id,
            replica=cell.replica,
            slot=slots[own_series[cell.cell_id]],
            baseline_slot=None if baseline_id is None else slots[baseline_id],
            values=own,
            began_at=min(times),
            ended_at=max(times),
        )


def store_points(tx: Tx, stale: StaleSession, computed: Sequence[SessionPoint]) -> bool:
    """Store what was computed of a session since its mark; False if that is out of date."""
    if not clear_mark(tx, stale):
        return False
    replace_points(tx, stale.matrix_id, stale.device_id, computed)
    return True
