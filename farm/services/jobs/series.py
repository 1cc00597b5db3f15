"""The series that the runs of a job belong to."""

from collections.abc import Mapping

from farm.core.base.setting_values import SettingValue, non_default_settings
from farm.core.results.series import series_digest, settings_of_series
from farm.core.results.settle.report import NewSeries
from farm.core.runs.plan import RunPlan
from farm.store.jobs.context import JobContext


def series_of_plan(work: JobContext, plan: RunPlan, defaults: Mapping[str, SettingValue]) -> NewSeries:
    """Return the series of a run: what is run, and how it is measured.

    Args:
        work: the job's cell, variant and program.
        plan: how the run is measured; its flags may be others than the cell's, which count.
        defaults: of the harness's flags.
    """
    cell = work.cell
    settings = settings_of_series(
        cell.settings, plan.controls, sustained_s=plan.sustained_s, energy=work.spec.energy
    )
    recipe = None if work.variant is None else work.variant.manifest.recipe
    return NewSeries(
        digest=series_digest(
            model=cell.model,
            recipe=recipe,
            backend=cell.backend,
            harness=work.program.harness,
            settings=settings,
            defaults=defaults,
            device_id=cell.device_id,
        ),
        model=cell.model,
        recipe=recipe,
        backend=cell.backend,
        harness=work.program.harness,
        settings=non_default_settings(settings, defaults),
        device_id=cell.device_id,
    )
