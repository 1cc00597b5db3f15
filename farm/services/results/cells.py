"""Summarize the measurements of each cell of a matrix, over its rounds."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, FactsId, MatrixId
from farm.core.devices.device import DeviceFacts
from farm.core.results.speedup import summarize_cell
from farm.core.runs.measurement import CellSummary, Metric, Quality
from farm.services.files.harnesses import adapter_of
from farm.services.matrices.views import first_page_size
from farm.store.devices import devices
from farm.store.files import programs
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CellRow, get_matrix
from farm.store.results.measurements import MeasurementSummary, list_summaries
from farm.store.results.provenance import builds_of
from farm.wire.documents.results.results import MAX_RESULTS_PAGE, MetricView, ResultView


def list_results(
    connection: Connection, matrix_id: MatrixId, *, after: int = -1, limit: int = MAX_RESULTS_PAGE
) -> list[ResultView]:
    """Return a page of the cells of a matrix, by their indexes: those behind one, and none at the end.

    There are fewer than asked for where a matrix has many rounds. Raises like `get_matrix`.
    """
    size = min(limit, first_page_size(get_matrix(connection, matrix_id)))
    cells = matrices.page_of_cells(connection, matrix_id, after=after, limit=size)
    if not cells:
        return []
    facts = {row.device_id: row.facts for row in devices.list_devices(connection)}
    covers = {
        program_id: adapter_of(programs.get_program(connection, program_id)).clock_covers
        for program_id in {cell.program_id for cell in cells}
    }
    measured: defaultdict[CellId, list[MeasurementSummary]] = defaultdict(list)
    for summary in list_summaries(connection, matrix_id, of=(cells[0].index, cells[-1].index)):
        measured[summary.cell_id].append(summary)
    builds = {cell_id: builds_of(connection, {e.facts_id for e in own}) for cell_id, own in measured.items()}
    return [
        _view(cell, measured[cell.cell_id], builds.get(cell.cell_id, {}), facts, covers[cell.program_id])
        for cell in cells
    ]


def _view(
    cell: CellRow,
    measured: Sequence[MeasurementSummary],
    builds: Mapping[FactsId, int],
    facts: Mapping[DeviceId, DeviceFacts | None],
    clock_covers: str,
) -> ResultView:
    rounds = _of_rounds(measured)
    fit = _counted_rounds(rounds)
    counted = _of_one_build(fit, builds)
    device_facts = facts.get(cell.device_id)
    return ResultView.of(
        cell,
        device_model=device_facts.device_model if device_facts else None,
        soc=device_facts.soc if device_facts else None,
        virtual=device_facts.virtual if device_facts else False,
        clock_covers=clock_covers,
        kind=counted[-1].kind if counted else None,
        time=_summary([summary.value_ns for summary in counted]),
        p90_ns=_median(summary.p90_ns for summary in counted),
        scatter=_median(summary.scatter for summary in counted),
        metrics=_metrics(counted),
        rounds_by_quality=dict(Counter(str(summary.quality) for summary in rounds)),
        counted=", ".join(dict.fromkeys(str(summary.quality) for summary in counted)) or None,
        other_builds=len(fit) - len(counted),
        accelerator=counted[-1].accelerator if counted else None,
        proof=counted[-1].proof if counted else None,
    )


def _of_rounds(measured: Sequence[MeasurementSummary]) -> list[MeasurementSummary]:
    """Return one measurement for each round: the latest repeat that is valid, or else the latest."""
    best: dict[int, MeasurementSummary] = {}
    for summary in sorted(measured, key=lambda summary: (summary.quality is Quality.VALID, summary.repeat)):
        best[summary.round] = summary
    return [best[number] for number in sorted(best)]


def _counted_rounds(rounds: Sequence[MeasurementSummary]) -> list[MeasurementSummary]:
    """Return the valid rounds, or all if there is none; of one kind, the one that most are of."""
    valid = [summary for summary in rounds if summary.quality is Quality.VALID] or list(rounds)
    kinds = Counter(summary.kind for summary in valid).most_common(1)
    return [summary for summary in valid if summary.kind is kinds[0][0]]


def _of_one_build(
    rounds: Sequence[MeasurementSummary], builds: Mapping[FactsId, int]
) -> list[MeasurementSummary]:
    """Return the rounds on the build of the phone that most are of, the later of equals."""
    numbers = [builds.get(summary.facts_id, 0) if summary.facts_id is not None else 0 for summary in rounds]
    most = max(numbers, key=lambda number: (numbers.count(number), number), default=0)
    return [summary for summary, number in zip(rounds, numbers, strict=True) if number == most]


def _summary(values: Sequence[float]) -> CellSummary | None:
    return summarize_cell(values) if values else None


def _median(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return median(present) if present else None


def _metrics(counted: Sequence[MeasurementSummary]) -> tuple[MetricView, ...]:
    by_name: defaultdict[str, list[Metric]] = defaultdict(list)
    for summary in counted:
        for metric in summary.metrics:
            by_name[metric.name].append(metric)
    return tuple(
        MetricView.of(metrics[-1], level=summarize_cell([metric.value for metric in metrics]))
        for metrics in by_name.values()
    )
