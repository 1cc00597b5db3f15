"""`farm rerun`: measure one number again as it was made."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.text import Text

from farm.cli.matrices.matrix import exit_code_of, follow, submission_text
from farm.cli.run.result import result_document
from farm.cli.shell.address import connect
from farm.cli.shell.next_steps import farm_command, watch_again_text, watch_text
from farm.cli.shell.options import Json, WatchToEnd
from farm.cli.shell.output import print_data, print_done, print_json, print_notice, show
from farm.cli.shell.tables import Field, text_report
from farm.core.base.ids import AttemptId
from farm.core.base.units import duration_text
from farm.core.runs.measurement import CellSummary
from farm.presentation.labels import device_name
from farm.presentation.text import EMPTY_CELL, local_time_text, plural_range, range_text, speedup_text
from farm.wire.documents.matrices.matrices import MatrixResults
from farm.wire.documents.results.rerun import RerunDifference, RerunPlan, RerunResult
from farm.wire.documents.results.results import ResultView
from farm.wire.documents.results.speedups import SpeedupView


def rerun(
    attempt_id: Annotated[
        int, typer.Argument(metavar="ATTEMPT", help="The attempt's number, as `farm matrix jobs` shows it.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be measured, and what is not the same.")
    ] = False,
    watch: WatchToEnd = True,
    as_json: Json = False,
) -> None:
    """Measure one number again as it was made: the same files, program, settings and device.

    Its cell runs with its baseline's in a matrix of their own. What is no longer the same is said before; at
    the end, the old number is shown beside the new one.

    Example: farm rerun 17 --dry-run
    """
    with connect() as farm:
        plan = farm.plan_rerun(AttemptId(attempt_id))
        if dry_run:
            show(plan, plan_report, as_json=as_json)
            return
        print_notice(plan_report(plan).plain)
        view = farm.rerun_attempt(AttemptId(attempt_id))
        print_notice(submission_text(view))
        if not watch:
            print_done(view, watch_text(view.matrix_id), as_json=as_json)
            return
        finished = follow(farm, view.matrix_id, leaving=watch_again_text(view.matrix_id))
        results, speedups = farm.results(view.matrix_id), farm.speedups(matrix_id=view.matrix_id)
        result = rerun_result(plan, result_document(finished, results, speedups))
    if as_json:
        print_json(result)
    else:
        print_data(comparison_report(result))
        print_notice(f"Details: {farm_command()} speedups {view.matrix_id}")
    raise typer.Exit(exit_code_of(finished))


def plan_report(plan: RerunPlan) -> Text:
    """Return what is measured again, and what is no longer the same."""
    headline = f"attempt {plan.attempt_id}: {plan.label} on {device_name(plan)}, {plan.harness}"
    return text_report(headline, _plan_fields(plan), width=9)


def _plan_fields(plan: RerunPlan) -> Iterator[Field]:
    measured = f", {local_time_text(plan.measured_at)}" if plan.measured_at else ""
    yield "of", f"matrix {plan.matrix_id} ({plan.matrix}){measured}"
    yield "was", _number_text(plan.speedup, plan.time)
    beside = "" if plan.baseline is None else f" beside {plan.baseline}"
    rounds = plural_range(plan.rounds, plan.max_rounds, "round")
    yield "repeats", f"{plan.label}{beside}: {rounds}, {range_text(plan.jobs, plan.max_jobs)} jobs"
    yield from (("changed", difference_text(difference)) for difference in plan.differences)
    if not plan.differences:
        yield "changed", "nothing that the farm knows of"


def difference_text(difference: RerunDifference) -> str:
    """Return `program of X for arm64-v8a: 3f2a91c4, now 9c1b07de; the old one is used`."""
    used = "; the old one is used" if difference.uses_before else ""
    return f"{difference.part}: {difference.before}, now {difference.now}{used}"


def _number_text(speedup: SpeedupView | None, time: CellSummary | None) -> str:
    parts = [_speedup_text(speedup), None if time is None else duration_text(time.median)]
    return "; ".join(part for part in parts if part) or "not measured"


def _speedup_text(view: SpeedupView | None) -> str | None:
    if view is None or view.speedup is None:
        return None
    return speedup_text(view.speedup, view.ci_low, view.ci_high)


def rerun_result(plan: RerunPlan, again: MatrixResults) -> RerunResult:
    """Return a finished rerun, and whether it agrees with what it repeats."""
    new, time = _own_speedup(plan, again.speedups), _own_time(plan, again.results)
    if plan.baseline is None:
        agrees = _overlap(_time_interval(plan.time), _time_interval(time))
    else:
        agrees = _overlap(_speedup_interval(plan.speedup), _speedup_interval(new))
    return RerunResult(plan=plan, again=again, agrees=agrees)


def _own_speedup(plan: RerunPlan, views: Sequence[SpeedupView]) -> SpeedupView | None:
    """Return the comparison of the cell that is repeated, not that of its baseline's duplicate."""
    was_duplicate = plan.speedup is not None and plan.speedup.aa
    return next((view for view in views if view.aa is was_duplicate), None)


def _own_time(plan: RerunPlan, views: Sequence[ResultView]) -> CellSummary | None:
    """Return the time of the cell that is repeated: it is the last one of its matrix."""
    return views[-1].time if views else None


def comparison_report(result: RerunResult) -> Text:
    """Return the old number beside the new one."""
    plan, again = result.plan, result.again
    new, time = _own_speedup(plan, again.speedups), _own_time(plan, again.results)
    rows = []
    if plan.baseline is not None:
        rows.append(("speedup", _speedup_text(plan.speedup), _speedup_text(new)))
    rows.append(("time", _time_text(plan.time), _time_text(time)))
    cells = [("", f"matrix {plan.matrix_id}", f"matrix {again.matrix.matrix_id}"), *rows]
    texts = [[EMPTY_CELL if cell is None else cell for cell in row] for row in cells]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = [
        "  ".join(f"{cell:{size}}" for cell, size in zip(row, widths, strict=True)).rstrip() for row in texts
    ]
    return Text("\n".join([*lines, agreement_text(result.agrees)]))


def agreement_text(agrees: bool | None) -> str:
    """Return what the two intervals say of each other."""
    if agrees is None:
        return "One of the two has no interval: nothing says whether they agree."
    if agrees:
        return "The intervals overlap: the number was made again."
    return "The intervals do not overlap: something changed, or the sessions differ."


_Interval = tuple[float, float] | None


def _overlap(one: _Interval, other: _Interval) -> bool | None:
    if one is None or other is None:
        return None
    return one[0] <= other[1] and other[0] <= one[1]


def _speedup_interval(view: SpeedupView | None) -> _Interval:
    return (
        None if view is None or view.ci_low is None or view.ci_high is None else (view.ci_low, view.ci_high)
    )


def _time_interval(time: CellSummary | None) -> _Interval:
    return (
        None if time is None or time.ci_low is None or time.ci_high is None else (time.ci_low, time.ci_high)
    )


def _time_text(time: CellSummary | None) -> str | None:
    if time is None:
        return None
    interval = _time_interval(time)
    between = "" if interval is None else f", {duration_text(interval[0])} to {duration_text(interval[1])}"
    return f"{duration_text(time.median)}{between}"
