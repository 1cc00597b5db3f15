"""The pairs of a listing over all matrices, each with the newest cells that compare it."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, MatrixId
from farm.core.errors import NotFound
from farm.core.results.history.chosen_labels import ChosenLabels
from farm.services.results.speedups.inputs import SpeedupInputs
from farm.services.results.speedups.listing import AFTER_HINT
from farm.services.results.speedups.pairs import CellPair, compared_pairs
from farm.store.devices.fleet import list_device_ids
from farm.store.matrices import matrices
from farm.store.matrices.candidates import CandidateFilter, labels_of_matrix
from farm.store.matrices.matrices import CellRow
from farm.store.matrices.search import MatrixFilter, matching_among
from farm.store.results.history.chosen_sides import (
    SeriesSide,
    cells_of_sides,
    find_side,
    measured_sides,
    newest_sides,
)
from farm.store.results.history.newest_points import Comparison
from farm.store.results.history.points import (
    PairCell,
    PairKey,
    cells_of_pairs,
    find_pair,
    measured_pairs,
    newest_cells,
)
from farm.store.results.history.stale_points import MeasuredSession, pending_sessions

#: Devices whose pairs the first statement reads; each further one reads twice as many, up to a number, so
#: that a farm whose devices have few pairs takes few statements, too.
_FIRST_DEVICES, _DEVICES_AT_ONCE = 50, 800
#: Cells of so many sessions whose points are not computed yet are read at once.
_SESSIONS_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PairScope:
    """What is considered of a pair: the newest `pooled` matrices of those that match."""

    #: The last matrix.
    until: MatrixId | None
    since: datetime | None
    which: MatrixFilter | None
    pooled: int


def known_labels(
    connection: Connection,
    compared: Iterable[Comparison],
    pending: Iterable[MeasuredSession],
    *,
    model: str | None = None,
) -> set[str]:
    """Return the labels of all cells of a model, or of any, that some device has compared, or compares now.

    Args:
        connection: the database.
        compared: the comparisons that some device has newest points of.
        pending: the sessions whose points are not computed yet.
        model: only of this model, because another one may have a cell that has the whole text as its label.
    """
    known = {
        label
        for own in compared
        if model is None or own.model == model
        for label in (own.candidate, own.baseline)
    }
    measured_now = {session.matrix_id for session in pending}
    return known | (labels_of_matrix(connection, measured_now, model=model) if measured_now else set())


def labels_on_device(
    connection: Connection,
    device_id: DeviceId,
    pending: Iterable[MeasuredSession],
    *,
    model: str | None = None,
) -> set[str]:
    """Return the labels of the cells of a model, or of any, that a device has measured, or measures now.

    Args:
        connection: the database.
        device_id: the device.
        pending: the sessions whose points are not computed yet.
        model: only of this model.
    """
    known = {
        side.label
        for side in newest_sides(connection, [device_id], labels=None)
        if model is None or side.model == model
    }
    measured_now = {session.matrix_id for session in pending if session.device_id == device_id}
    if not measured_now:
        return known
    return known | labels_of_matrix(connection, measured_now, model=model, device_id=device_id)


class ListedPairs:
    """The pairs of a listing with their cells, in the order of devices and series."""

    #: Reads the stored cells of pairs.
    _read_cells = staticmethod(cells_of_pairs)

    def __init__(
        self,
        connection: Connection,
        among: CandidateFilter,
        scope: PairScope,
        labels: ChosenLabels | None = None,
    ) -> None:
        self._labels = labels
        self._connection = connection
        self._model = among.model
        # Not ordered by the database: by its locale texts may come in another order than here.
        if among.device_id is not None:
            self._device_ids = [among.device_id]
        else:
            self._device_ids = sorted(list_device_ids(connection) if among.devices is None else among.devices)
        self._scope = scope
        self._pending: dict[PairKey, list[PairCell]] = {}

    def after(self, key: PairKey | None, *, size: int) -> Iterator[list[PairKey]]:
        """Yield the pairs behind one, `size` at once."""
        first = "" if key is None else key.device_id
        device_ids = [device_id for device_id in self._device_ids if device_id >= first]
        keys: list[PairKey] = []
        start, at_once = 0, _FIRST_DEVICES
        while start < len(device_ids):
            some = device_ids[start : start + at_once]
            start, at_once = start + at_once, min(2 * at_once, _DEVICES_AT_ONCE)
            measured = self._measured_since(some)
            found = sorted({*self._stored_keys(some), *measured})
            listed = [own for own in found if key is None or own > key]
            self._pending |= {own: measured[own] for own in listed if own in measured}
            keys += listed
            while len(keys) >= size:
                yield keys[:size]
                keys = keys[size:]
        if keys:
            yield keys

    def key_of(self, cell_id: CellId) -> PairKey:
        """Return the pair that a cell is the candidate of; raises `NotFound` if it is of none."""
        cell = matrices.find_cell(self._connection, cell_id)
        if cell is not None:
            session = MeasuredSession(cell.matrix_id, cell.device_id)
            for pair in measured_pairs(self._connection, [session], cell_id=cell_id):
                return pair.key
            if (key := find_pair(self._connection, cell_id)) is not None:
                return key
        raise NotFound(f"nothing was compared in cell {cell_id}", hint=AFTER_HINT)

    def _stored_keys(self, device_ids: Sequence[DeviceId]) -> Iterator[PairKey]:
        scope = self._scope
        cells = newest_cells(
            self._connection, device_ids, model=self._model, since=scope.since, which=scope.which
        )
        for cell in self._chosen(cells):
            yield cell.key

    def _measured_since(self, device_ids: Collection[DeviceId]) -> dict[PairKey, list[PairCell]]:
        """Return the newest cells of each pair in sessions whose points are not computed yet, newest first.

        Of a pair at most as many as are considered of it.
        """
        pending = pending_sessions(self._connection, device_ids)
        among = matching_among(self._connection, self._scope.which, {own.matrix_id for own in pending})
        until = self._scope.until
        sessions = [
            own for own in pending if own.matrix_id in among and (until is None or own.matrix_id <= until)
        ]
        found: dict[PairKey, list[PairCell]] = {}
        # The newest sessions come first, so those of a device are in the order of its matrices.
        for start in range(0, len(sessions), _SESSIONS_AT_ONCE):
            some = sessions[start : start + _SESSIONS_AT_ONCE]
            for cell in sorted(self._measured_in(some), key=_newest_first):
                own = found.setdefault(cell.key, [])
                if len(own) < self._scope.pooled:
                    own.append(cell)
        return found

    def _measured_in(self, sessions: Collection[MeasuredSession]) -> list[PairCell]:
        return self._chosen(
            measured_pairs(self._connection, sessions, model=self._model, since=self._scope.since)
        )

    def _chosen(self, cells: list[PairCell]) -> list[PairCell]:
        """Return the cells whose labels are chosen."""
        if self._labels is None:
            return cells
        label_by_cell = matrices.labels_by_cell(self._connection, [cell.cell_id for cell in cells])
        return [cell for cell in cells if self._labels.is_candidate(label_by_cell[cell.cell_id])]

    def compared(self, keys: Sequence[PairKey], *, across_controls: bool) -> Iterator[list[SpeedupInputs]]:
        """Yield the comparisons of each pair, the newest first; pairs without a ratio are left out.

        Each pair is asked for once: its cells that are not computed yet are then forgotten.
        """
        cells = self._cells(keys)
        inputs = _inputs(self._connection, [cell for own in cells.values() for cell in own])
        for own in cells.values():
            compared = [
                inputs[cell.cell_id]
                for cell in own
                # Without a block of both sides there is no ratio yet.
                if cell.cell_id in inputs and inputs[cell.cell_id].pairs(across_controls=across_controls)[0]
            ]
            if compared:
                yield compared

    def _cells(self, keys: Sequence[PairKey]) -> dict[PairKey, list[PairCell]]:
        scope = self._scope
        stored = self._read_cells(
            self._connection,
            keys,
            until=scope.until,
            since=scope.since,
            which=scope.which,
            limit=scope.pooled,
        )
        by_pair: dict[PairKey, dict[CellId, PairCell]] = {key: {} for key in keys}
        for cell in (*stored, *(cell for key in keys for cell in self._pending.pop(key, ()))):
            by_pair[cell.key][cell.cell_id] = cell
        return {key: sorted(own.values(), key=_newest_first)[: scope.pooled] for key, own in by_pair.items()}


def _newest_first(cell: PairCell) -> tuple[int, CellId]:
    return -cell.matrix_id, cell.cell_id


class PairsAgainst(ListedPairs):
    """Pairs of chosen labels, in matrices that measured both sides."""

    _read_cells = staticmethod(cells_of_sides)

    def __init__(
        self,
        connection: Connection,
        among: CandidateFilter,
        scope: PairScope,
        labels: ChosenLabels,
        *,
        skip_ambiguous: bool = False,
    ) -> None:
        """Choose pairs.

        Args:
            connection: the database.
            among: of which devices and model.
            scope: which matrices count.
            labels: of both sides.
            skip_ambiguous: leave out a device and model whose baseline may be several cells, instead of
                raising `InvalidInput`.
        """
        super().__init__(connection, among, scope)
        self._choice, self._skip_ambiguous = labels, skip_ambiguous

    def key_of(self, cell_id: CellId) -> PairKey:
        side = find_side(self._connection, cell_id)
        if side is not None:
            own = [side.device_id]
            for key in sorted({*self._stored_keys(own), *self._measured_since(own)}):
                if key.series_id == side.series_id:
                    return key
        raise NotFound(f"nothing was compared in cell {cell_id}", hint=AFTER_HINT)

    def _stored_keys(self, device_ids: Sequence[DeviceId]) -> Iterator[PairKey]:
        sides = newest_sides(self._connection, device_ids, labels=self._choice.listed)
        for key, _, _ in self._paired(sides):
            yield key

    def _paired(self, sides: Iterable[SeriesSide]) -> Iterator[tuple[PairKey, SeriesSide, SeriesSide]]:
        """Yield each candidate with the baseline of its device and model."""
        by_place: defaultdict[tuple[DeviceId, str | None], list[SeriesSide]] = defaultdict(list)
        for side in sides:
            if self._model is None or side.model == self._model:
                by_place[side.device_id, side.model].append(side)
        for (device_id, _), own in by_place.items():
            labels = {side.label for side in own}
            if self._skip_ambiguous and len(self._choice.baselines_among(labels)) > 1:
                continue
            label = self._choice.baseline_among(labels)
            for baseline in (side for side in own if side.label == label):
                for side in own:
                    if side.label != label and self._choice.is_candidate(side.label):
                        key = PairKey(
                            device_id=device_id,
                            baseline_series_id=baseline.series_id,
                            series_id=side.series_id,
                            is_duplicate=False,
                        )
                        yield key, side, baseline

    def _measured_in(self, sessions: Collection[MeasuredSession]) -> list[PairCell]:
        sides = measured_sides(
            self._connection, sessions, labels=self._choice.listed, since=self._scope.since
        )
        by_matrix: defaultdict[MatrixId, list[SeriesSide]] = defaultdict(list)
        for side in sides:
            by_matrix[side.matrix_id].append(side)
        return [
            PairCell(cell_id=side.cell_id, matrix_id=matrix_id, key=key, baseline_cell_id=baseline.cell_id)
            for matrix_id, own in by_matrix.items()
            for key, side, baseline in self._paired(own)
        ]


def _inputs(connection: Connection, cells: Sequence[PairCell]) -> dict[CellId, SpeedupInputs]:
    """Return what was measured of cells and of their baselines."""
    if not cells:
        return {}
    matrix_by_id = matrices.matrices_by_id(connection, {cell.matrix_id for cell in cells})
    pairs = [
        CellPair(
            matrix=matrix_by_id[candidate.matrix_id],
            baseline=baseline,
            candidate=candidate if is_planned else replace(candidate, baseline_index=baseline.index),
            is_planned=is_planned,
        )
        for candidate, baseline in _with_baselines(connection, cells)
        for is_planned in [candidate.baseline_index == baseline.index]
    ]
    return {inputs.candidate.cell_id: inputs for inputs in compared_pairs(connection, pairs)}


def _with_baselines(connection: Connection, cells: Sequence[PairCell]) -> Iterator[tuple[CellRow, CellRow]]:
    """Yield candidates with their baselines; those without a chosen or planned one are left out."""
    chosen = {cell.cell_id: cell.baseline_cell_id for cell in cells}
    wanted = {cell_id for pair in chosen.items() for cell_id in pair if cell_id is not None}
    rows = {row.cell_id: row for row in matrices.cells_by_id(connection, wanted)}
    without = [cell_id for cell_id, baseline_cell_id in chosen.items() if baseline_cell_id is None]
    planned = matrices.planned_baselines(connection, without) if without else ()
    baseline_by_place = {(row.matrix_id, row.index): row for row in planned}
    for cell_id, baseline_cell_id in chosen.items():
        if (own := rows.get(cell_id)) is None:
            continue
        if baseline_cell_id is not None:
            yield own, rows[baseline_cell_id]
        elif own.baseline_index is not None:
            yield own, baseline_by_place[own.matrix_id, own.baseline_index]
