"""Gives free phones their next jobs: the device's head of queue becomes a live attempt with a frozen plan."""

from datetime import datetime

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.condition import Gates
from farm.core.device import blockers
from farm.core.ids import HostId, SessionId
from farm.core.job import JobEvent, JobKind
from farm.core.plan import RunPlan
from farm.harness import device_check
from farm.harness.adapter import RunRequest
from farm.services.adapters import adapter_of
from farm.services.checks import check_files
from farm.services.devices import load_of
from farm.store import attempts, catalog, devices, jobs, matrices, programs
from farm.store.artifacts import mark_used
from farm.store.devices import Device
from farm.store.jobs import Job

_GATES = TypeAdapter(Gates)


def claim_jobs(connection: Connection, host_id: HostId, session_id: SessionId, *, now: datetime) -> None:
    """Claim the next job of every free phone of a host.

    Phones that share a CPU, or a host's limit of runs, take turns: the one that ran longest ago goes first.
    """
    found = devices.list_devices(connection, host_id=host_id)
    candidates = [device for device in found if not blockers(device.state(), check=True)]
    # Mostly every phone is busy, and the rest need not be asked.
    if not candidates:
        return
    load = load_of(connection)
    for device in sorted(candidates, key=lambda device: device.last_attempt_id or 0):
        state = load.state_of(device)
        if blockers(state, check=True):
            continue
        job = jobs.queue_head(connection, device.device_id, checks_only=bool(blockers(state, check=False)))
        if job is None or not _claim(connection, job, device, session_id, now=now):
            continue
        load.take(device)


def _claim(connection: Connection, job: Job, device: Device, session_id: SessionId, *, now: datetime) -> bool:
    """Make the job's next attempt; False when another claimant was quicker, and then nothing is changed."""
    plan = plan_of(connection, job)
    with connection.begin_nested() as savepoint:
        try:
            attempt = attempts.add_attempt(
                connection,
                job_id=job.job_id,
                device_id=device.device_id,
                host_id=device.host_id,
                session_id=session_id,
                facts_id=device.facts_id,
                fence=devices.raise_fence(connection, device.device_id),
                cpu_domain=device.cpu_domain,
                plan=plan,
                now=now,
            )
        except sa.exc.IntegrityError:
            savepoint.rollback()
            return False
        moved = jobs.move_job(
            connection,
            job,
            JobEvent.CLAIMED,
            now=now,
            actor="farm",
            cause=f"attempt {attempt.attempt_id}",
            values={"attempt_id": attempt.attempt_id},
        )
        if moved:
            mark_used(connection, [file.digest for file in plan.files], now=now)
        else:
            savepoint.rollback()
        return moved


def plan_of(connection: Connection, job: Job) -> RunPlan:
    """What an agent is to do for a job."""
    if job.kind is JobKind.CHECK or job.cell_id is None or job.matrix_id is None:
        return device_check.plan(*check_files())
    cell = matrices.get_cell(connection, job.cell_id)
    matrix = matrices.get_matrix(connection, job.matrix_id)
    variant = None if cell.variant_id is None else catalog.get_variant(connection, cell.variant_id)
    program = programs.get_program(connection, cell.program_id)
    request = RunRequest(
        variant=None if variant is None else variant.manifest,
        bundle=program.bundle,
        backend=cell.backend,
        settings=cell.settings,
        lacks=program.lacks,
        timeout_s=matrix.spec["timeout_s"],
        gates=_GATES.validate_python(matrix.spec["gates"]),
    )
    return adapter_of(program).plan(request)
