"""Cells that a person chose: by device and model, and by words of their labels, each with its baseline."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.base.spec_errors import name_hint
from farm.core.errors import NotFound
from farm.core.results.history.chosen_labels import ChosenLabels, PairChoice
from farm.services.devices.views import device_id_named
from farm.store.files import variants as variant_store
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
    device_id = among.device_id
    labels = choice.chosen(
        labels_of_matrix(connection, [matrix_id], model=among.model),
        on_device=labels_of_matrix(connection, [matrix_id], model=among.model, device_id=device_id)
        if device_id is not None
        else (),
    )
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


def candidate_filter(connection: Connection, *, device: str | None, model: str | None) -> CandidateFilter:
    """Return the filter of candidates by device and model; raises like `list_speedups`."""
    device_id = None if device is None else device_id_named(connection, device)
    if model is not None:
        check_model(connection, model)
    return CandidateFilter(device_id=device_id, model=model)


def check_model(connection: Connection, model: str) -> None:
    """Refuse a model that no variant is of; raises NotFound."""
    models = variant_store.list_models(connection)
    if model not in models:
        raise NotFound(f"no model `{model}`", hint=name_hint(model, models) or "the farm has no models yet")
