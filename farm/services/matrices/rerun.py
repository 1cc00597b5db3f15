"""Rerun of a matrix: of all cells, of those without a valid measurement, or of stored cells of one device."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, MatrixId
from farm.core.base.setting_values import SettingValue, non_default_settings
from farm.core.errors import Conflict
from farm.core.matrices.blocks import start_count_by_cell
from farm.core.matrices.matrix import Cell, KnownHarness, KnownHarnesses, MatrixSpec, varying_axes
from farm.core.matrices.partial_rerun import compared_cells, select_cells
from farm.core.matrices.repeated_cells import RepeatedCell, repeat_cells
from farm.core.models.variant import variant_name
from farm.core.runs.measurement import COUNTED
from farm.services.files.harnesses import default_of_flags
from farm.services.matrices.submit import (
    MatrixExpansion,
    PreparedMatrix,
    expand_matrix,
    expansion_inputs,
    known_harnesses,
    prepare_expanded,
)
from farm.store.matrices import lazy_expansion, matrices
from farm.store.matrices.matrices import CellRow, Matrix, get_matrix
from farm.store.results import measurements

#: Device, harness, variant, backend, settings, replica: equal for the same cell in two matrices of one spec.
_Identity = tuple[str, str, str | None, str, str, int]


def prepare_rerun(connection: Connection, matrix_id: MatrixId, *, failed: bool) -> PreparedMatrix:
    """Expand the spec of a matrix over the current devices, variants and programs; nothing is stored.

    With `failed`, only cells with a round that has no valid measurement, and the cells they are compared
    with. This takes seconds for a large one, so it holds no lock. Raises like `get_matrix` and
    `expand_matrix`, and Conflict: only failed cells are requested, and there are none, none of them can run
    now, or the matrix is still being queued.
    """
    matrix = get_matrix(connection, matrix_id)
    expanded = expand_matrix(connection, matrix.spec)
    return prepare_expanded(_failed_part(connection, matrix, expanded) if failed else expanded)


def _failed_part(connection: Connection, matrix: Matrix, expanded: MatrixExpansion) -> MatrixExpansion:
    valid = _valid_starts(connection, matrix.matrix_id)
    rows = matrices.list_cells(connection, matrix.matrix_id)
    harnesses = expanded.harnesses
    starts = start_count_by_cell(rows, matrix.block_candidates)
    failed = {
        _of_row(row, harnesses) for row in rows if valid[row.cell_id] < starts[row.index] * matrix.rounds
    }
    never = _never_queued(connection, matrix)
    if not failed and not never:
        raise Conflict(
            f"every cell of matrix {matrix.matrix_id} has a valid measurement in each round",
            hint=f"`farm matrix rerun {matrix.matrix_id}` runs all of it again",
        )
    name_by_id = {
        variant.variant_id: variant_name(variant.manifest.model, variant.manifest.recipe)
        for variant in expanded.variants
    }
    cells = expanded.expansion.cells
    stored = {_of_row(row, harnesses) for row in rows}
    wanted: set[int] = set()
    for cell in cells:
        name = None if cell.variant_id is None else name_by_id[cell.variant_id]
        identity = _of_cell(cell, name, harnesses)
        if identity in failed or (cell.device_id in never and identity not in stored):
            wanted.add(cell.index)
    if not wanted:
        raise Conflict(
            f"none of the failed cells of matrix {matrix.matrix_id} can run now",
            hint="`farm matrix show` says why cells have no jobs",
        )
    indexes = compared_cells(cells, wanted)
    return replace(expanded, expansion=select_cells(expanded.expansion, indexes))


def _never_queued(connection: Connection, matrix: Matrix) -> set[DeviceId]:
    """Return the devices on which cells of a matrix were cancelled before they were stored.

    Raises:
        Conflict: some are still to be stored.
    """
    left = lazy_expansion.remaining_jobs(connection, matrix.matrix_id)
    if not all(job.is_cancelled for job in left):
        raise Conflict(
            f"matrix {matrix.matrix_id} is still being queued: which of its cells will fail is not known yet",
            hint=f"`farm matrix show {matrix.matrix_id}` says how far it is",
        )
    return {job.device_id for job in left}


def _valid_starts(connection: Connection, matrix_id: MatrixId) -> Counter[CellId]:
    """Return by cell the number of blocks with a valid measurement, in all rounds."""
    rounds = {
        (measurement.cell_id, measurement.round, measurement.block)
        for measurement in measurements.accepted_measurements(connection, matrix_id)
        if measurement.quality in COUNTED
    }
    return Counter(cell_id for cell_id, _, _ in rounds)


def _of_row(row: CellRow, harnesses: KnownHarnesses) -> _Identity:
    settings = _settings_text(row.settings, harnesses.named(row.harness))
    return row.device_id, row.harness, row.variant_name, row.backend, settings, row.replica


def _of_cell(cell: Cell, variant: str | None, harnesses: KnownHarnesses) -> _Identity:
    settings = _settings_text(cell.settings, harnesses.named(cell.harness))
    return cell.device_id, cell.harness, variant, cell.backend, settings, cell.replica


def _settings_text(settings: Mapping[str, SettingValue], harness: KnownHarness) -> str:
    return json.dumps(non_default_settings(settings, harness.defaults), sort_keys=True)


def prepare_repeated(
    connection: Connection, spec: MatrixSpec, cells: Sequence[RepeatedCell], *, name: str, device_id: DeviceId
) -> PreparedMatrix:
    """Prepare the matrix of stored cells of one device: by their files and programs, whatever is current now.

    Args:
        spec: of the matrix that the cells are of.
        cells: a baseline and what is compared with it, or one cell that is compared with none.
        name: of the new matrix.
        device_id: the device that runs it.
    """
    defaults = {name: default_of_flags(connection, name) for name in {cell.harness for cell in cells}}
    repeated, expansion = repeat_cells(spec, cells, name=name, device_id=device_id, defaults=defaults)
    expanded = MatrixExpansion(
        spec=repeated,
        expansion=expansion,
        inputs=expansion_inputs(connection, repeated),
        harnesses=known_harnesses(connection, repeated),
        varying=varying_axes(slot.key for slot in expansion.slots),
    )
    programs = {device_id: {cells[0].harness: cells[0].program_id}}
    return prepare_expanded(expanded, programs_by_device=programs)
