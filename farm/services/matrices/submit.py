"""Submission of a matrix, and its rerun: of all cells, or of those without a valid measurement.

What is stored is a job template: farm.services.matrices.lazy_expansion makes cells and jobs of it.
"""

import json
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, IdempotencyKey, MatrixId
from farm.core.base.setting_values import SettingValue, non_default_settings
from farm.core.errors import Conflict, IdempotencyKeyReused
from farm.core.jobs.fair_share import round_virtual_time
from farm.core.matrices.blocks import starts_by_cell
from farm.core.matrices.job_template import JobTemplate, freeze_expansion
from farm.core.matrices.matrix import (
    Cell,
    KnownHarness,
    KnownHarnesses,
    MatrixSpec,
    RejectedCell,
    cell_label_by_axes,
    varying_axes,
)
from farm.core.matrices.partial_rerun import compared_cells, select_cells
from farm.core.matrices.repeated_cells import RepeatedCell, repeat_cells
from farm.core.models.variant import variant_name
from farm.core.operations.event import WorkEvent
from farm.core.runs.measurement import COUNTED
from farm.database.notifications import notify_hosts_of_devices
from farm.database.transaction import Tx
from farm.services.files.harnesses import default_of_flags
from farm.services.matrices.current_expansion import (
    MatrixExpansion,
    expand_matrix,
    expansion_inputs,
    known_harnesses,
)
from farm.store.jobs.jobs import first_virtual_times
from farm.store.matrices import lazy_expansion, matrices
from farm.store.matrices.lazy_expansion import NewLazyExpansion
from farm.store.matrices.matrices import CellRow, Matrix, get_matrix
from farm.store.operations.events import record_event
from farm.store.results import measurements

