"""Describe standing matrices: what is measured of each, what is missing, and why."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, Digest, MatrixId
from farm.core.errors import InvalidInput, NotFound
from farm.core.matrices.matrix import cell_label_by_axes
from farm.core.matrices.standing import Coverage
from farm.database.transaction import Tx
from farm.services.matrices.standing.coverage import WantedCell, missing_reasons, wanted_cells
from farm.services.matrices.submit import MatrixExpansion, expand_matrix
from farm.store.devices.devices import device_labels
from farm.store.matrices import standing as standing_store
from farm.store.matrices.coverage import CellProgress, end_by_cell, progress_by_version
from farm.store.matrices.standing import StandingMatrix, expanding_devices, get_standing, last_matrix
from farm.wire.documents.matrices.standing import (
    CoverageCounts,
    CoveredDevice,
    StandingSummary,
    StandingView,
    UncoveredCell,
)

#: Cells without a measurement that are shown at most.
UNCOVERED_SHOWN = 1000


@dataclass(frozen=True, slots=True)
class _Covered:
    """A cell that a standing matrix is to have, and what it has of it."""

    wanted: WantedCell
    coverage: Coverage
    progress: CellProgress | None


def list_standing_summaries(connection: Connection) -> list[StandingSummary]:
    """Return the matrices that stand, by name."""
    return [_summary(standing) for standing in standing_store.list_standing(connection)]


def end(tx: Tx, standing_id: int) -> StandingSummary:
    """End a standing matrix. Its matrices that are under way go on. Raises like `get_standing`."""
    standing = get_standing(tx.connection, standing_id)
    standing_store.end_standing(tx, standing)
    return _summary(standing)


def standing_view(tx: Tx, standing_id: int) -> StandingView:
    """Return a standing matrix with its coverage. Raises like `get_standing`."""
    standing = get_standing(tx.connection, standing_id)
    try:
        expanded = expand_matrix(tx.connection, standing.spec.matrix)
    except (InvalidInput, NotFound) as error:
        summary = _summary(standing).model_copy(update={"problem": error.message})
        return StandingView.of(
            summary,
            cells=CoverageCounts(),
            devices=(),
            uncovered=(),
            more_uncovered=0,
            last_matrix_id=last_matrix(tx.connection, standing_id),
        )
    covered = _covered(tx, standing, expanded)
    rejected = expanded.expansion.rejected
    counts: defaultdict[DeviceId, Counter[str]] = defaultdict(Counter)
    for cell in covered:
        counts[cell.wanted.cell.device_id][cell.coverage] += 1
    for rejection in rejected:
        if rejection.device_id is not None:
            counts[rejection.device_id][Coverage.REJECTED] += 1
    labels = device_labels(tx.connection, counts)
    everywhere: Counter[str] = Counter({Coverage.REJECTED: sum(cell.device_id is None for cell in rejected)})
    uncovered = [cell for cell in covered if cell.coverage is not Coverage.MEASURED]
    shown = [
        *_uncovered(tx.connection, standing_id, expanded, uncovered[:UNCOVERED_SHOWN], labels),
        *(
            UncoveredCell(
                device_id=cell.device_id,
                device_label=None if cell.device_id is None else labels.get(cell.device_id),
                label=cell_label_by_axes(cell.key, expanded.varying),
                coverage=Coverage.REJECTED,
                reason=f"{cell.reason} ({cell.hint})" if cell.hint else cell.reason,
            )
            for cell in rejected
        ),
    ][:UNCOVERED_SHOWN]
    return StandingView.of(
        _summary(standing),
        cells=CoverageCounts(**sum(counts.values(), everywhere)),
        devices=tuple(
            CoveredDevice(
                device_id=device_id, device_label=labels.get(device_id), cells=CoverageCounts(**own)
            )
            for device_id, own in sorted(counts.items())
        ),
        uncovered=tuple(shown),
        more_uncovered=len(uncovered) + len(rejected) - len(shown),
        last_matrix_id=last_matrix(tx.connection, standing_id),
    )


def _summary(standing: StandingMatrix) -> StandingSummary:
    spec = standing.spec
    by = standing.submitted_by.removeprefix("user:")
    return StandingSummary.of(
        standing, harness=spec.matrix.harness_text, schedule=spec.schedule, submitted_by=by
    )


def _covered(tx: Tx, standing: StandingMatrix, expanded: MatrixExpansion) -> list[_Covered]:
    progress = progress_by_version(tx.connection, standing.standing_id)
    expanding = expanding_devices(tx.connection, sorted({cell.matrix_id for cell in progress.values()}))
    return [
        _Covered(
            wanted,
            _coverage(wanted, (own := progress.get(wanted.version_digest)), expanding),
            own,
        )
        for wanted in wanted_cells(expanded, standing.spec.skip, today=tx.now.date())
    ]


def _coverage(
    wanted: WantedCell, progress: CellProgress | None, expanding: set[tuple[MatrixId, DeviceId]]
) -> Coverage:
    if progress is not None:
        is_to_come = progress.cell_id is None and (progress.matrix_id, wanted.cell.device_id) in expanding
        if progress.open_jobs or is_to_come:
            return Coverage.QUEUED
        if progress.is_measured:
            return Coverage.MEASURED
    if wanted.skip is not None:
        return Coverage.SKIPPED
    return Coverage.MISSING if progress is None else Coverage.FAILED


def _uncovered(
    connection: Connection,
    standing_id: int,
    expanded: MatrixExpansion,
    cells: Sequence[_Covered],
    labels: dict[DeviceId, str],
) -> list[UncoveredCell]:
    failed: list[CellId] = [
        cell.progress.cell_id
        for cell in cells
        if cell.coverage is Coverage.FAILED and cell.progress and cell.progress.cell_id is not None
    ]
    ends = end_by_cell(connection, failed) if failed else {}
    missing = [cell.wanted for cell in cells if cell.coverage is Coverage.MISSING]
    reasons = missing_reasons(connection, standing_id, expanded, missing) if missing else {}
    return [
        UncoveredCell(
            device_id=cell.wanted.cell.device_id,
            device_label=labels.get(cell.wanted.cell.device_id),
            label=cell_label_by_axes(
                cell.wanted.cell.key, expanded.varying, replica=cell.wanted.cell.replica
            ),
            coverage=cell.coverage,
            reason=_reason(cell, ends, reasons),
            until=cell.wanted.skip.until if cell.coverage is Coverage.SKIPPED and cell.wanted.skip else None,
            matrix_id=None if cell.progress is None else cell.progress.matrix_id,
        )
        for cell in cells
    ]


def _reason(cell: _Covered, ends: dict[CellId, str], missing: dict[Digest, str]) -> str:
    match cell.coverage:
        case Coverage.SKIPPED if cell.wanted.skip is not None:
            return cell.wanted.skip.reason
        case Coverage.MISSING:
            return f"{missing[cell.wanted.version_digest]} (queued within a minute)"
        case Coverage.QUEUED if cell.progress is not None and cell.progress.open_jobs < cell.progress.jobs:
            return f"{cell.progress.jobs - cell.progress.open_jobs} of {cell.progress.jobs} jobs are over"
        case Coverage.QUEUED:
            return "its jobs are queued or run"
        case _:
            cell_id = None if cell.progress is None else cell.progress.cell_id
            return "it was cancelled before it was queued" if cell_id is None else ends.get(cell_id, "")
