"""Claims: the next job of each free device becomes a live attempt with a frozen plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId, SessionId
from farm.core.devices.device import blockers
from farm.core.jobs.job import Job
from farm.core.runs.plan import PLACEMENT_PROBE, RunPlan
from farm.database.transaction import Tx
from farm.services.devices.views import Load, load_of
from farm.services.jobs.deferral import due_jobs
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.files.artifacts import mark_used
from farm.store.jobs import attempts, jobs
from farm.store.jobs.attempts import NewAttempt
from farm.store.jobs.queues import PlanKey, plan_keys, queue_heads, queued_checks
from farm.store.results.placements import earlier_runs

#: Run plans by plan key. A check has no cell, so no key: its plan is under None.
RunPlans = Mapping[PlanKey | None, RunPlan]

#: Accepted measurements after which a probe that showed nothing is given up. More than one: the device may
#: have been disconnected during the first.
_PROBE_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult:
    """The result of a claim for the devices of a host."""

    #: At least one claim was attempted; another claimant may have won all of them.
    had_candidates: bool = False
    #: The next job of a free device has no plan yet: it keeps its turn, and is claimed with plans read again.
    needs_plans: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A free device, its next job, and the plan without what earlier runs showed."""

    device: Device
    job: Job
    key: PlanKey | None
    plan: RunPlan


def claim_jobs(
    tx: Tx,
    host_id: HostId,
    session_id: SessionId,
    *,
    plans: RunPlans,
    orphaned_runs: int = 0,
    known_devices: Sequence[Device] | None = None,
) -> ClaimResult:
    """Claim the next job of every free device of a host.

    Claims are written in one batch, or one by one when another claimant was quicker. Deferrals and earlier
    placements are read per device.

    Args:
        plans: made before this transaction; a job whose plan is missing, or was made of something else, stays
            queued.
        orphaned_runs: runs on the host that no live attempt stands for.
        known_devices: the host's devices, where this transaction has read them.
    """
    host_devices = (
        devices.list_devices(tx.connection, host_id=host_id) if known_devices is None else known_devices
    )
    chosen = _choose_jobs(tx, host_id, host_devices, orphaned_runs)
    if not chosen:
        return ClaimResult()
    candidates = _planned(tx.connection, chosen, plans)
    if candidates and not _claim(tx, candidates, session_id):
        # Another claimant was quicker with one of them; the others need not wait for that.
        for candidate in candidates:
            _claim(tx, [candidate], session_id)
    return ClaimResult(had_candidates=bool(candidates), needs_plans=len(candidates) < len(chosen))


def _choose_jobs(
    tx: Tx, host_id: HostId, host_devices: Sequence[Device], orphaned_runs: int
) -> list[tuple[Device, Job]]:
    """Choose the next job of each free device of a host.

    Devices that share a CPU, or a host's limit of runs, take turns: the one whose last claim is oldest
    goes first.
    """
    free = [device for device in host_devices if not blockers(device.state(), check=True)]
    if not free:
        # Usually every device is busy; then the load is not read.
        return []
    job_by_device = due_jobs(tx, _next_jobs(tx.connection, free))
    load = load_of(tx.connection) if any(map(_may_wait_for_others, free)) else Load()
    load.runs_by_host[host_id] += orphaned_runs
    chosen = []
    for device in sorted(free, key=lambda device: device.last_attempt_id or 0):
        job = job_by_device.get(device.device_id)
        if job is None or blockers(load.state_of(device), check=True):
            continue
        chosen.append((device, job))
        load.take(device)
    return chosen


def _may_wait_for_others(device: Device) -> bool:
    """Tell whether runs on other devices may keep this one waiting, which is rare."""
    return device.cpu_domain is not None or device.host_max_runs is not None


def _next_jobs(connection: Connection, free: Sequence[Device]) -> dict[DeviceId, Job]:
    """Return the head of each device's queue; of a device that has to earn its health, its check."""
    fit = [device.device_id for device in free if not blockers(device.state(), check=False)]
    others = [device.device_id for device in free if device.device_id not in fit]
    return {**queue_heads(connection, fit), **queued_checks(connection, others)}


def _planned(
    connection: Connection, chosen: Sequence[tuple[Device, Job]], plans: RunPlans
) -> list[_Candidate]:
    """Return what can be claimed with these plans."""
    # Checks have no plan key.
    key_by_job = plan_keys(connection, [job for _, job in chosen])
    return [
        _Candidate(device=device, job=job, key=key, plan=plans[key])
        for device, job in chosen
        if (key := key_by_job.get(job.job_id)) in plans
    ]


def _claim(tx: Tx, candidates: Sequence[_Candidate], session_id: SessionId) -> bool:
    """Make the jobs' next attempts; False when another claimant was quicker, and then nothing is changed."""
    with tx.connection.begin_nested() as savepoint:
        fences = devices.raise_fences(tx.connection, [candidate.device.device_id for candidate in candidates])
        new_attempts = [
            NewAttempt(
                job_id=candidate.job.job_id,
                device_id=candidate.device.device_id,
                host_id=candidate.device.host_id,
                facts_id=candidate.device.facts_id,
                fence=fences[candidate.device.device_id],
                cpu_domain=candidate.device.cpu_domain,
                plan=_plan_with_needed_passes(tx.connection, candidate),
            )
            for candidate in candidates
        ]
        if _record(tx, new_attempts, [candidate.job for candidate in candidates], session_id):
            return True
        savepoint.rollback()
        return False


def _record(
    tx: Tx, new_attempts: Sequence[NewAttempt], jobs_to_claim: Sequence[Job], session_id: SessionId
) -> bool:
    """Add the attempts and activate their jobs; return False when another claimant was quicker."""
    try:
        attempt_ids = attempts.add_attempts(tx, new_attempts, session_id=session_id)
    except sa.exc.IntegrityError:
        return False
    claims = list(zip(jobs_to_claim, attempt_ids, strict=True))
    if not jobs.activate_jobs(tx.by("farm"), claims):
        return False
    mark_used(tx, {file.digest for attempt in new_attempts for file in attempt.plan.files})
    return True


def _plan_with_needed_passes(connection: Connection, candidate: _Candidate) -> RunPlan:
    """Keep the diagnostic passes that this run needs, and add the placement that earlier ones showed.

    The placement probe is repeated until it has shown the hardware or the cell has `_PROBE_TRIES` accepted
    measurements; any other pass until it has one. Both are counted per cell, system build and program.
    """
    plan, key = candidate.plan, candidate.key
    if key is None or not plan.passes:
        return plan
    earlier = earlier_runs(connection, key.cell_id, candidate.device.facts_id, key.program_digest)
    is_needed = {
        run_pass.name: earlier.shown is None and earlier.runs < _PROBE_TRIES
        if run_pass.name == PLACEMENT_PROBE
        else earlier.runs == 0
        for run_pass in plan.passes
    }
    passes = tuple(run_pass for run_pass in plan.passes if is_needed[run_pass.name])
    return replace(plan, passes=passes, shown=earlier.shown if PLACEMENT_PROBE in is_needed else None)
