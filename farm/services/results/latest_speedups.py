"""Compute the speedup of each pair over all matrices of equal versions, however many rounds each has."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, FactsId, SeriesId
from farm.core.errors import NotFound
from farm.core.runs.measurement import MIN_ROUNDS
from farm.services.matrices.views import first_page_size
from farm.services.results.speedups import (
    AFTER_HINT,
    PAGE,
    SpeedupInputs,
    candidate_filter,
    comparisons_of,
    devices_by_id,
    speedup_views,
    with_priors,
)
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CandidateFilter, Matrix, page_of_candidates
from farm.store.results.measurements import Measurement
from farm.store.results.provenance import builds_of
from farm.wire.documents.matrices.matrices import SpeedupView

#: Device, model, series of baseline and candidate, and whether it is a replica: what is compared.
_Pair = tuple[DeviceId, str, SeriesId, SeriesId, bool]


class _Page:
    """The first pairs behind a place, each with its comparisons, the newest first."""

    def __init__(self, after: _Pair | None, limit: int, device_ids: Collection[DeviceId]) -> None:
        self._after = after
        self._known = device_ids
        self._limit = limit
        self._last: _Pair | None = None
        self._found: dict[_Pair, list[SpeedupInputs]] = {}

    def has_room_for(self, pair: _Pair) -> bool:
        is_behind = self._after is None or pair > self._after
        return is_behind and (self._last is None or pair <= self._last)

    def put(self, pair: _Pair, inputs: SpeedupInputs) -> None:
        self._found.setdefault(pair, []).append(inputs)
        if len(self._found) >= 2 * self._limit:
            self._found = dict(sorted(self._found.items())[: self._limit])
            self._last = max(self._found)

    def devices(self, among: CandidateFilter) -> CandidateFilter:
        """Return the devices that can still have any of them."""
        if self._after is None and self._last is None:
            return among
        # Not left to the database: by its locale texts may come in another order than here.
        first = "" if self._after is None else self._after[0]
        there = [
            device_id
            for device_id in self._known
            if device_id >= first and (self._last is None or device_id <= self._last[0])
        ]
        return replace(among, devices=there)

    def comparisons(self) -> list[list[SpeedupInputs]]:
        return [self._found[pair] for pair in sorted(self._found)[: self._limit]]


def list_latest_speedups(
    connection: Connection,
    *,
    device: str | None = None,
    model: str | None = None,
    across_controls: bool = False,
    after: CellId | None = None,
    limit: int = PAGE,
) -> list[SpeedupView]:
    """Return the speedup of each pair over matrices of equal versions; arguments as for one matrix.

    Versions are file, program, build and control level. Where the newest ones have too few rounds for an
    interval, the newest that have enough count, or those with the most: one round hides no hundred.

    Raises like `list_speedups`.
    """
    among = candidate_filter(connection, device=device, model=model)
    device_by_id = devices_by_id(connection)
    page = _Page(None if after is None else _pair_at(connection, after), limit, device_by_id)
    for matrix in matrices.list_matrices(connection):
        for inputs in _compare_page(connection, matrix, among, page):
            pair = _pair(inputs)
            if pair is None or not page.has_room_for(pair):
                continue
            # Without a block of both sides there is no ratio yet.
            if inputs.compare(across_controls=across_controls)[0].ratio is not None:
                page.put(pair, inputs)
    chosen = [
        _pooled(connection, compared, across_controls=across_controls) for compared in page.comparisons()
    ]
    return speedup_views(
        connection, with_priors(connection, chosen), device_by_id, across_controls=across_controls
    )


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
        rounds[versions] = rounds.get(versions, 0) + len(pairs)
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
                {(first + round, repeat): printed for (round, repeat), printed in own.items()}
            )
        duplicates += [replace(value, round=first + value.round) for value in inputs.duplicates]
    numbers = tuple(matrix_id for inputs in compared for matrix_id in inputs.matrices)
    return replace(newest, sides=sides, duplicates=duplicates, metrics=metrics, matrices=numbers)


def _compare_page(
    connection: Connection, matrix: Matrix, among: CandidateFilter, page: _Page
) -> Iterator[SpeedupInputs]:
    after, size = -1, first_page_size(matrix)
    while candidates := page_of_candidates(
        connection, matrix.matrix_id, page.devices(among), after=after, limit=size
    ):
        yield from comparisons_of(connection, matrix, candidates)
        after = candidates[-1].index


def _pair(compared: SpeedupInputs) -> _Pair | None:
    """Return the pair; None where a side was never measured: there is nothing to compare yet."""
    baseline, candidate = compared.series
    if baseline is None or candidate is None:
        return None
    cell = compared.candidate
    return cell.device_id, cell.model or "", baseline, candidate, cell.replica > 1


def _pair_at(connection: Connection, cell_id: CellId) -> _Pair:
    cell = matrices.find_cell(connection, cell_id)
    if cell is not None:
        matrix = matrices.get_matrix(connection, cell.matrix_id)
        for compared in comparisons_of(connection, matrix, [cell]):
            if pair := _pair(compared):
                return pair
    raise NotFound(f"nothing was compared in cell {cell_id}", hint=AFTER_HINT)
