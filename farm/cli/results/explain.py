"""`farm explain`: show the evidence of one measurement or one speedup."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated

import typer
from rich.text import Text

from farm.cli.files.variant_report import built_with_text, file_lines
from farm.cli.jobs.job import flags, job_headline
from farm.cli.jobs.trace_strip import WIDTH, trace_fields
from farm.cli.shell.address import show_view
from farm.cli.shell.options import JobNumber, Json
from farm.cli.shell.tables import Field, Line, text_report
from farm.core.base.ids import CellId, JobId
from farm.core.base.units import duration_text, elapsed_text, ratio_text, size_text
from farm.core.devices.condition import ConditionRange, Gates, ThermalStatus, UnknownGatePolicy
from farm.core.devices.cpu_peak import PeakShare
from farm.core.devices.device import DeviceFacts
from farm.core.models.variant import Manifest
from farm.core.results.looks.look import LookStop
from farm.core.runs.measurement import COUNTED
from farm.presentation.jobs.attempt import predecessor_text
from farm.presentation.jobs.measurement import run_lines
from farm.presentation.speedup_blocks import shown_baseline, shown_verdict
from farm.presentation.text import (
    EMPTY_CELL,
    block_text,
    counts_text,
    device_kind,
    failure_text,
    join_or_dash,
    local_time_text,
    plural,
    round_text,
    speedup_text,
)
from farm.wire.documents.results.explain import (
    CellExplanation,
    ExplainedDevice,
    JobExplanation,
    PlacementView,
    RoundView,
    SideView,
)
from farm.wire.documents.results.speedups import SpeedupView

#: Name and formatter by condition.
_CONDITIONS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "thermal_status": ("thermal status", lambda value: ThermalStatus(int(value)).name),
    "skin_c": ("skin", "{:.1f} °C".format),
    "battery_c": ("battery", "{:.1f} °C".format),
    "battery_level_pct": ("battery", "{:.0f} %".format),
    "load_1m": ("load", "{:.2f}".format),
    "memory_available_bytes": ("free memory", size_text),
}

#: So that a line of the strip has 80 columns at most.
_STRIP_COLUMNS = WIDTH - 3


def side_lines(side: SideView) -> Iterator[Field]:
    """Return the lines about what ran, where it ran, and its outcome."""
    if side.manifest is not None:
        yield from _variant_lines(side.variant or "", side.manifest)
    program = side.program
    files = f"{plural(program.files, 'file')}, {size_text(program.size_bytes)}"
    yield "program", f"{program.harness} for {program.abi}, {files}, {program.digest}"
    yield "clock", f"{program.clock_covers}"
    yield "flags", flags(side.changed_settings)
    yield "requested", side.backend
    for placement in side.placements:
        yield "actual", _placement(placement)
    jobs, runs = counts_text(side.jobs_by_outcome), counts_text(side.runs_by_quality)
    yield "outcome", f"jobs: {jobs}; measurements: {runs}"
    for reason, times in side.quality_reasons.items():
        yield "", f"{times} x {reason}"
    yield from condition_lines(side)
    if side.parser_versions:
        yield "parser", f"version {', '.join(map(str, side.parser_versions))}"


def _variant_lines(name: str, manifest: Manifest) -> Iterator[Field]:
    yield from file_lines(manifest, name=name)
    yield "built with", built_with_text(manifest) or None
    fidelity = manifest.fidelity
    if fidelity is not None:
        yield (
            "fidelity",
            f"with float32 over {plural(fidelity.inputs, 'input')}: correlation {fidelity.correlation:.4f},"
            f" same best class {fidelity.top1_share:.0%}, largest difference {fidelity.max_difference:.3g}",
        )


def _placement(placement: PlacementView) -> str:
    runs = plural(placement.runs, "run")
    last = ", the last one's proof" if placement.proofs > 1 else ""
    return f"{placement.actual_backend} on {placement.accelerator} in {runs}{last}: {placement.proof}"


def condition_lines(side: SideView) -> Iterator[Field]:
    """Return the ranges of conditions over runs, before and after; conditions never reported are left out."""
    ranges = [_condition(condition, len(side.runs)) for condition in side.conditions]
    if side.runs:
        yield "conditions", join_or_dash(ranges) if ranges else "not reported by the device"
    if side.runs_without_evidence:
        yield "", f"of {plural(side.runs_without_evidence, 'run')} the evidence expired"


def _condition(condition: ConditionRange, runs: int) -> str:
    name, form = _CONDITIONS[condition.name]
    spans = [
        EMPTY_CELL
        if span is None
        else form(span[0])
        if span[0] == span[1]
        else f"{form(span[0])} to {form(span[1])}"
        for span in (condition.before, condition.after)
    ]
    reported = "" if condition.known == runs else f" (of {condition.known} runs)"
    return f"{name} {spans[0]} before, {spans[1]} after{reported}"


def device_lines(device: ExplainedDevice) -> Iterator[Field]:
    """Return the device, with one line for each system build that it ran."""
    name = device.device_id if device.label is None else f"{device.label} ({device.device_id})"
    yield "device", f"{name} at {device.host}"
    for build in device.builds:
        yield "", f"{_facts(build.facts)}; {plural(build.runs, 'run')}"
    if len(device.builds) > 1:
        yield "", "its system build changed in between: runs before and after may not be comparable"


def _facts(facts: DeviceFacts) -> str:
    parts = [
        device_kind(facts.device_model, facts.soc, virtual=facts.virtual),
        None if facts.android is None else f"Android {facts.android}",
        None if facts.api_level is None else f"API {facts.api_level}",
        facts.abi,
        None if facts.kernel is None else f"kernel {facts.kernel}",
        facts.build_fingerprint,
    ]
    return ", ".join(part for part in parts if part)


def gates_line(gates: Gates, noise_limit: float | None) -> Field:
    """Return the gates before each run, and the noise limit."""
    conditions = [
        f"thermal status at most {gates.max_thermal_status.name}",
        f"skin at most {gates.max_skin_c:g} °C",
        f"battery at least {gates.min_battery_pct} %",
        "plugged in" if gates.mains else None,
        None if gates.full_clocks else "clocks may be limited",
        "all of them reported" if gates.unknown is UnknownGatePolicy.DEFER else None,
    ]
    noise = "" if noise_limit is None else f"; noisy above {noise_limit:.0%}"
    return "gates", f"{', '.join(filter(None, conditions))}{noise}"


def cell_report(view: CellExplanation) -> Text:
    """Return the report of a comparison, or of a cell without a baseline."""
    lines = [
        *_verdict_line(view),
        *device_lines(view.device),
        gates_line(view.gates, view.noise_limit),
        ("order", f"drawn for each block by seed {view.seed}"),
        *_rounds(view),
        *_disturbed(view),
        *_looks(view),
        *_sides(view),
        "",
        *_cell_links(view),
    ]
    return text_report(_headline(view), lines)


def _headline(view: CellExplanation) -> str:
    where = f"matrix {view.matrix_id} ({view.matrix}), cell {view.candidate.cell_id}"
    speedup = view.speedup
    if speedup is None:
        return f"{view.candidate.label} is not compared; {where}"
    return f"{speedup.candidate} against {shown_baseline(speedup)}: {comparison_text(speedup)}; {where}"


def comparison_text(view: SpeedupView) -> str:
    """Return `1.83x, 1.79 to 1.88, faster`."""
    if view.speedup is None:
        return f"{view.verdict}, no valid round"
    return f"{speedup_text(view.speedup, view.ci_low, view.ci_high)}, {shown_verdict(view)}"


def _verdict_line(view: CellExplanation) -> Iterator[Field]:
    for number, line in enumerate(view.method):
        yield "" if number else "how", line
    speedup = view.speedup
    if speedup is not None and speedup.speedup is None:
        yield "why", speedup.reason or ""
    if speedup is not None and speedup.detectable is not None:
        least = f"{speedup.detectable:.1%}"
        yield "detectable", f"differences of {least} or more, with so many rounds (80 % power)"
    if speedup is not None and speedup.left_out and speedup.speedup_of_all is not None:
        caution = "; more than the interval's half-width apart" if speedup.selection_matters else ""
        yield "with all", f"{ratio_text(speedup.speedup_of_all)} with what is left out below{caution}"
    if speedup is not None and speedup.baseline_min_ns and speedup.candidate_min_ns:
        times = (duration_text(speedup.baseline_min_ns), duration_text(speedup.candidate_min_ns))
        ratio = ratio_text(speedup.baseline_min_ns / speedup.candidate_min_ns)
        yield "minimum", f"{times[0]} → {times[1]}, {ratio}: the shortest iterations over the rounds"
    if view.aa is not None and view.aa.cell_id != view.candidate.cell_id:
        result = f"{comparison_text(view.aa)} (cell {view.aa.cell_id})"
        yield "A/A", f"the baseline against its duplicate: {result}"
    elif speedup is not None and not speedup.aa:
        yield "A/A", "none: `aa: true` in a matrix measures the difference between identical cells"
    if view.compared_to_it:
        cells = ", ".join(map(str, view.compared_to_it))
        yield "baseline of", f"cells {cells}"


def _sides(view: CellExplanation) -> Iterator[Line]:
    """Return both cells; fields of the candidate that equal the baseline's are left out."""
    baseline = [] if view.baseline is None else list(side_lines(view.baseline))
    candidate = list(side_lines(view.candidate))
    if view.baseline is not None:
        yield ""
        yield f"baseline: {view.baseline.label}, cell {view.baseline.cell_id}"
        yield from baseline
    yield ""
    yield f"candidate: {view.candidate.label}, cell {view.candidate.cell_id}"
    yield from (field for field in candidate if field not in baseline)
    if baseline:
        equal = dict.fromkeys(field[0] for field in candidate if field[0] and field in baseline)
        yield f"same as baseline: {', '.join(equal) or 'nothing'}"


