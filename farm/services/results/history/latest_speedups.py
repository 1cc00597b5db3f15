"""Compute the speedup of each pair over matrices of equal versions, however many rounds each has.

Points tell which cells there are of a pair, so the cost does not grow with the number of matrices. What was
measured since a session's points were computed is found by its marks.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, FactsId, MatrixId
from farm.core.errors import NotFound
from farm.core.runs.measurement import MIN_ROUNDS
from farm.database.known_at import as_known_at
from farm.services.results.speedups import (
    AFTER_HINT,
    PAGE,
    SpeedupInputs,
    candidate_filter,
    comparisons_of,
    speedup_views,
    with_priors,
)
from farm.store.devices.devices import list_device_names
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CandidateFilter
from farm.store.results.history.points import (
    PairCell,
    PairKey,
    cells_of_pair,
    find_pair,
    measured_pairs,
    newest_cells,
)
from farm.store.results.history.stale_points import pending_sessions
from farm.store.results.measurements import Measurement
from farm.store.results.provenance import builds_of
from farm.wire.documents.matrices.matrices import SpeedupView

#: Rounds of so many matrices are pooled at most: the newest ones.
POOLED_MATRICES = 20
#: Devices whose pairs one statement reads.
_DEVICES_AT_ONCE = 50


def list_latest_speedups(
    connection: Connection,
    *,
    device: str | None = None,
    model: str | None = None,
    across_controls: bool = False,
    since: datetime | None = None,
    at: datetime | None = None,
    after: CellId | None = None,
    limit: int = PAGE,
    pooled: int = POOLED_MATRICES,
) -> list[SpeedupView]:
    """Return the speedup of each pair over matrices of equal versions; arguments as for one matrix.

    Versions are file, program, build and control level. Where the newest ones have too few rounds for an
    interval, the newest that have enough count, or those with the most: one round hides no hundred. The
    newest matrices of a pair are considered, `pooled` of them.

    Args:
        since: only sessions with a measurement at this time or later.
        at: as known then: by what was measured, and not retracted or parsed again later.

    Raises like `list_speedups`.
    """
    among = candidate_filter(connection, device=device, model=model)
    as_known_at(connection, at)
    pairs = _Pairs(connection, among, since=since, at=at, pooled=pooled)
    behind = None if after is None else _pair_at(connection, after)
    chosen: list[list[SpeedupInputs]] = []
    for keys in pairs.after(behind, size=limit):
        chosen += pairs.compared(keys, across_controls=across_controls)
        if len(chosen) >= limit:
            break
    of_pairs = [_pooled(connection, own, across_controls=across_controls) for own in chosen[:limit]]
    return speedup_views(connection, with_priors(connection, of_pairs), across_controls=across_controls)


class _Pairs:
    """The pairs of a listing with their cells, in the order of devices and series."""

    def __init__(
        self,
        connection: Connection,
        among: CandidateFilter,
        *,
        since: datetime | None,
        at: datetime | None,
        pooled: int,
    ) -> None:
        self._connection = connection
        self._model = among.model
        # Not ordered by the database: by its locale texts may come in another order than here.
        self._device_ids = (
            sorted(name.device_id for name in list_device_names(connection))
            if among.device_id is None
            else [among.device_id]
        )
        self._since = since
        self._pooled = pooled
        self._until = None if at is None else matrices.newest_matrix_at(connection, at)
        self._has_any = at is None or self._until is not None
        self._pending: dict[PairKey, list[PairCell]] = {}

    def after(self, key: PairKey | None, *, size: int) -> Iterator[list[PairKey]]:
        """Yield the pairs behind one, some at once."""
        first = "" if key is None else key.device_id
        device_ids = [device_id for device_id in self._device_ids if device_id >= first]
        for start in range(0, len(device_ids) if self._has_any else 0, _DEVICES_AT_ONCE):
            some = device_ids[start : start + _DEVICES_AT_ONCE]
            stored = newest_cells(self._connection, some, model=self._model, since=self._since)
            self._pending = self._measured_since(some)
            keys = sorted({*(cell.key for cell in stored), *self._pending})
            keys = [own for own in keys if key is None or own > key]
            for place in range(0, len(keys), size):
                yield keys[place : place + size]

    def _measured_since(self, device_ids: Collection[DeviceId]) -> dict[PairKey, list[PairCell]]:
        """Return the cells of sessions whose points are not computed yet, the newest first."""
        by_matrix: defaultdict[MatrixId, list[DeviceId]] = defaultdict(list)
        for session in pending_sessions(self._connection, device_ids):
            by_matrix[session.matrix_id].append(session.device_id)
        found: dict[PairKey, list[PairCell]] = {}
        for matrix_id, own in sorted(by_matrix.items(), reverse=True):
            if self._until is None or matrix_id <= self._until:
                for cell in measured_pairs(
                    self._connection, matrix_id, own, model=self._model, since=self._since
                ):
                    found.setdefault(cell.key, []).append(cell)
        return found

    def compared(self, keys: Sequence[PairKey], *, across_controls: bool) -> Iterator[list[SpeedupInputs]]:
        """Yield the comparisons of each pair, the newest first; pairs without a ratio are left out."""
        cells = {key: self._cells(key) for key in keys}
        inputs = _inputs(self._connection, [cell for own in cells.values() for cell in own])
        for own in cells.values():
            compared = [
                inputs[cell.cell_id]
                for cell in own
                # Without a block of both sides there is no ratio yet.
                if cell.cell_id in inputs
                and inputs[cell.cell_id].compare(across_controls=across_controls)[0].ratio is not None
            ]
            if compared:
                yield compared

    def _cells(self, key: PairKey) -> list[PairCell]:
        stored = cells_of_pair(
            self._connection, key, until=self._until, since=self._since, limit=self._pooled
        )
        by_id = {cell.cell_id: cell for cell in (*stored, *self._pending.get(key, ()))}
        newest_first = sorted(by_id.values(), key=lambda cell: (-cell.matrix_id, cell.cell_id))
        return newest_first[: self._pooled]


def _inputs(connection: Connection, cells: Sequence[PairCell]) -> dict[CellId, SpeedupInputs]:
    """Return what was measured of cells and of their baselines."""
    by_matrix: defaultdict[MatrixId, list[CellId]] = defaultdict(list)
    for cell in cells:
        by_matrix[cell.matrix_id].append(cell.cell_id)
    return {
        inputs.candidate.cell_id: inputs
        for matrix_id, cell_ids in by_matrix.items()
        for inputs in comparisons_of(
            connection,
            matrices.get_matrix(connection, matrix_id),
            matrices.cells_by_id(connection, cell_ids),
        )
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Versions:
    """What must be equal in matrices whose rounds are one sample."""

    baseline: tuple[object, ...]
    candidate: tuple[object, ...]
    #: Of the rounds that count.
    builds: frozenset[int]
    control_levels: frozenset[int]


def _pooled(
    connection: Connection, compared: Sequence[SpeedupInputs], *, across_controls: bool
) -> SpeedupInputs:
    """Return the comparison of one pair over matrices of equal versions; `compared` is the newest first."""
    if len(compared) == 1:
        return compared[0]
    builds = builds_of(connection, {m.facts_id for inputs in compared for side in inputs.sides for m in side})
    groups: dict[_Versions, list[SpeedupInputs]] = {}
    rounds: dict[_Versions, int] = {}
    for inputs in compared:
        own = replace(inputs, builds=builds)
        pairs = own.compare(across_controls=across_controls)[1]
        sides = [side for pair in pairs for side in (pair.baseline, pair.candidate) if side is not None]
        versions = _Versions(
            baseline=(own.baseline.variant_id, own.baseline.program_id),
            candidate=(own.candidate.variant_id, own.candidate.program_id),
            builds=frozenset(_build(side.facts_id, builds) for side in sides),
            control_levels=frozenset(int(side.control_level) for side in sides),
        )
        groups.setdefault(versions, []).append(own)
        rounds[versions] = rounds.get(versions, 0) + len({pair.round for pair in pairs})
    enough = (versions for versions in groups if rounds[versions] >= MIN_ROUNDS)
    return _one_after_another(groups[next(enough, max(groups, key=lambda versions: rounds[versions]))])


def _build(facts_id: FactsId | None, builds: dict[FactsId, int]) -> int:
    return 0 if facts_id is None else builds.get(facts_id, 0)


def _one_after_another(compared: Sequence[SpeedupInputs]) -> SpeedupInputs:
    """Return the rounds of several matrices as those of the newest one, numbered on."""
    newest = compared[0]
    sides: tuple[list[Measurement], list[Measurement]] = ([], [])
    duplicates: list[Measurement] = []
    metrics = {cell_id: dict(own) for cell_id, own in newest.metrics.items()}
    ends = 0
    for inputs in compared:
        first = ends
        cells = (newest.baseline.cell_id, newest.candidate.cell_id)
        for side, values, cell, own_cell in zip(
            sides, inputs.sides, cells, (inputs.baseline.cell_id, inputs.candidate.cell_id), strict=True
        ):
            side += [replace(value, round=first + value.round) for value in values]
            ends = max([ends, *(first + value.round + 1 for value in values)])
            own = inputs.metrics.get(own_cell, {})
            metrics.setdefault(cell, {}).update(
                {(first + round, block, repeat): printed for (round, block, repeat), printed in own.items()}
            )
        duplicates += [replace(value, round=first + value.round) for value in inputs.duplicates]
    numbers = tuple(matrix_id for inputs in compared for matrix_id in inputs.matrices)
    return replace(newest, sides=sides, duplicates=duplicates, metrics=metrics, matrices=numbers)


def _pair_at(connection: Connection, cell_id: CellId) -> PairKey:
    cell = matrices.find_cell(connection, cell_id)
    if cell is not None:
        for pair in measured_pairs(connection, cell.matrix_id, [cell.device_id], cell_id=cell_id):
            return pair.key
        if (key := find_pair(connection, cell_id)) is not None:
            return key
    raise NotFound(f"nothing was compared in cell {cell_id}", hint=AFTER_HINT)
