"""The newest comparison of each pair of series over all matrices, page by page.

Pages go by device, model and series, which a pair keeps whatever is measured meanwhile: pages of a farm at
work join without gaps. Of what lies behind a page, no more is in memory than another page.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, SeriesId
from farm.core.errors import NotFound
from farm.services.devices.views import device_named
from farm.services.matrices.views import first_page_size
from farm.services.results.speedups import (
    AFTER_HINT,
    PAGE,
    SpeedupInputs,
    check_model,
    comparisons_of,
    facts_of_devices,
)
from farm.store.matrices import matrices
from farm.store.matrices.comparison_pages import CandidateFilter, page_of_candidates
from farm.store.matrices.matrices import Matrix
from farm.wire.documents.matrices.matrices import SpeedupView

#: Device, model, series of baseline and candidate, and whether it is a twin: what is compared.
_Pair = tuple[DeviceId, str, SeriesId, SeriesId, bool]


class _Page:
    """The first pairs behind a place, each with the comparison that came first."""

    def __init__(self, after: _Pair | None, limit: int, known: Collection[DeviceId]) -> None:
        self._after = after
        self._known = known
        self._limit = limit
        self._last: _Pair | None = None
        self._found: dict[_Pair, SpeedupView] = {}

    def has_room_for(self, pair: _Pair) -> bool:
        is_behind = self._after is None or pair > self._after
        return is_behind and pair not in self._found and (self._last is None or pair <= self._last)

    def put(self, pair: _Pair, view: SpeedupView) -> None:
        self._found[pair] = view
        if len(self._found) >= 2 * self._limit:
            self._found = dict(sorted(self._found.items())[: self._limit])
            self._last = max(self._found)

    def devices(self, among: CandidateFilter) -> CandidateFilter:
        """Where there still can be any of them."""
        if self._after is None and self._last is None:
            return among
        # Not left to the database: by its locale texts may come in another order than here.
        first = "" if self._after is None else self._after[0]
        there = [
            each for each in self._known if each >= first and (self._last is None or each <= self._last[0])
        ]
        return replace(among, devices=there)

    def views(self) -> list[SpeedupView]:
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
    """Of each pair, what the newest matrix with any usable round says; arguments as for one matrix.

    Raises:
        NotFound: there is no such device, model or candidate.
        InvalidInput: several devices begin so.
    """
    device_id = None if device is None else device_named(connection, device).device_id
    if model is not None:
        check_model(connection, model)
    among = CandidateFilter(device_id=device_id, model=model)
    facts = facts_of_devices(connection)
    page = _Page(None if after is None else _pair_at(connection, after), limit, facts)
    for matrix in matrices.list_matrices(connection):
        for each in _compare_page(connection, matrix, among, page):
            pair = _pair(each)
            if pair is None or not page.has_room_for(pair):
                continue
            view = each.view(facts.get(each.candidate.device_id), across_controls=across_controls)
            if view.speedup is not None:
                page.put(pair, view)
    return page.views()


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
    """None where a side was never measured: there is nothing to compare yet."""
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
