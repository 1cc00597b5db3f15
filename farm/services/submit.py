"""Turns a matrix into cells and jobs, in one transaction."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.event import Subject, WorkEvent
from farm.core.ids import CellId, DeviceId, MatrixId
from farm.core.matrix import Cell, MatrixPlan, RejectedCell, label_by, round_order
from farm.core.turn import round_turn
from farm.services.expanding import Expanded, expand_here
from farm.store import jobs, matrices
from farm.store.events import record_event
from farm.store.jobs import NewJob
from farm.store.matrices import NewCell
from farm.store.queue_turns import first_turns
from farm.store.wakes import concerns_devices
from farm.wire.matrix import MatrixSpec

_MAX_SEED = 2**31


def submit_matrix(connection: Connection, spec: MatrixSpec, *, now: datetime, actor: str) -> MatrixId:
    """Expand a matrix over what the farm has now and queue its jobs.

    Raises:
        MatrixInvalid: a name or value the farm does not know, or cells that cannot be.
        SelectorEmpty: a selector fits no device.
    """
    return queue_matrix(connection, expand_here(connection, spec), now=now, actor=actor)


def queue_matrix(
    connection: Connection,
    expanded: Expanded,
    *,
    rerun_of: MatrixId | None = None,
    now: datetime,
    actor: str,
) -> MatrixId:
    """Store an expanded matrix and queue its jobs."""
    plan, cells = expanded.plan, expanded.expansion.cells
    seed = secrets.randbelow(_MAX_SEED) if plan.seed is None else plan.seed
    matrix_id = _store_matrix(connection, expanded, seed, rerun_of=rerun_of, now=now, actor=actor)
    id_by_index = _store_cells(connection, matrix_id, expanded)
    count = _queue_jobs(connection, matrix_id, id_by_index, plan, cells, seed, submitted_by=actor, now=now)
    concerns_devices(connection, {cell.device_id for cell in cells})
    again = "" if rerun_of is None else f", a rerun of matrix {rerun_of}"
    record_event(
        connection,
        at=now,
        actor=actor,
        kind=WorkEvent.MATRIX_SUBMITTED,
        subject=Subject.MATRIX,
        subject_id=matrix_id,
        to_state="queued",
        cause=f"{len(cells)} cells, {count} jobs{again}",
    )
    return matrix_id


def _store_matrix(
    connection: Connection,
    expanded: Expanded,
    seed: int,
    *,
    rerun_of: MatrixId | None,
    now: datetime,
    actor: str,
) -> MatrixId:
    plan, varying = expanded.plan, expanded.varying
    return matrices.add_matrix(
        connection,
        name=plan.name,
        harness=plan.harness,
        spec=expanded.spec.model_dump(mode="json"),
        rounds=plan.rounds,
        seed=seed,
        rejected=[_rejected(cell, varying) for cell in expanded.expansion.rejected],
        rerun_of=rerun_of,
        submitted_by=actor,
        now=now,
    )


def _rejected(cell: RejectedCell, varying: frozenset[str]) -> dict[str, object]:
    return {
        "device_id": cell.device_id,
        "label": label_by(cell.key, varying),
        "reason": f"{cell.reason} ({cell.hint})" if cell.hint else cell.reason,
    }


def _store_cells(connection: Connection, matrix_id: MatrixId, expanded: Expanded) -> dict[int, CellId]:
    programs, varying = expanded.program_by_device(), expanded.varying
    rows = [
        NewCell(
            cell_index=cell.index,
            device_id=cell.device_id,
            variant_id=cell.variant_id,
            # Cells on devices without a program were rejected by the expansion.
            program_id=programs[cell.device_id].program_id,
            backend=cell.backend,
            settings=dict(cell.settings),
            replica=cell.replica,
            label=label_by(cell.key, varying, replica=cell.replica),
            baseline_index=cell.baseline_index,
        )
        for cell in expanded.expansion.cells
    ]
    return matrices.add_cells(connection, matrix_id, rows)


def _queue_jobs(
    connection: Connection,
    matrix_id: MatrixId,
    id_by_index: Mapping[int, CellId],
    plan: MatrixPlan,
    cells: Sequence[Cell],
    seed: int,
    *,
    submitted_by: str,
    now: datetime,
) -> int:
    """Queue each device's rounds one after the other, every round in an order of its own."""
    by_device: dict[DeviceId, list[Cell]] = {}
    for cell in cells:
        by_device.setdefault(cell.device_id, []).append(cell)
    first_by_device = first_turns(
        connection, list(by_device), priority=plan.priority, submitted_by=submitted_by
    )
    new_jobs = [
        NewJob(
            device_id=device_id,
            cell_id=id_by_index[cell.index],
            round=round,
            turn=round_turn(first_by_device[device_id], round=round, cells=len(own)),
        )
        for device_id, own in by_device.items()
        for round in range(1, plan.rounds + 1)
        for cell in round_order(own, round=round, seed=seed)
    ]
    jobs.add_jobs(connection, matrix_id, new_jobs, priority=plan.priority, now=now)
    return len(new_jobs)
