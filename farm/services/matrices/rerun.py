"""Runs a matrix again: all of it, or what has no valid measurement."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, MatrixId
from farm.core.base.setting_values import SettingValue, non_default_settings
from farm.core.errors import Conflict
from farm.core.matrices.matrix import Cell
from farm.core.matrices.partial_rerun import compared_cells, select_cells
from farm.core.models.variant import variant_name
from farm.core.runs.measurement import Quality
from farm.services.matrices.expansion import MatrixExpansion, expand_matrix
from farm.services.matrices.submit import PreparedMatrix, prepare_expanded, queue_matrix
from farm.store.matrices import lazy_expansion, matrices
from farm.store.matrices.matrices import CellRow, Matrix, get_matrix
from farm.store.results import measurements
from farm.wire.documents.matrices.matrix import matrix_spec

#: Device, variant, backend, settings, replica: what is the same cell in two matrices of one spec.
_Identity = tuple[str, str | None, str, str, int]


def rerun_matrix(
    connection: Connection, matrix_id: MatrixId, *, failed: bool, now: datetime, actor: str
) -> MatrixId:
    """Submit the spec of a matrix again, over what the farm has now.

    Args:
        connection: the database.
        matrix_id: the matrix to run again.
        failed: only cells with a round that has no valid measurement, and what they are compared with.
        now: the time.
        actor: who asks.

    Raises:
        NotFound: there is no such matrix.
        MatrixInvalid: the farm no longer has what it names.
        SelectorEmpty: a selector fits no device any more.
        Conflict: only failed cells are asked for, and there are none, none of them can run now, or the
            matrix is still being queued.
    """
    ready = prepare_rerun(connection, matrix_id, failed=failed)
    return queue_matrix(connection, ready, rerun_of=matrix_id, now=now, actor=actor)


def prepare_rerun(connection: Connection, matrix_id: MatrixId, *, failed: bool) -> PreparedMatrix:
    """Expand the spec of a matrix again; nothing is stored. Raises like `rerun_matrix`.

    Of a large one this takes seconds, so it holds no lock.
    """
    matrix = get_matrix(connection, matrix_id)
    expanded = expand_matrix(connection, matrix_spec(matrix.spec))
    return prepare_expanded(_failed_part(connection, matrix, expanded) if failed else expanded)


def _failed_part(connection: Connection, matrix: Matrix, expanded: MatrixExpansion) -> MatrixExpansion:
    valid = _valid_rounds(connection, matrix.matrix_id)
    rows = matrices.list_cells(connection, matrix.matrix_id)
    defaults = expanded.harness.defaults
    failed = {_of_row(row, defaults) for row in rows if valid[row.cell_id] < matrix.rounds}
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
    known = {_of_row(row, defaults) for row in rows}
    wanted: set[int] = set()
    for cell in cells:
        name = None if cell.variant_id is None else name_by_id[cell.variant_id]
        identity = _of_cell(cell, name, defaults)
        if identity in failed or (cell.device_id in never and identity not in known):
            wanted.add(cell.index)
    if not wanted:
        raise Conflict(
            f"none of the failed cells of matrix {matrix.matrix_id} can run now",
            hint="`farm matrix show` says why cells have no jobs",
        )
    kept = compared_cells(cells, wanted)
    return replace(expanded, expansion=select_cells(expanded.expansion, kept))


def _never_queued(connection: Connection, matrix: Matrix) -> set[DeviceId]:
    """Devices on which a matrix has cells that were cancelled before they were stored.

    Raises:
        Conflict: some are still to be stored.
    """
    left = lazy_expansion.remaining_jobs(connection, matrix.matrix_id)
    if not all(each.is_cancelled for each in left):
        raise Conflict(
            f"matrix {matrix.matrix_id} is still being queued: nobody knows which of its cells will fail",
            hint=f"`farm matrix show {matrix.matrix_id}` says how far it is",
        )
    return {each.device_id for each in left}


def _valid_rounds(connection: Connection, matrix_id: MatrixId) -> Counter[CellId]:
    """By cell, in how many rounds it has a valid measurement."""
    rounds = {
        (measurement.cell_id, measurement.round)
        for measurement in measurements.accepted_measurements(connection, matrix_id)
        if measurement.quality is Quality.VALID
    }
    return Counter(cell_id for cell_id, _ in rounds)


def _of_row(row: CellRow, defaults: Mapping[str, SettingValue]) -> _Identity:
    return row.device_id, row.variant_name, row.backend, _changed(row.settings, defaults), row.replica


def _of_cell(cell: Cell, variant: str | None, defaults: Mapping[str, SettingValue]) -> _Identity:
    return cell.device_id, variant, cell.backend, _changed(cell.settings, defaults), cell.replica


def _changed(settings: Mapping[str, SettingValue], defaults: Mapping[str, SettingValue]) -> str:
    return json.dumps(non_default_settings(settings, defaults), sort_keys=True)
