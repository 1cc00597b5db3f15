"""Turns a matrix into cells and jobs: small ones at once, large ones in pieces."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.idempotency_key import IdempotencyKey
from farm.core.base.ids import DeviceId, MatrixId
from farm.core.jobs.fair_share import round_virtual_time
from farm.core.matrices.job_template import JobTemplate, freeze_expansion
from farm.core.matrices.matrix import RejectedCell, cell_label_by_axes
from farm.core.operations.event import EventSubject, WorkEvent
from farm.database.notifications import notify_hosts_of_devices
from farm.services.matrices.expansion import MatrixExpansion, expand_matrix, expansion_inputs
from farm.services.matrices.idempotency import find_submitted_matrix
from farm.services.matrices.lazy_expansion import INLINE_JOBS, RowBuilder, put_rows
from farm.store.jobs.fair_share import first_virtual_times
from farm.store.matrices import lazy_expansion, matrices, rejections
from farm.store.matrices.lazy_expansion import NewLazyExpansion
from farm.store.operations.events import record_event
from farm.wire.documents.matrices.matrix import MatrixSpec

_MAX_SEED = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedMatrix:
    """A matrix that is ready to be stored, and what takes long of it done."""

    expanded: MatrixExpansion
    job_template: JobTemplate
    #: As it is stored, where its jobs are queued in pieces.
    packed: bytes | None

    @property
    def job_count(self) -> int:
        """Of all devices and rounds."""
        return self.expanded.expansion.cell_count * self.job_template.rounds


def submit_matrix(connection: Connection, spec: MatrixSpec, *, now: datetime, actor: str) -> MatrixId:
    """Expand a matrix over what the farm has now and queue its jobs, or have them queued.

    Raises:
        MatrixInvalid: a name or value the farm does not know, or cells that cannot be.
        SelectorEmpty: a selector fits no device.
    """
    return queue_matrix(connection, prepare_matrix(connection, spec), now=now, actor=actor)


def prepare_matrix(connection: Connection, spec: MatrixSpec) -> PreparedMatrix:
    """Expand a matrix; nothing is stored. Of a large one this takes seconds, so it holds no lock.

    Raises:
        MatrixInvalid: a name or value the farm does not know, or cells that cannot be.
        SelectorEmpty: a selector fits no device.
    """
    return prepare_expanded(expand_matrix(connection, spec))


def prepare_expanded(expanded: MatrixExpansion, *, inline_jobs: int = INLINE_JOBS) -> PreparedMatrix:
    """Make the blueprint of an expanded matrix; of no more than `inline_jobs` jobs, it is not kept."""
    plan = expanded.plan
    job_template = freeze_expansion(
        expanded.expansion,
        rounds=plan.rounds,
        seed=secrets.randbelow(_MAX_SEED) if plan.seed is None else plan.seed,
        varying=expanded.varying,
        # Cells on devices without a program were rejected by the expansion.
        program_by_device=expanded.program_by_device(),
    )
    is_large = expanded.expansion.cell_count * plan.rounds > inline_jobs
    return PreparedMatrix(
        expanded=expanded,
        job_template=job_template,
        packed=lazy_expansion.pack_job_template(job_template) if is_large else None,
    )


def queue_prepared(
    connection: Connection,
    ready: PreparedMatrix,
    *,
    rerun_of: MatrixId | None = None,
    request: IdempotencyKey | None = None,
    now: datetime,
    actor: str,
) -> MatrixId | None:
    """Store a matrix that was prepared over what the farm had; None where that changed since.

    Then it is to be prepared again, which may take seconds, and so is nothing for a transaction that writes.

    Raises:
        IdempotencyKeyReused: its key is of another request.
    """
    if expansion_inputs(connection, ready.expanded.plan.harness) != ready.expanded.inputs:
        return None
    return queue_matrix(connection, ready, rerun_of=rerun_of, request=request, now=now, actor=actor)


def queue_matrix(
    connection: Connection,
    ready: PreparedMatrix,
    *,
    rerun_of: MatrixId | None = None,
    request: IdempotencyKey | None = None,
    now: datetime,
    actor: str,
) -> MatrixId:
    """Store an expanded matrix, and queue its jobs where they are few; else they are to be unfolded.

    One that was submitted by the same request before is answered with, and nothing is stored.

    Raises:
        IdempotencyKeyReused: the key is of another request.
    """
    # Here again, behind the lock: of two at once the second finds what the first one stored.
    if (answered := find_submitted_matrix(connection, request, actor=actor)) is not None:
        return answered
    matrix_id = _store_matrix(connection, ready, rerun_of=rerun_of, request=request, now=now, actor=actor)
    _queue_jobs(connection, matrix_id, ready, submitted_by=actor, now=now)
    notify_hosts_of_devices(connection, {part.device_id for part in ready.job_template.parts})
    again = "" if rerun_of is None else f", a rerun of matrix {rerun_of}"
    record_event(
        connection,
        at=now,
        actor=actor,
        kind=WorkEvent.MATRIX_SUBMITTED,
        subject=EventSubject.MATRIX,
        subject_id=matrix_id,
        to_state="queued",
        cause=f"{ready.expanded.expansion.cell_count} cells, {ready.job_count} jobs{again}",
    )
    return matrix_id


def _store_matrix(
    connection: Connection,
    ready: PreparedMatrix,
    *,
    rerun_of: MatrixId | None,
    request: IdempotencyKey | None,
    now: datetime,
    actor: str,
) -> MatrixId:
    expanded = ready.expanded
    rejected = [_rejected(cell, expanded.varying) for cell in expanded.expansion.rejected]
    matrix_id = matrices.add_matrix(
        connection,
        name=expanded.plan.name,
        harness=expanded.plan.harness,
        spec=expanded.spec.model_dump(mode="json"),
        rounds=expanded.plan.rounds,
        seed=ready.job_template.seed,
        rejected_count=len(rejected),
        rerun_of=rerun_of,
        submitted_by=actor,
        request=request,
        now=now,
    )
    rejections.add_rejections(connection, matrix_id, rejected)
    return matrix_id


def _rejected(cell: RejectedCell, varying: frozenset[str]) -> tuple[DeviceId | None, str, str]:
    reason = f"{cell.reason} ({cell.hint})" if cell.hint else cell.reason
    return cell.device_id, cell_label_by_axes(cell.key, varying), reason


def _queue_jobs(
    connection: Connection, matrix_id: MatrixId, ready: PreparedMatrix, *, submitted_by: str, now: datetime
) -> None:
    """Queue each device's rounds one after the other, every round in an order of its own."""
    job_template, priority = ready.job_template, ready.expanded.plan.priority
    device_ids = [part.device_id for part in job_template.parts]
    virtual_times = first_virtual_times(connection, device_ids, priority=priority, submitted_by=submitted_by)
    if ready.packed is None:
        maker = RowBuilder(job_template, matrix_id=matrix_id, priority=priority, created_at=now)
        put_rows(connection, maker, maker.whole(virtual_times))
        return
    lazy_expansion.add_lazy_expansion(
        connection,
        matrix_id,
        ready.packed,
        _cursors(job_template, virtual_times),
        priority=priority,
        variant_ids={slot.variant_id for slot in job_template.slots if slot.variant_id is not None},
        program_ids={part.program_id for part in job_template.parts},
    )


def _cursors(job_template: JobTemplate, virtual_times: Mapping[DeviceId, int]) -> list[NewLazyExpansion]:
    return [
        NewLazyExpansion(
            device_id=part.device_id,
            jobs=job_template.job_count(part),
            first_virtual_time=virtual_times[part.device_id],
            last_virtual_time=round_virtual_time(
                virtual_times[part.device_id], round=job_template.rounds, cells=job_template.cell_count(part)
            ),
        )
        for part in job_template.parts
    ]
