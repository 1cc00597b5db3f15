"""Run plans of the jobs that come next, made by the harnesses before a claim."""

from dataclasses import replace

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.runs.plan import RunPlan
from farm.harness.base import device_check
from farm.harness.base.adapter import RunRequest
from farm.services.files.builtin_programs import check_files
from farm.services.files.harnesses import adapter_of
from farm.services.jobs.claim import RunPlans
from farm.store.jobs.context import JobContext, job_contexts
from farm.store.jobs.queues import PlanKey, next_jobs_by_plan

#: Above so many plans, which are a few kilobytes each, earlier ones are dropped.
_MAX_PLANS = 2000


class RunPlanner:
    """Makes the plans of the jobs that come next in transactions that only read, and keeps them by key.

    So adapters of harnesses are called outside of the farm's write lock. A plan depends on its key alone, and
    a claim can use it whatever has changed since. Several threads may use it at once.
    """

    def __init__(self) -> None:
        self._plan_by_key: dict[PlanKey | None, RunPlan] = {None: device_check.plan(*check_files())}

    def plan_next_jobs(self, connection: Connection, host_id: HostId) -> RunPlans:
        """Return the plans of a check and of the next job of each device of a host without a live attempt.

        Raises:
            NotFound: this version of the farm has no adapter for a program.
        """
        plan_by_key = self._plan_by_key
        if len(plan_by_key) > _MAX_PLANS:
            plan_by_key = {None: plan_by_key[None]}
        job_by_key = next_jobs_by_plan(connection, host_id)
        new_jobs = {key: job for key, job in job_by_key.items() if key not in plan_by_key}
        contexts = job_contexts(connection, new_jobs.values())
        plan_by_key.update({key: _plan(contexts[job.job_id]) for key, job in new_jobs.items()})
        self._plan_by_key = plan_by_key
        return {key: plan_by_key[key] for key in (None, *job_by_key)}


def _plan(context: JobContext) -> RunPlan:
    spec = context.spec
    request = RunRequest(
        variant=None if context.variant is None else context.variant.manifest,
        bundle=context.program.bundle,
        backend=context.cell.backend,
        settings=context.cell.settings,
        missing_flags=context.program.missing_flags,
        timeout_s=spec.timeout_s,
        gates=spec.gates,
    )
    return replace(adapter_of(context.program).plan(request), controls=spec.controls, sampling=spec.sampling)
