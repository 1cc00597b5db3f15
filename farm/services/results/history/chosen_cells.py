"""Cells of a matrix that a person chose by words of their labels, each with its baseline."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.results.history.chosen_labels import ChosenLabels, PairChoice
from farm.store.matrices.candidates import (
    CandidateFilter,
    labels_of_matrix,
    page_of_candidates,
    page_of_labelled,
)
from farm.store.matrices.matrices import CellRow

#: Device and model: of them, a matrix has one cell of each label.
_Place = tuple[DeviceId, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenCell:
    """A candidate whose `baseline_index` is that of its chosen baseline."""

    cell: CellRow
    #: Whether the matrix planned this pair.
    is_planned: bool


def chosen_cells(
    connection: Connection,
    matrix_id: MatrixId,
    among: CandidateFilter,
    choice: PairChoice,
    *,
    after: int,
    limit: int,
) -> list[ChosenCell]:
    """Return the next candidates of a matrix that are chosen, by index; none at the end.

    Raises:
        NotFound: no cell has such a label.
        InvalidInput: the baseline may be several cells of a device.
    """
    labels = choice.chosen(labels_of_matrix(connection, [matrix_id]))
    if labels.baseline is None:
        # A candidate keeps the baseline that its matrix planned.
        found: list[ChosenCell] = []
        while not found and (
            page := page_of_candidates(connection, matrix_id, among, after=after, limit=limit)
        ):
            found = [
                ChosenCell(cell=cell, is_planned=True) for cell in page if labels.is_candidate(cell.label)
            ]
            after = page[-1].index
        return found
    baselines = page_of_labelled(connection, matrix_id, among, labels.baseline)
    by_place = baseline_by_place(labels, baselines)
    found = []
    while not found and (
        page := page_of_labelled(connection, matrix_id, among, labels.candidate, after=after, limit=limit)
    ):
        found = list(with_baselines(page, by_place))
        after = page[-1].index
    return found


def baseline_by_place(labels: ChosenLabels, cells: Sequence[CellRow]) -> dict[_Place, CellRow]:
    """Return the chosen baseline of each device and model."""
    by_place: defaultdict[_Place, dict[str, CellRow]] = defaultdict(dict)
    for cell in cells:
        by_place[cell.device_id, cell.model][cell.label] = cell
    found = {place: labels.baseline_among(own) for place, own in by_place.items()}
    return {place: by_place[place][label] for place, label in found.items() if label is not None}


def with_baselines(cells: Iterable[CellRow], by_place: dict[_Place, CellRow]) -> Iterable[ChosenCell]:
    """Yield cells with their chosen baselines; without those that are one, or have none."""
    for cell in cells:
        baseline = by_place.get((cell.device_id, cell.model))
        if baseline is not None and baseline.index != cell.index:
            yield ChosenCell(
                cell=replace(cell, baseline_index=baseline.index),
                is_planned=cell.baseline_index == baseline.index,
            )
