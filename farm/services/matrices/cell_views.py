"""What came of the cells of a matrix: lines of a page, and documents that also say what the cells run."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, DeviceId, FactsId
from farm.core.results.counted_rounds import best_of_rounds, rounds_of_one_build, rounds_of_one_kind
from farm.core.results.pairing import block_key
from farm.core.results.statistics.cell_summary import summarize_cell
from farm.core.runs.measurement import COUNTED, Metric, Outcome
from farm.services.matrices.cell_setups import cell_setups
from farm.store.devices.devices import device_labels
from farm.store.jobs import jobs as job_store
from farm.store.jobs.counts import Tally
from farm.store.jobs.jobs import AlikeJobs
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CellRow, Matrix, PlacedCell
from farm.store.results import measurements
from farm.store.results.measurements import Measurement
from farm.store.results.provenance import builds_of
from farm.wire.documents.matrices.matrices import CellView
from farm.wire.documents.results.results import MetricView

#: Only what a person ended has neither message nor code.
_CANCELLED_BY_PERSON = "by a person"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLine:
    """A cell as a page shows it: where it is, and what came of it; the fields are those of `CellView`."""

    cell_id: CellId
    index: int
    device_id: DeviceId
    device_label: str | None
    label: str
    replica: int
    jobs: int
    jobs_by_outcome: Mapping[str, int]
    measurements_by_quality: Mapping[str, int]
    value_ns: float | None
    problems: Mapping[str, int]
    attempt_by_problem: Mapping[str, AttemptId]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """What was measured of some cells of one matrix."""

    measured: Mapping[CellId, Sequence[Measurement]]
    builds: Mapping[DeviceId, Mapping[FactsId, int]]

    def counted(self, cell: PlacedCell | CellRow) -> list[Measurement]:
        """Return the measurements that the results of a cell are taken over; none without a valid round."""
        measured = self.measured.get(cell.cell_id, ())
        builds = self.builds[cell.device_id]
        counted = rounds_of_one_build(rounds_of_one_kind(best_of_rounds(measured)), builds)
        return [measurement for measurement in counted if measurement.quality in COUNTED]


def cell_lines(connection: Connection, matrix: Matrix, *, after: int, limit: int) -> tuple[CellLine, ...]:
    """Return at most `limit` cells of a matrix behind an index."""
    cells = matrices.placed_cells(connection, matrix.matrix_id, after=after, limit=limit)
    return lines_of_cells(connection, cells)


def lines_of_cells(connection: Connection, cells: Sequence[PlacedCell]) -> tuple[CellLine, ...]:
    """Return these cells with what came of them."""
    return _lines(connection, cells, _read_measured(connection, cells)) if cells else ()


def cell_views(connection: Connection, matrix: Matrix, *, after: int, limit: int) -> tuple[CellView, ...]:
    """Return the same cells with what they run, and with the metrics that the matrix names."""
    cells = matrices.page_of_cells(connection, matrix.matrix_id, after=after, limit=limit)
    if not cells:
        return ()
    measured = _read_measured(connection, cells)
    baselines = {cell.baseline_index for cell in cells if cell.baseline_index is not None}
    baseline_labels = matrices.labels_by_index(connection, matrix.matrix_id, baselines)
    names = matrix.spec.metrics
    cell_ids = [cell.cell_id for cell in cells]
    metrics_by_cell = measurements.metrics_of_cells(connection, cell_ids) if names else {}
    setups = cell_setups(connection, cells)

    def metrics(cell: CellRow) -> tuple[MetricView, ...]:
        by_block = metrics_by_cell.get(cell.cell_id)
        if by_block is None:
            return ()
        return metric_views((by_block.get(block_key(value), ()) for value in measured.counted(cell)), names)

    return tuple(
        CellView.of(
            line,
            setups.setup(cell),
            baseline=None if cell.baseline_index is None else baseline_labels[cell.baseline_index],
            metrics=metrics(cell),
        )
        for cell, line in zip(cells, _lines(connection, cells, measured), strict=True)
    )


def metric_views(
    rounds: Iterable[Iterable[Metric]], names: Collection[str] | None = None
) -> tuple[MetricView, ...]:
    """Return each metric over the rounds of a cell; only those with these names, if they are given."""
    by_name: defaultdict[str, list[Metric]] = defaultdict(list)
    for metrics in rounds:
        for metric in metrics:
            if names is None or metric.name in names:
                by_name[metric.name].append(metric)
    return tuple(
        MetricView.of(metrics[-1], level=summarize_cell([metric.value for metric in metrics]))
        for metrics in by_name.values()
    )


def _read_measured(connection: Connection, cells: Sequence[PlacedCell] | Sequence[CellRow]) -> _Measured:
    measured: defaultdict[CellId, list[Measurement]] = defaultdict(list)
    for measurement in measurements.accepted_of_cells(connection, [cell.cell_id for cell in cells]):
        measured[measurement.cell_id].append(measurement)
    snapshots: defaultdict[DeviceId, set[FactsId | None]] = defaultdict(set)
    for cell in cells:
        snapshots[cell.device_id] |= {value.facts_id for value in measured.get(cell.cell_id, ())}
    builds = {device_id: builds_of(connection, facts_ids) for device_id, facts_ids in snapshots.items()}
    return _Measured(measured=measured, builds=builds)


def _lines(
    connection: Connection,
    cells: Sequence[PlacedCell] | Sequence[CellRow],
    measured: _Measured,
) -> tuple[CellLine, ...]:
    jobs_by_cell: defaultdict[CellId, list[AlikeJobs]] = defaultdict(list)
    for alike in job_store.alike_jobs_of_cells(connection, [cell.cell_id for cell in cells]):
        jobs_by_cell[alike.cell_id].append(alike)
    labels = device_labels(connection, measured.builds)
    return tuple(
        _line(
            cell,
            jobs_by_cell.get(cell.cell_id, ()),
            measured.measured.get(cell.cell_id, ()),
            measured.counted(cell),
            device_label=labels.get(cell.device_id),
        )
        for cell in cells
    )


def _line(
    cell: PlacedCell | CellRow,
    own: Sequence[AlikeJobs],
    measured: Sequence[Measurement],
    counted: Sequence[Measurement],
    *,
    device_label: str | None,
) -> CellLine:
    tally = Tally()
    problems: Counter[str] = Counter()
    attempt_by_problem: dict[str, AttemptId] = {}
    for alike in own:
        tally.add(alike.outcome or alike.state, alike.jobs, None)
        if alike.outcome not in (None, Outcome.SUCCEEDED):
            problem = f"{alike.outcome}: {alike.message or alike.code or _CANCELLED_BY_PERSON}"
            problems[problem] += alike.jobs
            if alike.last_attempt is not None:
                attempt_by_problem[problem] = max(
                    alike.last_attempt, attempt_by_problem.get(problem, alike.last_attempt)
                )
    qualities: dict[str, int] = {}
    for measurement in measured:
        quality = measurement.quality.value
        qualities[quality] = qualities.get(quality, 0) + 1
        for reason in measurement.quality_reasons:
            problem = f"{quality}: {reason}"
            problems[problem] += 1
            attempt_by_problem[problem] = measurement.attempt_id
    return CellLine(
        cell_id=cell.cell_id,
        index=cell.index,
        device_id=cell.device_id,
        device_label=device_label,
        label=cell.label,
        replica=cell.replica,
        jobs=tally.total,
        jobs_by_outcome=tally.jobs_by_outcome,
        measurements_by_quality=qualities,
        value_ns=median(measurement.value_ns for measurement in counted) if counted else None,
        problems=problems,
        attempt_by_problem=attempt_by_problem,
    )
