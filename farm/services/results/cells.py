"""Summarize the measurements of each cell of a matrix, over its rounds."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, FactsId, MatrixId
from farm.core.results.counted_rounds import best_of_rounds, rounds_of_one_build, rounds_of_one_kind
from farm.core.results.statistics.cell_summary import summarize_cell
from farm.core.results.statistics.sessions import SessionSpread
from farm.core.runs.measurement import CellSummary
from farm.services.files.harnesses import adapter_of
from farm.services.matrices.cell_setups import cell_setups
from farm.services.matrices.cell_views import metric_views
from farm.services.matrices.views import first_page_size
from farm.services.results.past_pairs import SessionKey, earlier_sessions
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CellRow, get_matrix
from farm.store.results.measurements import MeasurementSummary, list_summaries
from farm.store.results.provenance import builds_of
from farm.wire.documents.matrices.cell_setup import CellSetup
from farm.wire.documents.results.results import MAX_RESULTS_PAGE, ResultView


def list_results(
    connection: Connection, matrix_id: MatrixId, *, after: int = -1, limit: int = MAX_RESULTS_PAGE
) -> list[ResultView]:
    """Return a page of the cells of a matrix, by their indexes: those behind one, and none at the end.

    There are fewer than asked for where a matrix has many rounds. Raises like `get_matrix`.
    """
    matrix = get_matrix(connection, matrix_id)
    size = min(limit, first_page_size(matrix))
    cells = matrices.page_of_cells(connection, matrix_id, after=after, limit=size)
    if not cells:
        return []
    device_by_id = devices.devices_by_id(connection, {cell.device_id for cell in cells})
    setups = cell_setups(connection, cells)
    covers = {program_id: adapter_of(program).clock_covers for program_id, program in setups.programs.items()}
    measured: defaultdict[CellId, list[MeasurementSummary]] = defaultdict(list)
    for summary in list_summaries(connection, matrix_id, of=(cells[0].index, cells[-1].index)):
        measured[summary.cell_id].append(summary)
    snapshots: defaultdict[DeviceId, set[FactsId | None]] = defaultdict(set)
    for cell in cells:
        snapshots[cell.device_id] |= {summary.facts_id for summary in measured[cell.cell_id]}
    builds = {device_id: builds_of(connection, facts_ids) for device_id, facts_ids in snapshots.items()}
    setup_by_cell = {cell.cell_id: setups.setup(cell) for cell in cells}
    keys = {_session_key(own[-1], setup_by_cell[cell_id]) for cell_id, own in measured.items() if own}
    # Where cells are compared, their partners of the same round say more.
    is_alone = matrix.spec.baseline is None
    sessions = earlier_sessions(connection, keys, before=matrix_id) if is_alone else {}
    return [
        _view(
            cell,
            setup_by_cell[cell.cell_id],
            measured[cell.cell_id],
            sessions,
            builds[cell.device_id],
            device_by_id[cell.device_id],
            covers[cell.program_id],
        )
        for cell in cells
    ]


def _view(
    cell: CellRow,
    setup: CellSetup,
    measured: Sequence[MeasurementSummary],
    sessions: Mapping[SessionKey, SessionSpread],
    builds: Mapping[FactsId, int],
    device: Device,
    clock_covers: str,
) -> ResultView:
    rounds = best_of_rounds(measured)
    fit = rounds_of_one_kind(rounds)
    counted = rounds_of_one_build(fit, builds)
    facts = device.facts
    return ResultView.of(
        cell,
        setup,
        device_label=device.label,
        device_model=facts.device_model if facts else None,
        soc=facts.soc if facts else None,
        virtual=facts.virtual if facts else False,
        clock_covers=clock_covers,
        kind=counted[-1].kind if counted else None,
        time=_summary([summary.value_ns for summary in counted]),
        sessions=sessions.get(_session_key(counted[-1], setup)) if counted else None,
        min_ns=min((summary.min_ns for summary in counted if summary.min_ns is not None), default=None),
        p90_ns=_median(summary.p90_ns for summary in counted),
        scatter=_median(summary.scatter for summary in counted),
        metrics=metric_views([summary.metrics for summary in counted]),
        rounds_by_quality=dict(Counter(str(summary.quality) for summary in rounds)),
        counted=", ".join(dict.fromkeys(str(summary.quality) for summary in counted)) or None,
        other_builds=len(fit) - len(counted),
        accelerator=counted[-1].accelerator if counted else None,
        proof=counted[-1].proof if counted else None,
    )


def _session_key(measured: MeasurementSummary, setup: CellSetup) -> SessionKey:
    return measured.series_id, setup.variant_digest, setup.program_digest


def _summary(values: Sequence[float]) -> CellSummary | None:
    return summarize_cell(values) if values else None


def _median(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return median(present) if present else None
