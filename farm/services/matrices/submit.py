"""Submission of a matrix: prepare it without a lock, then store it with its job template.

`prepare_matrix` expands it; `store_if_unchanged` stores it in a write transaction unless its inputs changed.
farm.services.matrices.lazy_expansion calls the latter, and creates cells and jobs from the template.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, DeviceId, IdempotencyKey, MatrixId
from farm.core.devices.selector import KnownDevice
from farm.core.errors import IdempotencyKeyReused
from farm.core.jobs.fair_share import round_virtual_time
from farm.core.matrices.expansion import expand
from farm.core.matrices.job_template import JobTemplate, TemplatePart, freeze_expansion
from farm.core.matrices.matrix import (
    Expansion,
    KnownHarnesses,
    KnownVariant,
    MatrixSpec,
    RejectedCell,
    cell_label_by_axes,
    varying_axes,
)
from farm.core.operations.event import WorkEvent
from farm.core.programs.abi import select_abi
from farm.database.notifications import notify_hosts_of_devices
from farm.database.transaction import Tx
from farm.services.files.harnesses import known_harness
from farm.store.devices.facts import known_devices
from farm.store.files import variants as variant_store
from farm.store.files.programs import Program, current_programs
from farm.store.jobs.jobs import first_virtual_times
from farm.store.matrices import lazy_expansion, matrices
from farm.store.matrices.lazy_expansion import NewLazyExpansion
from farm.store.operations.events import record_event

_MAX_SEED = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionInputs:
    """The devices, variants and programs that a matrix is expanded over; equal ones give the same cells."""

    devices: Sequence[KnownDevice]
    variants: Sequence[KnownVariant]
    #: Current programs by harness, then by ABI.
    programs: Mapping[str, Mapping[str, Program]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixExpansion:
    """A matrix with everything that its cells refer to."""

    spec: MatrixSpec
    expansion: Expansion
    inputs: ExpansionInputs
    harnesses: KnownHarnesses
    #: The axes that distinguish cells: of the whole matrix, even where a part of it is run.
    varying: frozenset[str]

    @property
    def devices(self) -> Sequence[KnownDevice]:
        """Return the devices that a matrix can run on, selected or not: with known facts, and not retired."""
        return self.inputs.devices

    @property
    def variants(self) -> Sequence[KnownVariant]:
        """Return all variants of the farm."""
        return self.inputs.variants

    def programs_by_device(self) -> dict[DeviceId, dict[str, int]]:
        """Return the program id of each harness on each device.

        A harness that has no program for a device is left out.
        """
        return {device.device_id: self._programs_for(device) for device in self.devices}

    def _programs_for(self, device: KnownDevice) -> dict[str, int]:
        return {
            harness: programs[abi].program_id
            for harness, programs in self.inputs.programs.items()
            if (abi := select_abi(device.facts.abis, programs)) is not None
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedMatrix:
    """A matrix that is ready to be stored: all that takes long is done."""

    expanded: MatrixExpansion
    job_template: JobTemplate
    #: The stored form of the template.
    packed: bytes
    #: The attempt whose measurement this matrix repeats.
    repeated_attempt: AttemptId | None = None


def prepare_matrix(connection: Connection, spec: MatrixSpec) -> PreparedMatrix:
    """Expand a matrix; nothing is stored. This takes seconds for a large one, so it holds no lock.

    Raises like `expand_matrix`.
    """
    return prepare_expanded(expand_matrix(connection, spec))


def expand_matrix(connection: Connection, spec: MatrixSpec) -> MatrixExpansion:
    """Expand a matrix over the current devices, variants and programs.

    Raises:
        MatrixInvalid: a name or value the farm does not know, or cells that cannot be.
        SelectorEmpty: a selector fits no device.
    """
    harnesses = known_harnesses(connection, spec)
    inputs = expansion_inputs(connection, spec)
    expansion = expand(spec, variants=inputs.variants, harnesses=harnesses.all, devices=inputs.devices)
    keys = [slot.key for slot in expansion.slots] + [cell.key for cell in expansion.rejected]
    return MatrixExpansion(
        spec=spec,
        expansion=expansion,
        inputs=inputs,
        harnesses=harnesses,
        varying=varying_axes(keys),
    )


def known_harnesses(connection: Connection, spec: MatrixSpec) -> KnownHarnesses:
    """Return the harnesses of a matrix.

    Raises:
        MatrixInvalid: there is none of a name.
    """
    is_sustained = spec.sustained is not None
    return KnownHarnesses(
        [known_harness(connection, name, sustained=is_sustained) for name in spec.harnesses]
    )


def expansion_inputs(connection: Connection, spec: MatrixSpec) -> ExpansionInputs:
    """Return what a matrix is expanded over now."""
    return ExpansionInputs(
        devices=known_devices(connection),
        variants=_known_variants(connection),
        programs={name: current_programs(connection, name) for name in spec.harnesses},
    )


def _known_variants(connection: Connection) -> list[KnownVariant]:
    return [
        KnownVariant(
            variant_id=variant.variant_id,
            manifest=variant.manifest,
            expired=variant.expired_at is not None,
        )
        for variant in variant_store.current_variants(connection)
    ]


def prepare_expanded(
    expanded: MatrixExpansion, *, programs_by_device: Mapping[DeviceId, Mapping[str, int]] | None = None
) -> PreparedMatrix:
    """Make the job template of an expanded matrix.

    Args:
        expanded: the matrix; cells on devices without a program were rejected by the expansion.
        programs_by_device: program ids by device, then by harness; None for the current ones.
    """
    spec = expanded.spec
    job_template = freeze_expansion(
        expanded.expansion,
        rounds=spec.round_range[0],
        seed=secrets.randbelow(_MAX_SEED) if spec.seed is None else spec.seed,
        varying=expanded.varying,
        programs_by_device=(
            expanded.programs_by_device() if programs_by_device is None else programs_by_device
        ),
    )
    packed = lazy_expansion.pack_job_template(job_template)
    return PreparedMatrix(expanded=expanded, job_template=job_template, packed=packed)


def store_if_unchanged(
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
    return store_matrix(tx, prepared, rerun_of=rerun_of, idempotency=idempotency)


def store_matrix(
    tx: Tx,
    prepared: PreparedMatrix,
    *,
    rerun_of: MatrixId | None = None,
    idempotency: IdempotencyKey | None = None,
) -> MatrixId:
    """Store a prepared matrix and its job template; lazy_expansion creates its cells and jobs.

    Return the earlier matrix if the same request submitted one before; then nothing is stored.

    Raises like `find_submitted_matrix`.
    """
    # Again under the write lock: of two concurrent requests with one key, the second finds the first one's.
    if (submitted_id := find_submitted_matrix(tx.connection, idempotency, actor=tx.actor)) is not None:
        return submitted_id
    matrix_id = _add_matrix(tx, prepared, rerun_of=rerun_of, idempotency=idempotency)
    _store_job_template(tx, matrix_id, prepared)
    notify_hosts_of_devices(tx.connection, {part.device_id for part in prepared.job_template.parts})
    again = "" if rerun_of is None else f", a rerun of matrix {rerun_of}"
    cause = f"{prepared.expanded.expansion.cell_count} cells, {prepared.job_template.job_count} jobs{again}"
    record_event(tx, WorkEvent.MATRIX_SUBMITTED, matrix_id, to_state="queued", cause=cause)
    return matrix_id


def _add_matrix(
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
        cell_count=expanded.expansion.cell_count,
        rejected_count=len(rejected),
        rerun_of=rerun_of,
        repeated_attempt=prepared.repeated_attempt,
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
        [_new_expansion(job_template, part, virtual_times[part.device_id]) for part in job_template.parts],
        priority=priority,
        variant_ids={slot.variant_id for slot in job_template.slots if slot.variant_id is not None},
        program_ids=job_template.program_ids,
    )


def _new_expansion(
    job_template: JobTemplate, part: TemplatePart, first_virtual_time: int
) -> NewLazyExpansion:
    starts, rounds = job_template.start_count_per_round(part), job_template.rounds
    return NewLazyExpansion(
        device_id=part.device_id,
        jobs=starts * rounds,
        first_virtual_time=first_virtual_time,
        last_virtual_time=round_virtual_time(first_virtual_time, round_number=rounds, jobs_per_round=starts),
    )


def find_submitted_matrix(
    connection: Connection, idempotency: IdempotencyKey | None, *, actor: str
) -> MatrixId | None:
    """Return the matrix that the actor submitted by the same request; None where there is none, or no key.

    Raises:
        IdempotencyKeyReused: the actor submitted something else under this key.
    """
    if idempotency is None:
        return None
    before = matrices.find_submission(connection, idempotency.key, actor)
    if before is None:
        return None
    if before.digest != idempotency.digest:
        raise IdempotencyKeyReused(
            f"this idempotency key was already used for matrix {before.matrix_id}, with a different request"
        )
    return before.matrix_id
