"""The conditions of a device over its last runs, as trends: one for each value that it reports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from farm.core.base.units import duration_text
from farm.core.checks.reference_run import ReferenceRun
from farm.store.devices.run_conditions import RunCondition
from farm.web.charts.trend import AxisUnit, TimedValue, Trend, axis_unit, value_trend


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionPlot:
    """One value over the runs of a device: `field` names it in the rows of the table."""

    field: str
    name: str
    unit: str
    trend: Trend


_SHOWN: tuple[tuple[str, str, str, Callable[[RunCondition], float | None]], ...] = (
    ("battery", "battery before the run", " °C", lambda run: run.start_battery_c),
    ("skin", "skin before the run", " °C", lambda run: run.start_skin_c),
    ("clock", "lowest limit of a clock during the run, of the hardware's", " %", lambda run: run.clock_pct),
)


def condition_plots(runs: Sequence[RunCondition]) -> list[ConditionPlot]:
    """Return the plots of runs, the newest of which is first; none of what is not known."""
    plots = []
    for field, name, unit, value in _SHOWN:
        points = [
            TimedValue(
                at=run.measured_at, value=known, words=f"attempt {run.attempt_id}: {_with_unit(unit, known)}"
            )
            for run in reversed(runs)
            for known in [value(run)]
            if known is not None
        ]
        trend = value_trend(name, points, partial(_with_unit, unit))
        if trend is not None:
            plots.append(ConditionPlot(field=field, name=name, unit=unit, trend=trend))
    return plots


def _with_unit(unit: str, value: float) -> str:
    return f"{value:g}{unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencePlot:
    """The times of a device's reference runs."""

    trend: Trend
    unit: AxisUnit


def reference_plot(runs: Sequence[ReferenceRun]) -> ReferencePlot | None:
    """Return the times of reference runs, the newest of which is first; None without one."""
    points = [
        TimedValue(
            at=run.measured_at, value=run.value_ns, words=f"{duration_text(run.value_ns)}, {run.verdict}"
        )
        for run in reversed(runs)
    ]
    trend = value_trend("time of the reference run", points, duration_text)
    return None if trend is None else ReferencePlot(trend=trend, unit=axis_unit(runs[0].value_ns))