def _rounds(view: CellExplanation) -> Iterator[Line]:
    if not view.rounds and not view.left_out:
        return
    yield ""
    yield "round  baseline   candidate  ratio   apart       order in its block   attempts"
    for pair in view.rounds:
        yield _round(pair)
    for block in view.left_out:
        where = block_text(block.block, block.repeat)
        apart = "" if block.minutes_apart is None else f" ({apart_text(block.minutes_apart)} apart)"
        yield f"{block.round:>5}  left out{where and f', {where}'}{apart}: {block.reason}"


def _disturbed(view: CellExplanation) -> Iterator[Line]:
    """Return what happened during the newest run that the device slowed down."""
    run = view.disturbed
    if run is None:
        return
    yield ""
    yield f"{run.label}, attempt {run.attempt_id}, {run.quality}: {'; '.join(run.quality_reasons)}"
    if run.trace is None:
        yield "during", "not sampled, or the samples expired"
    else:
        yield from trace_fields(run.trace, columns=_STRIP_COLUMNS)


def _looks(view: CellExplanation) -> Iterator[Line]:
    if not view.looks:
        return
    yield ""
    yield "look  after round  usable  ratio   interval            confidence  verdict"
    for look in view.looks:
        stopped = f", stopped: {_STOP_TEXT[look.stopped]}" if look.stopped else ""
        if look.ratio is None or look.ci_low is None or look.ci_high is None or look.confidence is None:
            yield f"   -  {look.rounds:>11}  {look.usable:>6}  no interval{stopped}"
        else:
            interval = f"{look.ci_low:.4f} to {look.ci_high:.4f}"
            yield (
                f"{look.number:>4}  {look.rounds:>11}  {look.usable:>6}  {look.ratio:.3f}   {interval:<18}"
                f"  {look.confidence:<10.2%}  {look.verdict}{stopped}"
            )


