"""Turns a matrix into cells and jobs, in one transaction."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.device import Admin
from farm.core.expansion import expand
from farm.core.ids import DeviceId, MatrixId
from farm.core.matrix import (
    Cell,
    Expansion,
    KnownHarness,
    KnownVariant,
    MatrixPlan,
    RejectedCell,
    label_by,
    round_order,
    varying_axes,
)
from farm.core.problem import unknown_harness
from farm.core.program_choice import abi_to_run
from farm.core.selector import KnownDevice
from farm.harness.adapter import flag_defaults
from farm.harness.registry import get_harness, harness_names
from farm.store import catalog, devices, jobs, matrices
from farm.store.events import record_event
from farm.store.jobs import NewJob
from farm.store.programs import Program, current_programs
from farm.wire.matrix import MatrixSpec

_MAX_SEED = 2**31


def submit_matrix(connection: Connection, spec: MatrixSpec, *, now: datetime, actor: str) -> MatrixId:
    """Expand a matrix over what the farm has now and queue its jobs.

    Raises:
        MatrixInvalid: a name or value the farm does not know, or cells that cannot be.
        SelectorEmpty: a selector fits no device.
    """
    plan = spec.plan()
    programs = current_programs(connection, plan.harness)
    expansion = expand(
        plan,
        variants=_known_variants(connection),
        harness=_known_harness(plan.harness, programs),
        devices=_known_devices(connection),
    )
    seed = secrets.randbelow(_MAX_SEED) if plan.seed is None else plan.seed
    matrix_id = _store_matrix(connection, spec, plan, expansion, seed, now=now)
    _store_cells(connection, matrix_id, expansion, programs)
    count = _queue_jobs(connection, matrix_id, plan, expansion.cells, seed, now=now)
    record_event(
        connection,
        at=now,
        actor=actor,
        kind="matrix_submitted",
        subject="matrix",
        subject_id=matrix_id,
        to_state="queued",
        cause=f"{len(expansion.cells)} cells, {count} jobs",
    )
    return matrix_id


def _known_variants(connection: Connection) -> list[KnownVariant]:
    return [
        KnownVariant(variant_id=variant.variant_id, manifest=variant.manifest)
        for variant in catalog.list_variants(connection)
    ]


def _known_harness(name: str, programs: Mapping[str, Program]) -> KnownHarness:
    if name not in harness_names():
        raise unknown_harness(name, harness_names())
    harness = get_harness(name)
    return KnownHarness(
        name=name,
        defaults=flag_defaults(harness),
        minimums={flag: known.minimum for flag, known in harness.flags.items() if known.minimum is not None},
        backends=harness.backends,
        abis=list(programs),
        unsupported=harness.unsupported,
        needs_model=harness.needs_model,
        lacks={abi: program.lacks for abi, program in programs.items()},
    )


def _known_devices(connection: Connection) -> list[KnownDevice]:
    return [
        KnownDevice(
            device_id=device.device_id,
            host=device.host_id,
            facts=device.facts,
            label=device.label,
            tags=device.tags,
            unit=device.unit,
        )
        for device in devices.list_devices(connection)
        if device.facts is not None and device.admin is not Admin.RETIRED
    ]


def _store_matrix(
    connection: Connection,
    spec: MatrixSpec,
    plan: MatrixPlan,
    expansion: Expansion,
    seed: int,
    *,
    now: datetime,
) -> MatrixId:
    varying = _varying(expansion)
    return matrices.add_matrix(
        connection,
        name=plan.name,
        harness=plan.harness,
        spec=spec.model_dump(mode="json"),
        rounds=plan.rounds,
        seed=seed,
        rejected=[_rejected(cell, varying) for cell in expansion.rejected],
        now=now,
    )


def _varying(expansion: Expansion) -> frozenset[str]:
    """The axes by which cells are told from each other, rejected ones included."""
    keys = [cell.key for cell in expansion.cells] + [cell.key for cell in expansion.rejected]
    return varying_axes(keys)


def _rejected(cell: RejectedCell, varying: frozenset[str]) -> dict[str, object]:
    return {
        "device_id": cell.device_id,
        "label": label_by(cell.key, varying),
        "reason": f"{cell.reason} ({cell.hint})" if cell.hint else cell.reason,
    }


def _store_cells(
    connection: Connection, matrix_id: MatrixId, expansion: Expansion, programs: dict[str, Program]
) -> None:
    abis_by_device = {device.device_id: device.facts.abis for device in _known_devices(connection)}
    varying = _varying(expansion)
    rows = [
        {
            "cell_index": cell.index,
            "device_id": cell.device_id,
            "variant_id": cell.variant_id,
            "program_id": _program(abis_by_device[cell.device_id], programs).program_id,
            "backend": cell.backend,
            "settings": dict(cell.settings),
            "replica": cell.replica,
            "label": label_by(cell.key, varying, replica=cell.replica),
            "baseline_index": cell.baseline_index,
        }
        for cell in expansion.cells
    ]
    matrices.add_cells(connection, matrix_id, rows)


def _program(abis: Sequence[str], programs: Mapping[str, Program]) -> Program:
    abi = abi_to_run(abis, programs)
    # Cells on devices without a program were rejected by the expansion.
    assert abi is not None
    return programs[abi]


def _queue_jobs(
    connection: Connection,
    matrix_id: MatrixId,
    plan: MatrixPlan,
    cells: Sequence[Cell],
    seed: int,
    *,
    now: datetime,
) -> int:
    """Queue each device's rounds one after the other, every round in an order of its own."""
    id_by_index = {row.index: row.cell_id for row in matrices.list_cells(connection, matrix_id)}
    by_device: dict[DeviceId, list[Cell]] = {}
    for cell in cells:
        by_device.setdefault(cell.device_id, []).append(cell)
    new_jobs = [
        NewJob(device_id=device_id, cell_id=id_by_index[cell.index], round=round)
        for device_id, own in by_device.items()
        for round in range(1, plan.rounds + 1)
        for cell in round_order(own, round=round, seed=seed)
    ]
    jobs.add_jobs(connection, matrix_id, new_jobs, priority=plan.priority, now=now)
    return len(new_jobs)
