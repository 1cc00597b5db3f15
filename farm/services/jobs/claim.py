"""Gives free phones their next jobs: the device's head of queue becomes a live attempt with a frozen plan."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId, SessionId
from farm.core.devices.condition import Gates
from farm.core.devices.controls import Controls
from farm.core.devices.device import blockers
from farm.core.jobs.job import Job
from farm.core.runs.plan import RunPlan
from farm.harness.base import device_check
from farm.harness.base.adapter import RunRequest
from farm.services.devices.views import Load, load_of
from farm.services.files.adapters import adapter_of
from farm.services.files.check_files import check_files
from farm.services.jobs.deferral import due_jobs
from farm.services.jobs.diagnostic_passes import with_due_passes
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.files.artifacts import mark_used
from farm.store.jobs import attempts, jobs
from farm.store.jobs.attempts import NewAttempt
from farm.store.jobs.context import JobContext, job_contexts
from farm.store.jobs.queues import queue_heads, queued_checks

_CONTROLS = TypeAdapter(Controls)
_GATES = TypeAdapter(Gates)


def claim_jobs(
    connection: Connection,
    host_id: HostId,
    session_id: SessionId,
    *,
    going_on: int = 0,
    known: Sequence[Device] | None = None,
    now: datetime,
) -> bool:
    """Claim the next job of every free phone of a host: in a handful of statements, however many phones.

    `going_on` are runs there that no live attempt stands for; `known` are the host's phones, where they have
    been looked up in this transaction. False when there was nothing to claim.
    """
    found = devices.list_devices(connection, host_id=host_id) if known is None else known
    chosen = _choose_jobs(connection, host_id, found, going_on, now=now)
    if chosen and not _claim(connection, chosen, session_id, now=now):
        # Another claimant was quicker with one of them; the others need not wait for that.
        for each in chosen:
            _claim(connection, [each], session_id, now=now)
    return bool(chosen)


def _choose_jobs(
    connection: Connection, host_id: HostId, found: Sequence[Device], going_on: int, *, now: datetime
) -> list[tuple[Device, Job]]:
    """What each free phone of a host is to run next.

    Phones that share a CPU, or a host's limit of runs, take turns: the one that ran longest ago goes first.
    """
    free = [device for device in found if not blockers(device.state(), check=True)]
    if not free:
        # Mostly every phone is busy, and then nobody asks which CPUs are.
        return []
    job_by_device = due_jobs(connection, _next_jobs(connection, free), now=now)
    load = load_of(connection) if any(map(_shares, free)) else Load()
    load.runs_by_host[host_id] += going_on
    chosen = []
    for device in sorted(free, key=lambda device: device.last_attempt_id or 0):
        job = job_by_device.get(device.device_id)
        if job is None or blockers(load.state_of(device), check=True):
            continue
        chosen.append((device, job))
        load.take(device)
    return chosen


def _shares(device: Device) -> bool:
    """Whether others' runs may keep a device waiting: mostly none does, and nobody asks for them."""
    return device.cpu_domain is not None or device.host_max_runs is not None


def _next_jobs(connection: Connection, free: Sequence[Device]) -> dict[DeviceId, Job]:
    """The head of each phone's queue; of a phone that has to earn its health, its check."""
    fit = [device.device_id for device in free if not blockers(device.state(), check=False)]
    others = [device.device_id for device in free if device.device_id not in fit]
    return {**queue_heads(connection, fit), **queued_checks(connection, others)}


def _claim(
    connection: Connection, chosen: Sequence[tuple[Device, Job]], session_id: SessionId, *, now: datetime
) -> bool:
    """Make the jobs' next attempts; False when another claimant was quicker, and then nothing is changed."""
    work_by_job = job_contexts(connection, [job for _, job in chosen])
    with connection.begin_nested() as savepoint:
        fences = devices.raise_fences(connection, [device.device_id for device, _ in chosen])
        claims = [
            NewAttempt(
                job_id=job.job_id,
                device_id=device.device_id,
                host_id=device.host_id,
                facts_id=device.facts_id,
                fence=fences[device.device_id],
                cpu_domain=device.cpu_domain,
                plan=_due_plan(connection, work_by_job.get(job.job_id), device),
            )
            for device, job in chosen
        ]
        if _record(connection, claims, [job for _, job in chosen], session_id, now=now):
            return True
        savepoint.rollback()
        return False


def _record(
    connection: Connection,
    claims: Sequence[NewAttempt],
    claimed: Sequence[Job],
    session_id: SessionId,
    *,
    now: datetime,
) -> bool:
    try:
        attempt_ids = attempts.add_attempts(connection, claims, session_id=session_id, now=now)
    except sa.exc.IntegrityError:
        return False
    attempt_by_job = list(zip(claimed, attempt_ids, strict=True))
    if not jobs.activate_jobs(connection, attempt_by_job, now=now, actor="farm"):
        return False
    mark_used(connection, {file.digest for claim in claims for file in claim.plan.files}, now=now)
    return True


def _due_plan(connection: Connection, work: JobContext | None, device: Device) -> RunPlan:
    plan = plan_of(work)
    if work is None:
        return plan
    return with_due_passes(
        connection,
        plan,
        cell_id=work.cell.cell_id,
        facts_id=device.facts_id,
        program_digest=work.program.digest,
    )


def plan_of(work: JobContext | None) -> RunPlan:
    """What an agent is to do for a benchmark, or without one for a check."""
    if work is None:
        return device_check.plan(*check_files())
    request = RunRequest(
        variant=None if work.variant is None else work.variant.manifest,
        bundle=work.program.bundle,
        backend=work.cell.backend,
        settings=work.cell.settings,
        missing_flags=work.program.missing_flags,
        timeout_s=work.terms.spec["timeout_s"],
        gates=_GATES.validate_python(work.terms.spec["gates"]),
    )
    # Of a matrix that was submitted before there were any, they are the defaults.
    controls = _CONTROLS.validate_python(work.terms.spec.get("controls", {}))
    return replace(adapter_of(work.program).plan(request), controls=controls)