_STOP_TEXT = {
    LookStop.DECIDED: "it is decided",
    LookStop.NARROW: "its interval is narrow enough",
    LookStop.LAST: "it had all rounds",
    LookStop.UNUSABLE: "too few of its rounds are usable",
}


def _round(pair: RoundView) -> str:
    order = f"{pair.baseline_place} and {pair.candidate_place} of {pair.block_size}"
    times = f"{duration_text(pair.baseline_ns):<9}  {duration_text(pair.candidate_ns):<9}"
    attempts = f"{pair.baseline_attempt}, {pair.candidate_attempt}"
    where = block_text(pair.block, pair.repeat)
    attempts += f" ({where})" if where else ""
    apart = apart_text(pair.minutes_apart)
    return f"{pair.round:>5}  {times}  {pair.ratio:.3f}   {apart:<10}  {order:<19}  {attempts}"


def apart_text(minutes: float | None) -> str:
    """Return how far apart two runs began: `4 min 12 s`."""
    return EMPTY_CELL if minutes is None else elapsed_text(60 * minutes)


def _cell_links(view: CellExplanation) -> Iterator[Line]:
    if view.rounds:
        last = view.rounds[-1]
        yield f"one measurement: farm explain job {last.candidate_job}"
        yield f"output of a run: farm attempt show {last.candidate_attempt}"
    yield f"all jobs: farm matrix jobs {view.matrix_id}"


