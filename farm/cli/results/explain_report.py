"""Reports of `farm explain`: the result first, then its evidence."""

from collections.abc import Iterator

from rich.text import Text

from farm.cli.jobs.job_report import field, job_headline, run_lines
from farm.cli.results.explain_side import device_lines, gates_line, side_lines
from farm.cli.shell.formatting import local_time_text
from farm.core.base.units import duration_text, elapsed_text, ratio_text, size_text
from farm.wire.documents.matrices.matrices import SpeedupView
from farm.wire.documents.results.explain import CellExplanation, JobExplanation, RoundView


def cell_report(view: CellExplanation) -> Text:
    """Return the report of a comparison, or of a cell without a baseline."""
    lines = [*_verdict_line(view), *device_lines(view.device), gates_line(view.gates, view.noise_limit)]
    lines += [field("order", f"shuffled in each round, seed {view.seed}")]
    lines += _rounds(view)
    lines += [*_sides(view), "", *_cell_links(view)]
    return Text("\n").join([Text(_headline(view), style="bold"), *map(Text, lines)])


def _headline(view: CellExplanation) -> str:
    where = f"matrix {view.matrix_id} ({view.matrix}), cell {view.candidate.cell_id}"
    speedup = view.speedup
    if speedup is None:
        return f"{view.candidate.label} is not compared; {where}"
    return f"{speedup.candidate} against {speedup.baseline}: {comparison_text(speedup)}; {where}"


def comparison_text(view: SpeedupView) -> str:
    """Return `1.83x, 1.79 to 1.88, faster`."""
    if view.speedup is None:
        return f"{view.verdict}, no valid round"
    interval = "no interval"
    if view.ci_low is not None and view.ci_high is not None:
        interval = f"{ratio_text(view.ci_low)} to {ratio_text(view.ci_high)}"
    return f"{ratio_text(view.speedup)}, {interval}, {view.verdict}"


def _verdict_line(view: CellExplanation) -> Iterator[str]:
    for number, line in enumerate(view.method):
        yield field("" if number else "how", line)
    speedup = view.speedup
    if speedup is not None and speedup.speedup is None:
        yield field("why", speedup.reason or "")
    if speedup is not None and speedup.detectable is not None:
        yield field(
            "detectable", f"differences of {speedup.detectable:.1%} or more, with these rounds (80 % power)"
        )
    if view.aa is not None and view.aa.cell_id != view.candidate.cell_id:
        yield field(
            "A/A", f"the baseline against its duplicate: {comparison_text(view.aa)} (cell {view.aa.cell_id})"
        )
    elif speedup is not None and not speedup.aa:
        yield field("A/A", "none: `aa: true` in a matrix measures the difference between identical cells")
    if view.compared_to_it:
        cells = ", ".join(map(str, view.compared_to_it))
        yield field("baseline of", f"cells {cells}")


def _sides(view: CellExplanation) -> Iterator[str]:
    """Return both cells; lines of the candidate that equal the baseline's are left out."""
    baseline_lines: list[str] = []
    if view.baseline is not None:
        baseline_lines = list(side_lines(view.baseline))
        yield from ("", f"baseline: {view.baseline.label}, cell {view.baseline.cell_id}", *baseline_lines)
    candidate_lines = list(side_lines(view.candidate))
    yield from ("", f"candidate: {view.candidate.label}, cell {view.candidate.cell_id}")
    yield from (line for line in candidate_lines if line not in baseline_lines)
    if baseline_lines:
        equal = [line.split("  ")[0] for line in candidate_lines if line in baseline_lines]
        yield f"same as baseline: {', '.join(dict.fromkeys(filter(None, equal))) or 'nothing'}"


def _rounds(view: CellExplanation) -> Iterator[str]:
    if not view.rounds and not view.left_out:
        return
    yield ""
    yield "round  baseline   candidate  ratio   order in its block   attempts"
    for pair in view.rounds:
        yield _round(pair)
    for block in view.left_out:
        repeat = f", repeat {block.repeat}" if block.repeat else ""
        yield f"{block.round:>5}  left out{repeat}: {block.reason}"


def _round(pair: RoundView) -> str:
    repeat = f" (repeat {pair.repeat})" if pair.repeat else ""
    order = f"{pair.baseline_place} and {pair.candidate_place} of {pair.block_size}"
    times = f"{duration_text(pair.baseline_ns):<9}  {duration_text(pair.candidate_ns):<9}"
    attempts = f"{pair.baseline_attempt}, {pair.candidate_attempt}"
    return f"{pair.round:>5}  {times}  {pair.ratio:.3f}   {order:<19}  {attempts}{repeat}"


def _cell_links(view: CellExplanation) -> Iterator[str]:
    if view.rounds:
        last = view.rounds[-1]
        yield f"one measurement: farm explain job {last.candidate_job}"
        yield f"output of a run: farm attempt show {last.candidate_attempt}"
    yield f"all jobs: farm matrix jobs {view.matrix_id}"


def number_report(view: JobExplanation) -> Text:
    """Return the report of one measurement."""
    run = None if view.side is None or not view.side.runs else view.side.runs[0]
    lines = [*_job_lines(view)]
    lines += [field("value", "none: the job has no measurement")] if run is None else run_lines(run)
    lines += _use(view)
    lines += device_lines(view.device)
    if view.gates is not None:
        lines.append(gates_line(view.gates, view.noise_limit))
    if view.side is not None:
        lines += side_lines(view.side)
    lines += ["", *_number_links(view)]
    return Text("\n").join([Text(job_headline(view.job), style="bold"), *map(Text, lines)])


def _job_lines(view: JobExplanation) -> Iterator[str]:
    job = view.job
    repeat = f", repeat {job.repeat} of its block" if job.repeat else ""
    yield field("of", f"matrix {job.matrix_id} ({job.matrix}), cell {job.cell_id}, round {job.round}{repeat}")
    if view.place is not None:
        yield field("order", f"{view.place} of the {view.block_size} that ran in its block")
    if job.message:
        yield field("why", f"{job.message} [{job.code}]" if job.code else job.message)
    if view.side is not None and view.side.runs:
        run = view.side.runs[0]
        tries = f", the last of {len(job.attempts)}" if len(job.attempts) > 1 else ""
        yield field("measured", f"{local_time_text(run.measured_at)}, in attempt {run.attempt_id}{tries}")
    if view.waited_s is not None and view.pushed_bytes is not None:
        waited, pushed = elapsed_text(view.waited_s), size_text(view.pushed_bytes)
        yield field("before it", f"waited {waited} for gates, pushed {pushed}")


def _use(view: JobExplanation) -> Iterator[str]:
    if view.use is not None:
        yield field("used", view.use)


def _number_links(view: JobExplanation) -> Iterator[str]:
    if view.job.attempts:
        yield f"its output: farm job logs {view.job.job_id}"
        yield f"the run itself: farm attempt show {view.job.attempts[-1]}"
    for cell_id in view.cells[:4]:
        yield f"its comparison: farm explain cell {cell_id}"
