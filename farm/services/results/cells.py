"""What each cell of a matrix measured, over its rounds."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from statistics import median

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, FactsId, MatrixId
from farm.core.devices.device import DeviceFacts
from farm.core.results.cell_summary import summarize_cell
from farm.core.runs.measurement import Metric, Quality
from farm.services.devices.software_updates import builds_of
from farm.services.files.adapters import adapter_of
from farm.services.matrices.views import first_page_size
from farm.store.devices import devices
from farm.store.files import programs
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CellRow, get_matrix
from farm.store.results.summaries import MeasurementSummary, list_summaries
from farm.wire.documents.results.results import MAX_RESULTS_PAGE, CellSummaryView, MetricView, ResultView


def list_results(
    connection: Connection, matrix_id: MatrixId, *, after: int = -1, limit: int = MAX_RESULTS_PAGE
) -> list[ResultView]:
    """A page of the cells of a matrix, by their indexes: those behind one, and none at the end.

    There are fewer than asked for where a matrix has many rounds.

    Raises:
        NotFound: there is no such matrix.
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
    for figures in list_summaries(connection, matrix_id, of=(cells[0].index, cells[-1].index)):
        measured[figures.cell_id].append(figures)
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
    known = facts.get(cell.device_id)
    return ResultView(
        cell_id=cell.cell_id,
        index=cell.index,
        device_id=cell.device_id,
        device_model=known.device_model if known else None,
        soc=known.soc if known else None,
        virtual=known.virtual if known else False,
        label=cell.label,
        backend=cell.backend,
        clock_covers=clock_covers,
        kind=counted[-1].kind if counted else None,
        time=_level([figures.value_ns for figures in counted]),
        p90_ns=_median(figures.p90_ns for figures in counted),
        scatter=_median(figures.scatter for figures in counted),
        metrics=_metrics(counted),
        rounds_by_quality=dict(Counter(str(figures.quality) for figures in rounds)),
        counted=_qualities(counted),
        other_builds=len(fit) - len(counted),
        accelerator=counted[-1].accelerator if counted else None,
        proof=counted[-1].proof if counted else None,
    )


def _of_rounds(measured: Sequence[MeasurementSummary]) -> list[MeasurementSummary]:
    """One measurement for each round: the latest repeat that is valid, or else the latest."""
    best: dict[int, MeasurementSummary] = {}
    for figures in sorted(measured, key=lambda each: (each.quality is Quality.VALID, each.repeat)):
        best[figures.round] = figures
    return [best[number] for number in sorted(best)]


def _counted_rounds(rounds: Sequence[MeasurementSummary]) -> list[MeasurementSummary]:
    """The valid rounds, or where there is none all of them; of one kind, the one that most are of."""
    valid = [figures for figures in rounds if figures.quality is Quality.VALID] or list(rounds)
    kinds = Counter(figures.kind for figures in valid).most_common(1)
    return [figures for figures in valid if figures.kind is kinds[0][0]]


def _of_one_build(
    rounds: Sequence[MeasurementSummary], builds: Mapping[FactsId, int]
) -> list[MeasurementSummary]:
    """The rounds on the build of the phone that most are of, the later of equals."""
    numbers = [builds.get(each.facts_id, 0) if each.facts_id is not None else 0 for each in rounds]
    most = max(numbers, key=lambda number: (numbers.count(number), number), default=0)
    return [each for each, number in zip(rounds, numbers, strict=True) if number == most]


def _qualities(counted: Sequence[MeasurementSummary]) -> str | None:
    return ", ".join(dict.fromkeys(str(figures.quality) for figures in counted)) or None


def _level(values: Sequence[float]) -> CellSummaryView | None:
    return CellSummaryView(**asdict(summarize_cell(values))) if values else None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _metrics(counted: Sequence[MeasurementSummary]) -> tuple[MetricView, ...]:
    by_name: defaultdict[str, list[Metric]] = defaultdict(list)
    for figures in counted:
        for metric in figures.metrics:
            by_name[metric.name].append(metric)
    return tuple(
        MetricView(
            name=name,
            unit=found[-1].unit,
            better=found[-1].better,
            level=CellSummaryView(**asdict(summarize_cell([metric.value for metric in found]))),
        )
        for name, found in by_name.items()
    )
