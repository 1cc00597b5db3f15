"""Run plans of the jobs that come next, made by the harnesses before a claim."""

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.base.setting_values import SettingValue
from farm.core.runs.derived.sustained import SLOWEST_FACTOR, SUSTAINED_OUTPUT_BYTES
from farm.core.runs.plan import RunPlan
from farm.harness.base import device_check
from farm.harness.base.adapter import RunRequest
from farm.harness.base.options import flag_defaults
from farm.harness.base.sustained import sustained_settings
from farm.services.files.builtin_programs import check_files
from farm.services.files.harnesses import adapter_of
from farm.services.jobs.claim import RunPlans
from farm.services.jobs.series import series_of_plan
from farm.store.jobs.context import JobContext, job_contexts
from farm.store.jobs.queues import PlanKey, next_jobs_by_plan
from farm.store.results.measurements import newest_mean_ns

#: The number of plans, a few kilobytes each, above which earlier ones are dropped.
_MAX_PLANS = 2000


class RunPlanner:
    """Makes the plans of the jobs that come next in transactions that only read, and keeps them by key.

    So adapters of harnesses are called outside of the farm's write lock. A plan depends on its key alone, and
    a claim can use it whatever has changed since; the number of iterations of a sustained run also on earlier
    runs, so its plan is made again for each. Several threads may use it at once.
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
        plans: dict[PlanKey | None, RunPlan] = {
            key: _plan(connection, contexts[job.job_id]) for key, job in new_jobs.items()
        }
        # How many iterations fill a given time is seen better after each run.
        plan_by_key.update({key: plan for key, plan in plans.items() if plan.sustained_s is None})
        self._plan_by_key = plan_by_key
        return {key: plans.get(key) or plan_by_key[key] for key in (None, *job_by_key)}


def _plan(connection: Connection, context: JobContext) -> RunPlan:
    adapter, spec = adapter_of(context.program), context.spec
    plan = replace(
        adapter.plan(_request(context, context.cell.settings)),
        harness=context.program.harness,
        controls=spec.controls,
        sampling=spec.sampling,
        sustained_s=spec.sustained,
        reads_rails=spec.energy == "rails",
    )
    return plan if spec.sustained is None else _sustained_plan(connection, context, plan, spec.sustained)


def _sustained_plan(connection: Connection, context: JobContext, plan: RunPlan, sustained_s: int) -> RunPlan:
    """Return the plan with flags, time limit and output limit of a run that works for a given time."""
    adapter = adapter_of(context.program)
    flags = adapter.sustained_flags
    # Cells of harnesses without such flags are rejected when their matrix is expanded.
    assert flags is not None
    settings = sustained_settings(
        flags,
        context.cell.settings,
        sustained_s=sustained_s,
        iteration_ns=None if flags.seconds else _iteration_ns(connection, context, plan),
    )
    longer = adapter.plan(_request(context, settings))
    return replace(
        plan,
        settings=longer.settings,
        argv=longer.argv,
        timeout_s=plan.timeout_s + sustained_s * (1.0 if flags.seconds else SLOWEST_FACTOR),
        output_limit_bytes=SUSTAINED_OUTPUT_BYTES,
    )


def _iteration_ns(connection: Connection, context: JobContext, plan: RunPlan) -> float | None:
    """Return what an iteration took in the newest run of the series, else of the cell's usual runs."""
    defaults = flag_defaults(adapter_of(context.program))
    for own in (plan, replace(plan, sustained_s=None)):
        mean_ns = newest_mean_ns(connection, series_of_plan(context, own, defaults).digest)
        if mean_ns is not None:
            return mean_ns
    return None


def _request(context: JobContext, settings: Mapping[str, SettingValue]) -> RunRequest:
    return RunRequest(
        variant=None if context.variant is None else context.variant.manifest,
        bundle=context.program.bundle,
        backend=context.cell.backend,
        settings=settings,
        missing_flags=context.program.missing_flags,
        timeout_s=context.spec.timeout_s,
        gates=context.spec.gates,
    )
