"""Compute the points of sessions from their measurements, and store them beside settling.

A session is a matrix on a device. What is computed of what was known at one mark is stored only if no other
mark has come since, in the transaction that removes the mark: a process that is killed leaves the mark, and
of two at work one stores nothing. Many small sessions are read at once, and a wide one in pieces.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, FactsId, SeriesId
from farm.core.results.history.session_point import PointValues, SessionPoint, compared_values, own_values
from farm.core.results.looks.basis import rounds_of_last_look
from farm.core.results.looks.look import Look
from farm.core.results.pairing import join_duplicates, paired_rounds
from farm.core.results.speedup import paired_means
from farm.database.transaction import Tx
from farm.store.matrices import matrices
from farm.store.matrices.matrices import Matrix
from farm.store.results.history.points import replace_points, slots_of_series
from farm.store.results.history.session_starts import (
    MeasuredStart,
    SessionCell,
    cells_of_sessions,
    starts_of_cells,
)
from farm.store.results.history.stale_points import (
    MeasuredSession,
    StaleSession,
    clear_marks,
    find_stale,
)
from farm.store.results.looks import looks_of_cells
from farm.store.results.provenance import builds_of

#: Points are computed once no measurement has come for this time, which costs once for each session and not
#: once for each measurement; and of sessions that never pause, so often.
QUIET_S = 20.0
AT_LEAST_EVERY_S = 600.0
#: Of sessions whose points are not computed yet, so many are computed for an answer, the newest.
COMPUTED_AT_ONCE = 20
#: Sessions that the worker computes at once, at most.
SESSIONS_AT_ONCE = 50
#: Cells whose measurements one read holds; a session may have 200,000.
CELLS_AT_ONCE = 400


def find_due_sessions(
    connection: Connection,
    *,
    now: datetime,
    excluded: Collection[MeasuredSession] = (),
    limit: int = SESSIONS_AT_ONCE,
) -> list[StaleSession]:
    """Return the sessions whose points are to be computed next, of different devices."""
    return find_stale(
        connection,
        quiet_since=now - timedelta(seconds=QUIET_S),
        marked_before=now - timedelta(seconds=AT_LEAST_EVERY_S),
        excluded=excluded,
        limit=limit,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPiece:
    """Cells of sessions whose points are computed together, and those that they are compared with."""

    cells: Sequence[SessionCell]
    others: Sequence[SessionCell]


def session_pieces(
    connection: Connection, sessions: Collection[MeasuredSession], *, size: int = CELLS_AT_ONCE
) -> list[SessionPiece]:
    """Return all cells of sessions in pieces of so many at most."""
    cells = cells_of_sessions(connection, sessions)
    if len(cells) <= size:
        return [SessionPiece(cells=cells, others=())]
    by_place = {(cell.session, cell.cell_index): cell for cell in cells}
    duplicates: defaultdict[tuple[MeasuredSession, int | None], list[SessionCell]] = defaultdict(list)
    for cell in cells:
        if cell.replica > 1:
            duplicates[cell.session, cell.baseline_index].append(cell)
    pieces = []
    for start in range(0, len(cells), size):
        own = cells[start : start + size]
        baselines = {(cell.session, cell.baseline_index) for cell in own if cell.baseline_index is not None}
        needed = {by_place[place] for place in baselines if place in by_place}
        needed |= {cell for place in baselines for cell in duplicates[place]}
        pieces.append(SessionPiece(cells=own, others=sorted(needed - {*own})))
    return pieces


def points_of_piece(connection: Connection, piece: SessionPiece) -> list[SessionPoint]:
    """Return the points of the cells of a piece that have a measurement, whether stored or not."""
    starts = starts_of_cells(connection, [cell.cell_id for cell in (*piece.cells, *piece.others)])
    slots = slots_of_series(connection, {own[-1].series_id for own in starts.values()})
    found = {
        matrix_id: matrices.get_matrix(connection, matrix_id)
        for matrix_id in {cell.matrix_id for cell in piece.cells}
    }
    growing = [cell.cell_id for cell in piece.cells if not isinstance(found[cell.matrix_id].spec.rounds, int)]
    looks = looks_of_cells(connection, growing) if growing else {}
    points: list[SessionPoint] = []
    for session, cells in groupby([*piece.cells], key=lambda cell: cell.session):
        of_session = [*cells]
        around = [*of_session, *(cell for cell in piece.others if cell.session == session)]
        facts = {start.facts_id for cell in around for start in starts.get(cell.cell_id, ())}
        computing = _Session(found[session.matrix_id], around, starts, builds_of(connection, facts), looks)
        points += [computing.point(cell, slots) for cell in of_session if cell.cell_id in starts]
    return points


def session_points(connection: Connection, session: MeasuredSession) -> list[SessionPoint]:
    """Return the points of all cells of a session that have a measurement, whether stored or not."""
    pieces = session_pieces(connection, [session])
    return [point for piece in pieces for point in points_of_piece(connection, piece)]


def pending_points(
    connection: Connection, pending: Sequence[MeasuredSession]
) -> dict[MeasuredSession, list[SessionPoint]]:
    """Return the points of the first of some sessions, whose stored ones are not of their measurements."""
    return {session: session_points(connection, session) for session in pending[:COMPUTED_AT_ONCE]}


class _Session:
    """The cells of one session that are read, with their measurements."""

    def __init__(
        self,
        matrix: Matrix,
        cells: Sequence[SessionCell],
        starts: Mapping[CellId, Sequence[MeasuredStart]],
        builds: Mapping[FactsId, int],
        looks: Mapping[CellId, Sequence[Look]],
    ) -> None:
        self._matrix, self._starts, self._builds, self._looks = matrix, starts, builds, looks
        self._by_index = {cell.cell_index: cell for cell in cells}
        self._duplicates: defaultdict[int | None, list[SessionCell]] = defaultdict(list)
        for cell in cells:
            if cell.replica > 1:
                self._duplicates[cell.baseline_index].append(cell)

    def point(self, cell: SessionCell, slots: Mapping[SeriesId, int]) -> SessionPoint:
        """Return the point of a cell that has a measurement."""
        own = self._starts[cell.cell_id]
        values, baseline_id = self._compared(cell)
        times = [start.measured_at for start in own]
        return SessionPoint(
            cell_id=cell.cell_id,
            matrix_id=cell.matrix_id,
            device_id=cell.device_id,
            series_id=own[-1].series_id,
            baseline_series_id=baseline_id,
            replica=cell.replica,
            slot=slots[own[-1].series_id],
            baseline_slot=None if baseline_id is None else slots[baseline_id],
            values=own_values(own, self._builds) if values is None else values,
            began_at=min(times),
            ended_at=max(times),
        )

    def _compared(self, cell: SessionCell) -> tuple[PointValues | None, SeriesId | None]:
        """Return what the comparison of a cell says; None without anything that it is compared with."""
        baseline = None if cell.baseline_index is None else self._by_index.get(cell.baseline_index)
        if baseline is None:
            return None, None
        last = rounds_of_last_look(self._looks.get(cell.cell_id, ())) or self._matrix.spec.round_range[1]
        its, own = self._until(baseline, last), self._until(cell, last)
        if not its:
            return None, None
        joining = self._duplicates[cell.baseline_index] if cell.replica == 1 else ()
        duplicates = [start for other in joining for start in self._until(other, last)]
        joined = join_duplicates(its, duplicates) if duplicates else its
        pairs, excluded = paired_rounds(joined, own, builds=self._builds)
        return compared_values(paired_means(pairs, excluded)), its[-1].series_id

    def _until(self, cell: SessionCell, last: int) -> list[MeasuredStart]:
        return [start for start in self._starts.get(cell.cell_id, ()) if start.round <= last]


def store_points(
    tx: Tx, stale: Sequence[StaleSession], computed: Iterable[SessionPoint]
) -> set[MeasuredSession]:
    """Store what was computed of sessions since their marks; return those of which it is up to date.

    Args:
        tx: the transaction.
        stale: sessions of different devices.
        computed: all points of them.
    """
    current = clear_marks(tx, stale)
    points: dict[MeasuredSession, list[SessionPoint]] = {session: [] for session in current}
    for point in computed:
        session = MeasuredSession(point.matrix_id, point.device_id)
        if session in points:
            points[session].append(point)
    replace_points(tx, points)
    return current
