"""The cells of a matrix that get no jobs: those with the same reason together."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from farm.cli.shell.tables import Listing, name, prose
from farm.core.matrices.matrix import RejectionKind
from farm.presentation.labels import device_name, names_text
from farm.wire.documents.matrices.matrices import MatrixView, Rejection


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedCells:
    """Cells that get no jobs for the same reason, on the same devices."""

    kind: RejectionKind
    reason: str
    labels: Sequence[str]
    #: Empty: on every device.
    devices: Sequence[str]

    @property
    def result(self) -> str:
        """Return `not run` where a file is missing, else `no jobs`."""
        return "not run" if self.kind.wants_file else "no jobs"


def missing_cells(view: MatrixView) -> list[RejectedCells]:
    """Return the cells that are not run because a file is missing."""
    return _together([rejected for rejected in view.rejected_list if rejected.kind.wants_file])


not_run_table = Listing[RejectedCells](
    prose("cell", lambda cells: names_text(cells.labels)),
    name(
        "device",
        lambda cells: names_text(cells.devices) or None,
        is_shown=lambda rows: any(row.devices for row in rows),
    ),
    name("result", lambda cells: cells.result),
    prose("why", lambda cells: cells.reason),
)


def rejections(view: MatrixView, *, without_missing: bool = False) -> Iterator[str]:
    """Return one line for each reason and the cells that have it, which get no jobs."""
    shown = [cell for cell in view.rejected_list if not (without_missing and cell.kind.wants_file)]
    for cells in _together(shown):
        where = f" on {names_text(cells.devices)}" if cells.devices else ""
        yield f"{names_text(cells.labels)}{where}: {cells.result}, {cells.reason}"
    if more := view.rejected - len(view.rejected_list):
        yield f"{more} more: GET /api/v1/matrices/{view.matrix_id}/rejected?after=INDEX returns all"


def _together(rejected: Sequence[Rejection]) -> list[RejectedCells]:
    """Return cells with the same reason together, where they have it on the same devices."""
    devices_by_cell: defaultdict[tuple[RejectionKind, str, str], list[str]] = defaultdict(list)
    for cell in rejected:
        devices = devices_by_cell[cell.kind, cell.reason, cell.label]
        if cell.device_id is not None:
            devices.append(device_name(cell))
    labels_by_reason: defaultdict[tuple[RejectionKind, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (kind, reason, label), devices in devices_by_cell.items():
        labels_by_reason[kind, reason, tuple(devices)].append(label)
    return [
        RejectedCells(kind=kind, reason=reason, labels=labels, devices=devices)
        for (kind, reason, devices), labels in labels_by_reason.items()
    ]