_MAX_SEED = 2**31
#: Device, harness, variant, backend, settings, replica: equal for the same cell in two matrices of one spec.
_Identity = tuple[str, str, str | None, str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedMatrix:
    """A matrix that is ready to be stored: all that takes long is done."""

    expanded: MatrixExpansion
    job_template: JobTemplate
    #: The stored form of the template.
    packed: bytes


def submit_matrix(tx: Tx, spec: MatrixSpec) -> MatrixId:
    """Expand a matrix over the present devices, variants and programs, and store it.

    Raises like `expand_matrix`.
    """
    return queue_matrix(tx, prepare_matrix(tx.connection, spec))


def prepare_matrix(connection: Connection, spec: MatrixSpec) -> PreparedMatrix:
    """Expand a matrix; nothing is stored. This takes seconds for a large one, so it holds no lock.

    Raises like `expand_matrix`.
    """
    return prepare_expanded(expand_matrix(connection, spec))


def prepare_expanded(expanded: MatrixExpansion) -> PreparedMatrix:
    """Make the job template of an expanded matrix."""
    # Cells on devices without a program were rejected by the expansion.
    return _frozen(expanded, programs_by_device=expanded.programs_by_device())


def _frozen(
    expanded: MatrixExpansion, *, programs_by_device: Mapping[DeviceId, Mapping[str, int]]
) -> PreparedMatrix:
    spec = expanded.spec
    job_template = freeze_expansion(
        expanded.expansion,
        rounds=spec.round_range[0],
        seed=secrets.randbelow(_MAX_SEED) if spec.seed is None else spec.seed,
        varying=expanded.varying,
        programs_by_device=programs_by_device,
    )
    packed = lazy_expansion.pack_job_template(job_template)
    return PreparedMatrix(expanded=expanded, job_template=job_template, packed=packed)


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
    return _frozen(expanded, programs_by_device={device_id: {cells[0].harness: cells[0].program_id}})


def queue_if_unchanged(
    tx: Tx,
    prepared: PreparedMatrix,
    *,
    rerun_of: MatrixId | None = None,
    idempotency: IdempotencyKey | None = None,
) -> MatrixId | None:
    """Store a prepared matrix if the devices, variants and programs are still those it was prepared over.

    Return None if they changed: prepare it again, outside a write transaction, since that may take seconds.

    Raises like `find_submitted_matrix`.
    """
    if expansion_inputs(tx.connection, prepared.expanded.spec) != prepared.expanded.inputs:
        return None
    return queue_matrix(tx, prepared, rerun_of=rerun_of, idempotency=idempotency)


def queue_matrix(
    tx: Tx,
    prepared: PreparedMatrix,
    *,
    rerun_of: MatrixId | None = None,
    idempotency: IdempotencyKey | None = None,
) -> MatrixId:
    """Store an expanded matrix, whose cells and jobs follow.

    Return the earlier matrix if the same request submitted one before; then nothing is stored.

    Raises like `find_submitted_matrix`.
    """
    # Again under the write lock: of two concurrent requests with one key, the second finds the first one's.
    if (submitted_id := find_submitted_matrix(tx.connection, idempotency, actor=tx.actor)) is not None:
        return submitted_id
    matrix_id = _store_matrix(tx, prepared, rerun_of=rerun_of, idempotency=idempotency)
    _store_job_template(tx, matrix_id, prepared)
    notify_hosts_of_devices(tx.connection, {part.device_id for part in prepared.job_template.parts})
    again = "" if rerun_of is None else f", a rerun of matrix {rerun_of}"
    cause = f"{prepared.expanded.expansion.cell_count} cells, {prepared.job_template.job_count} jobs{again}"
    record_event(tx, WorkEvent.MATRIX_SUBMITTED, matrix_id, to_state="queued", cause=cause)
    return matrix_id


def _store_matrix(
    tx: Tx, prepared: PreparedMatrix, *, rerun_of: MatrixId | None, idempotency: IdempotencyKey | None
) -> MatrixId:
    expanded = prepared.expanded
    # Those that want a file come first: the first page tells whether there are any.
    cells = sorted(expanded.expansion.rejected, key=lambda cell: not cell.rejection.wants_file)
    rejected = [_rejection_values(cell, expanded.varying) for cell in cells]
    matrix_id = matrices.add_matrix(
        tx,
        spec=expanded.spec,
        seed=prepared.job_template.seed,
        block_candidates=prepared.job_template.block_candidates,
        rejected_count=len(rejected),
        rerun_of=rerun_of,
        submitted_by=tx.actor,
        idempotency=idempotency,
    )
    matrices.add_rejections(tx.connection, matrix_id, rejected)
    return matrix_id


def _rejection_values(cell: RejectedCell, varying: frozenset[str]) -> tuple[DeviceId | None, str, str, str]:
    reason = f"{cell.reason} ({cell.hint})" if cell.hint else cell.reason
    return cell.device_id, cell_label_by_axes(cell.key, varying), str(cell.rejection), reason


def _store_job_template(tx: Tx, matrix_id: MatrixId, prepared: PreparedMatrix) -> None:
    """Store what the rows of a matrix are made from, with the place of its jobs in each device's queue."""
    job_template, priority = prepared.job_template, prepared.expanded.spec.priority
    device_ids = [part.device_id for part in job_template.parts]
    virtual_times = first_virtual_times(tx.connection, device_ids, priority=priority, submitted_by=tx.actor)
    lazy_expansion.add_lazy_expansion(
        tx.connection,
        matrix_id,
        prepared.packed,
        [
            NewLazyExpansion(
                device_id=part.device_id,
                jobs=starts * job_template.rounds,
                first_virtual_time=(first := virtual_times[part.device_id]),
                last_virtual_time=round_virtual_time(first, round=job_template.rounds, starts=starts),
            )
            for part in job_template.parts
            for starts in (job_template.starts_of_round(part),)
        ],
        priority=priority,
        variant_ids={slot.variant_id for slot in job_template.slots if slot.variant_id is not None},
        program_ids=job_template.program_ids,
    )


def find_submitted_matrix(
    connection: Connection, idempotency: IdempotencyKey | None, *, actor: str
) -> MatrixId | None:
    """Return the matrix that the actor submitted by the same request; None where there is none, or no key.

    Raises:
        IdempotencyKeyReused: the actor submitted something else under this key.
    """
    before = None if idempotency is None else matrices.find_submission(connection, idempotency.key, actor)
    if idempotency is None or before is None:
        return None
    if before.digest != idempotency.digest:
        raise IdempotencyKeyReused(
            f"this idempotency key was already used for matrix {before.matrix_id}, with a different request"
        )
    return before.matrix_id


def prepare_rerun(connection: Connection, matrix_id: MatrixId, *, failed: bool) -> PreparedMatrix:
    """Expand the spec of a matrix over the present devices, variants and programs; nothing is stored.

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
    starts = starts_by_cell(rows, matrix.block_candidates)
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