def number_report(view: JobExplanation) -> Text:
    """Return the report of one measurement."""
    run = None if view.side is None or not view.side.runs else view.side.runs[0]
    lines: list[Line] = [*_job_lines(view)]
    lines += [("value", "none: the job has no measurement")] if run is None else run_lines(run)
    if view.peak is not None:
        lines.append(("peak", peak_text(view.peak)))
    lines.append(("used", view.use))
    if view.trace and run is not None and (run.quality not in COUNTED or view.left_out):
        lines += trace_fields(view.trace, columns=_STRIP_COLUMNS)
    lines += device_lines(view.device)
    if view.gates is not None:
        lines.append(gates_line(view.gates, view.noise_limit))
    if view.side is not None:
        lines += side_lines(view.side)
    lines += ["", *_number_links(view)]
    return text_report(job_headline(view.job), lines)


def peak_text(peak: PeakShare) -> str:
    """Return `34.2% of 38.4 GFLOP/s, the float32 peak of 1 thread on Cortex-A76`."""
    where = f"{plural(peak.threads, 'thread')} on {' and '.join(peak.cores)}"
    unbound = "" if peak.is_bound else ", the fastest cores; the run was not bound to any"
    most = f"{peak.peak_flop_per_s / 1e9:.3g} GFLOP/s"
    return f"{peak.share:.1%} of {most}, the float32 peak of {where}{unbound}"


def _job_lines(view: JobExplanation) -> Iterator[Field]:
    job = view.job
    where = round_text(job.round, job.block, job.repeat)
    yield "of", f"matrix {job.matrix_id} ({job.matrix}), cell {job.cell_id}, {where}"
    if view.place is not None:
        yield "order", f"{view.place} of the {view.block_size} that ran in its block"
    if view.side is not None and view.side.runs and view.side.runs[0].order is not None:
        yield "", predecessor_text(view.side.runs[0].order.predecessor)
    if job.message:
        yield "why", failure_text(job.message, job.code)
    if view.side is not None and view.side.runs:
        run = view.side.runs[0]
        tries = f", the last of {len(job.attempts)}" if len(job.attempts) > 1 else ""
        yield "measured", f"{local_time_text(run.measured_at)}, in attempt {run.attempt_id}{tries}"
    if view.waited_s is not None and view.pushed_bytes is not None:
        waited, pushed = elapsed_text(view.waited_s), size_text(view.pushed_bytes)
        yield "before it", f"waited {waited} for gates, pushed {pushed}"


def _number_links(view: JobExplanation) -> Iterator[Line]:
    if view.job.attempts:
        yield f"its output: farm job logs {view.job.job_id}"
        yield f"the run itself: farm attempt show {view.job.attempts[-1]}"
    for cell_id in view.cells[:4]:
        yield f"its comparison: farm explain cell {cell_id}"


app = typer.Typer(no_args_is_help=True)


@app.command("cell")
def cell_command(
    cell_id: Annotated[int, typer.Argument(metavar="ID", help="The cell's number, as in `farm speedups`.")],
    as_json: Json = False,
) -> None:
    """Explain a speedup: both cells, all rounds, interval, device, conditions and placement proof.

    Example: farm explain cell 12
    """
    show_view(lambda farm: farm.explain_cell(CellId(cell_id)), cell_report, as_json=as_json)


@app.command("job")
def job_command(job_id: JobNumber, as_json: Json = False) -> None:
    """Explain one measurement: file, program, device, conditions, placement proof, and its use.

    Example: farm explain job 17
    """
    show_view(lambda farm: farm.explain_job(JobId(job_id)), number_report, as_json=as_json)
