"""Compute speedups per device, from the accepted measurements of a matrix."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, FactsId, MatrixId, SeriesId
from farm.core.base.spec_errors import name_hint
from farm.core.errors import NotFound
from farm.core.results.metric_comparison import MetricComparison, MetricsByBlock, compare_metrics
from farm.core.results.pairing import RoundPair, block_of, paired_rounds, used_pairs
from farm.core.results.speedup import speedup
from farm.services.devices.views import device_named
from farm.services.matrices.cell_setups import CellSetups, cell_setups
from farm.services.matrices.views import first_page_size
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.files import variants as variant_store
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CandidateFilter, CellRow, Matrix, get_matrix, page_of_candidates
from farm.store.results import measurements
from farm.store.results.measurements import Measurement
from farm.store.results.provenance import builds_of
from farm.wire.documents.matrices.matrices import SpeedupView

#: For queries of the rows behind another one.
AFTER_HINT = "`after` is the cell_id of the last comparison on the page before"
#: Of comparisons that are shown together there are so many at most.
PAGE = 2000
#: Device, model, series of baseline and candidate, and whether it is a replica: what is compared.
_Pair = tuple[DeviceId, str, SeriesId, SeriesId, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedupInputs:
    """A candidate with what was measured of it and of its baseline, not compared yet."""

    matrix: Matrix
    baseline: CellRow
    candidate: CellRow
    #: Of baseline and candidate, oldest first.
    sides: tuple[Sequence[Measurement], Sequence[Measurement]]
    builds: Mapping[FactsId, int]
    setups: CellSetups
    #: By cell; empty unless the matrix names metrics.
    metrics: Mapping[CellId, MetricsByBlock]

    @property
    def series(self) -> tuple[SeriesId | None, SeriesId | None]:
        """Return the series that are compared, in any matrix; None for a side without a measurement."""
        baseline, candidate = (side[-1].series_id if side else None for side in self.sides)
        return baseline, candidate

    def view(self, device: Device, *, across_controls: bool = False) -> SpeedupView:
        """Return the comparison on its device."""
        pairs, excluded = paired_rounds(*self.sides, builds=self.builds, across_controls=across_controls)
        result = speedup(pairs, excluded=excluded, margin=self.matrix.spec.equivalence_margin)
        until = max((m.measured_at for side in self.sides for m in side), default=self.matrix.created_at)
        facts = device.facts
        return SpeedupView.of(
            result,
            self.matrix,
            self.candidate,
            self.setups.setup(self.candidate),
            baseline_cell_id=self.baseline.cell_id,
            device_label=device.label,
            device_model=facts.device_model if facts else None,
            soc=facts.soc if facts else None,
            baseline=self.baseline.label,
            candidate=self.candidate.label,
            baseline_setup=self.setups.setup(self.baseline),
            speedup=result.ratio,
            excluded=len(result.excluded),
            aa=self.candidate.replica > 1,
            virtual=facts.virtual if facts else False,
            metrics=self._compare_metrics(used_pairs(pairs, result.excluded)),
            measured_until=until,
        )

    def _compare_metrics(self, pairs: Sequence[RoundPair]) -> tuple[MetricComparison, ...]:
        return tuple(
            compare_metrics(
                self.matrix.spec.metrics,
                [block_of(pair) for pair in pairs],
                baseline=self.metrics.get(self.baseline.cell_id, {}),
                candidate=self.metrics.get(self.candidate.cell_id, {}),
            )
        )


def list_speedups(
    connection: Connection,
    matrix_id: MatrixId,
    *,
    device: str | None = None,
    model: str | None = None,
    across_controls: bool = False,
    after: CellId | None = None,
    limit: int = PAGE,
) -> list[SpeedupView]:
    """Return a page of the comparisons of a matrix, by the places of their candidates; none at the end.

    Args:
        device: only on this device: its id, its label, or the beginning of either.
        model: only of this model.
        across_controls: whether rounds count in which the phone was controlled in different degrees.
        after: only those behind the one of this candidate.
        limit: so many at most, and fewer where a matrix has many rounds.

    Raises:
        NotFound: there is no such matrix, device, model or candidate.
        InvalidInput: several devices begin so.
    """
    device_id = None if device is None else device_named(connection, device).device_id
    if model is not None:
        check_model(connection, model)
    matrix = get_matrix(connection, matrix_id)
    behind = -1 if after is None else _candidate(connection, matrix_id, after).index
    among = CandidateFilter(device_id=device_id, model=model)
    size = min(limit, first_page_size(matrix))
    candidates = page_of_candidates(connection, matrix_id, among, after=behind, limit=size)
    device_by_id = devices_by_id(connection)
    return [
        inputs.view(device_by_id[inputs.candidate.device_id], across_controls=across_controls)
        for inputs in comparisons_of(connection, matrix, candidates)
    ]


def devices_by_id(connection: Connection) -> dict[DeviceId, Device]:
    """Return each device, as it is now."""
    return {device.device_id: device for device in devices.list_devices(connection)}


def comparisons_of(
    connection: Connection, matrix: Matrix, candidates: Sequence[CellRow]
) -> Iterator[SpeedupInputs]:
    """Yield the candidates of a matrix with their baselines; those without one are left out."""
    wanted = {cell.baseline_index for cell in candidates if cell.baseline_index is not None}
    baselines = {cell.index: cell for cell in matrices.cells_at(connection, matrix.matrix_id, wanted)}
    both = {cell.cell_id for cell in (*candidates, *baselines.values())}
    measured: defaultdict[CellId, list[Measurement]] = defaultdict(list)
    for measurement in measurements.accepted_of_cells(connection, both):
        measured[measurement.cell_id].append(measurement)
    snapshots: defaultdict[DeviceId, set[FactsId | None]] = defaultdict(set)
    for cell in (*candidates, *baselines.values()):
        snapshots[cell.device_id] |= {summary.facts_id for summary in measured.get(cell.cell_id, ())}
    builds = {device_id: builds_of(connection, facts_ids) for device_id, facts_ids in snapshots.items()}
    setups = cell_setups(connection, matrix, [*candidates, *baselines.values()])
    metrics = measurements.metrics_of_cells(connection, both) if matrix.spec.metrics else {}
    for cell in candidates:
        if cell.baseline_index is not None:
            baseline = baselines[cell.baseline_index]
            yield SpeedupInputs(
                matrix=matrix,
                baseline=baseline,
                candidate=cell,
                sides=(measured.get(baseline.cell_id, ()), measured.get(cell.cell_id, ())),
                builds=builds[cell.device_id],
                setups=setups,
                metrics=metrics,
            )


def _candidate(connection: Connection, matrix_id: MatrixId, cell_id: CellId) -> CellRow:
    cell = matrices.find_cell(connection, cell_id)
    if cell is None or cell.matrix_id != matrix_id:
        raise NotFound(f"matrix {matrix_id} has no cell {cell_id}", hint=AFTER_HINT)
    return cell


def check_model(connection: Connection, model: str) -> None:
    """Raise NotFound where no variant is of a model."""
    models = {variant.manifest.model for variant in variant_store.list_variants(connection)}
    if model not in models:
        raise NotFound(f"no model `{model}`", hint=name_hint(model, models) or "the farm has no models yet")


class _Page:
    """The first pairs behind a place, each with the comparison that came first."""

    def __init__(self, after: _Pair | None, limit: int, device_ids: Collection[DeviceId]) -> None:
        self._after = after
        self._known = device_ids
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
    """Return for each pair the speedup of the newest matrix with a usable round; arguments as for one matrix.

    Raises like `list_speedups`.
    """
    device_id = None if device is None else device_named(connection, device).device_id
    if model is not None:
        check_model(connection, model)
    among = CandidateFilter(device_id=device_id, model=model)
    device_by_id = devices_by_id(connection)
    page = _Page(None if after is None else _pair_at(connection, after), limit, device_by_id)
    for matrix in matrices.list_matrices(connection):
        for inputs in _compare_page(connection, matrix, among, page):
            pair = _pair(inputs)
            if pair is None or not page.has_room_for(pair):
                continue
            view = inputs.view(device_by_id[inputs.candidate.device_id], across_controls=across_controls)
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
