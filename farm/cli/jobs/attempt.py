"""`farm attempt`: show one run: command, conditions, output and evaluation."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import typer
from pydantic import TypeAdapter
from rich.text import Text

from farm.cli.jobs.energy import energy_fields
from farm.cli.jobs.job import metric_text
from farm.cli.jobs.profile import profile_fields
from farm.cli.jobs.trace_strip import trace_fields
from farm.cli.shell.address import show_view
from farm.cli.shell.options import Json
from farm.cli.shell.tables import Field, Line, text_report
from farm.core.base.ids import AttemptId
from farm.core.base.units import duration_text, elapsed_text, size_text
from farm.core.devices.condition import Condition, CpuPolicy, Gates, unknown_gates
from farm.core.devices.controls import ControlState
from farm.core.jobs.run_order import Predecessor, RunOrder
from farm.core.runs.derived.generation import Generation
from farm.core.runs.evidence import Evidence, ExitRecord, PassEvidence, RunError
from farm.core.runs.measurement import UNKNOWN_ACCELERATOR, SampleKind
from farm.core.runs.plan import PlanFile, RunPlan
from farm.presentation.labels import device_name
from farm.presentation.text import EMPTY_CELL, duration_or_nothing, failure_text, local_time_text, plural
from farm.wire.documents.matrices.matrices import AttemptView
from farm.wire.documents.results.results import EnergyImport, ReadingView

#: Lines shown of the beginning and of the end of an output.
HEAD_LINES, TAIL_LINES = 10, 20

_PLAN = TypeAdapter(RunPlan)
_EVIDENCE = TypeAdapter(Evidence)


def reading_fields(view: ReadingView) -> Iterator[Field]:
    """Return names and texts of time, spread, metrics and placement."""
    yield "time", f"{duration_text(view.value_ns)}, {_samples_text(view)}"
    if view.kind is SampleKind.SAMPLES:
        yield "samples", _spread(view)
    if view.profile is not None:
        yield from profile_fields(view.profile)
    for energy in view.energy:
        yield from energy_fields(energy)
    for metric in view.metrics:
        yield "metric", metric_text(metric)
    accelerator = "unknown accelerator" if view.accelerator == UNKNOWN_ACCELERATOR else view.accelerator
    yield "actual", f"{view.actual_backend}, {accelerator}: {view.proof or EMPTY_CELL}"
    if view.generation is not None:
        yield from _generation_fields(view.generation)
    if view.offered:
        yield "offered", f"{', '.join(view.offered)}: devices that NNAPI offered"


def _generation_fields(generation: Generation) -> Iterator[Field]:
    yield "regime", str(generation.regime)
    for when, files in (("before", generation.caches_before), ("after", generation.caches_after)):
        if files is not None:
            listed = ", ".join(f"{file.name} {size_text(file.size_bytes)}" for file in files)
            yield "caches", f"{when}: {listed or 'none'}"
    for name, digest in (("prompt", generation.prompt_sha256), ("text", generation.text_sha256)):
        if digest is not None:
            yield name, f"SHA-256 {digest}"


def _samples_text(view: ReadingView) -> str:
    if view.kind is SampleKind.SUMMARY:
        deviation = "" if view.scatter is None else f", deviation {view.scatter:.1%}"
        return f"the tool's own mean{deviation}: it prints no samples"
    if view.profile is not None:
        number, worked = plural(len(view.samples_ns), "sample"), elapsed_text(view.profile.worked_s)
        return (
            f"steady: the median of the last fifth of {worked}; {number}, mean {duration_text(view.mean_ns)}"
        )
    return f"the median of {plural(len(view.samples_ns), 'sample')}; mean {duration_text(view.mean_ns)}"


def _spread(view: ReadingView) -> str:
    least, most = duration_or_nothing(view.min_ns), duration_or_nothing(view.max_ns)
    scatter = "" if view.scatter is None else f", scatter {view.scatter:.1%}"
    return f"{least} to {most}, 90 % within {duration_or_nothing(view.p90_ns)}{scatter}"


def attempt_report(view: AttemptView) -> Text:
    """Return the report of one attempt, with the middle of long outputs left out."""
    plan = None if view.plan is None else _PLAN.validate_python(view.plan)
    evidence = None if view.evidence is None else _EVIDENCE.validate_python(view.evidence)
    parts = (view.state, view.outcome, view.blame and f"blame {view.blame}")
    outcome = ", ".join(str(part) for part in parts if part)
    headline = f"attempt {view.attempt_id} of job {view.job_id} on {device_name(view)}: {outcome}"
    fields = _attempt_fields(view, plan)
    # A plan is kept for as long as the output.
    output = (
        _evidence_lines(evidence, view, plan.gates)
        if evidence and plan
        else [_missing_evidence(view), *_notices(view.notices)]
    )
    return text_report(headline, [*fields, *output], width=9)


def _notices(notices: Iterable[str]) -> Iterator[Field]:
    yield from (("notice", notice) for notice in notices)


def _missing_evidence(view: AttemptView) -> str:
    if view.evidence_expired_at is None:
        return "no report yet"
    return f"output expired on {local_time_text(view.evidence_expired_at)}, by the {view.evidence_expired_by}"


def _attempt_fields(view: AttemptView, plan: RunPlan | None) -> Iterator[Field]:
    yield "why", failure_text(view.message, view.code) or None
    yield "waits", view.waiting_for or None
    if view.quality:
        reasons = f": {'; '.join(view.quality_reasons)}" if view.quality_reasons else ""
        yield "quality", f"{view.quality}{reasons}"
    if view.reading:
        yield from reading_fields(view.reading)
    if plan is None:
        yield (
            "plan",
            f"expired after its output; `farm explain job {view.job_id}` shows what the number rests on",
        )
    else:
        yield from _plan_fields(plan)
    if view.order is not None:
        yield "order", _order_text(view.order)
    yield "claimed", local_time_text(view.claimed_at)


def _order_text(order: RunOrder) -> str:
    """Return `place 2 in its block, after int8-core (attempt 41)`."""
    place = "" if order.place is None else f"place {order.place} in its block, "
    return f"{place}{predecessor_text(order.predecessor)}"


def predecessor_text(before: Predecessor | None) -> str:
    """Return `after int8-core (attempt 41), which ran 4 s and ended 12 s before`."""
    if before is None:
        return "after no benchmark: the first on its device, or after a health check"
    matrix = "" if before.same_matrix else f" of matrix {before.matrix_id}"
    ran = None if before.ran_s is None else f"ran {elapsed_text(before.ran_s)}"
    pause = None if before.pause_s is None else f"ended {elapsed_text(before.pause_s)} before"
    times = " and ".join(text for text in (ran, pause) if text)
    return f"after {before.label}{matrix} (attempt {before.attempt_id}){times and f', which {times}'}"


def _plan_fields(plan: RunPlan) -> Iterator[Field]:
    settings = ", ".join(f"{name}={value}" for name, value in plan.settings.items()) or "no settings"
    yield "harness", f"{plan.harness}, {plan.backend}; {settings}"
    yield from (_file(file) for file in plan.files)
    yield from (("variable", f"{name}={value}") for name, value in plan.env.items())


def _file(file: PlanFile) -> Field:
    name = f"{file.name} at {file.path}" if file.path else file.name
    return "file", f"{name}, {size_text(file.size_bytes)}, {file.digest}"


def _evidence_lines(evidence: Evidence, view: AttemptView, gates: Gates) -> Iterator[Line]:
    again = ", resumed after an agent restart" if evidence.adopted else ""
    yield "command", shlex.join(evidence.argv) or None
    yield "started", f"{local_time_text(evidence.started_at)}{again}" if evidence.started_at else None
    yield "waited", f"{elapsed_text(evidence.waited_s)} for gates" if evidence.waited_s else None
    yield "pushed", f"{size_text(evidence.pushed_bytes)} to the device" if evidence.argv else None
    yield "exit", evidence.exit and _exit(evidence.exit)
    if evidence.error:
        yield from _error(evidence.error)
    yield "before", _condition(evidence.before)
    if view.trace:
        yield from trace_fields(view.trace)
    yield "after", _condition(evidence.after)
    if unchecked := evidence.before and unknown_gates(evidence.before, gates):
        yield f"not checked (not reported): {', '.join(unchecked)}"
    named = {f"{name} unknown" for name in unchecked or ()}
    yield from _notices(notice for notice in view.notices if notice not in named)
    yield from (("control", _control(state)) for state in evidence.controls)
    yield from _output("stdout", evidence.stdout, evidence.stdout_dropped_bytes)
    yield from _output("stderr", evidence.stderr, evidence.stderr_dropped_bytes)
    for diagnostic_pass in evidence.passes:
        yield from _pass(diagnostic_pass)


def _exit(record: ExitRecord) -> str:
    killed = ", killed at its time-out" if record.timed_out else ""
    spent = "" if record.cpu_s is None else f", {record.cpu_s:.2f} s of CPU time"
    return f"code {record.code} after {record.duration_s:.2f} s{spent}{killed}"


def _control(state: ControlState) -> str:
    """Return the requested value, the original value, and the values read before and after the run."""
    was = "" if state.before is None else f", {state.before} otherwise"
    before = "" if state.actual_before is None else f", {state.actual_before} before the run"
    after = "" if state.actual_after is None else f", {state.actual_after} after it"
    return f"{state.name} {state.requested}{was}{before}{after}"


def _pass(evidence: PassEvidence) -> Iterator[Line]:
    """Return the lines of a diagnostic pass, which runs after the measurement for the log of the device."""
    ended = _exit(evidence.exit) if evidence.exit else "did not end"
    yield "pass", f"{evidence.name}, not measured: {ended}"
    if evidence.error:
        yield from _error(evidence.error)
    yield from _output(f"log of pass {evidence.name}", evidence.log, 0)


def _error(error: RunError) -> Iterator[Field]:
    yield "error", f"{error.message} [{error.code}, blame {error.blame}]"
    yield "", f"hint: {error.hint}"


def _condition(condition: Condition | None) -> str:
    """Return the condition of a device; values that it does not report are left out."""
    if condition is None:
        return EMPTY_CELL
    status = condition.thermal_status
    parts = [
        local_time_text(condition.taken_at),
        None if status is None else f"thermal status {status.name}",
        _with_unit(condition.skin_c, "skin {:.1f} °C"),
        _with_unit(condition.battery_level_pct, "battery {} %"),
        _with_unit(condition.battery_c, "battery {:.1f} °C"),
        _with_unit(condition.battery_v, "battery {:.2f} V"),
        condition.battery_health and f"battery {condition.battery_health}",
        *(f"cooled by {name}: {level}" for name, level in condition.cooling.items() if level),
        None if condition.charging is None else "charging" if condition.charging else "not charging",
        None if condition.plugged is None else f"plugged in: {condition.plugged}",
        None if condition.screen_on is None else "screen on" if condition.screen_on else "screen off",
        *(_clock(policy) for policy in condition.cpus),
        _with_unit(condition.gpu_busy_pct, "GPU {:.0f} % busy"),
        *(f"{name} at {busy:.0f} % of a core" for name, busy in condition.busiest_pct.items()),
        _with_unit(condition.load_1m, "load {:.2f}"),
        _bytes(condition.memory_available_bytes, "memory"),
        _bytes(condition.storage_free_bytes, "storage"),
    ]
    return ", ".join(part for part in parts if part)


def _clock(policy: CpuPolicy) -> str | None:
    """Return `policy4 at 2.11, limit 2.11 of 2.75 GHz`."""
    parts = [
        None if hz is None else f"{word} {hz / 1e9:.2f}"
        for word, hz in (("at", policy.current_hz), ("limit", policy.max_hz), ("of", policy.hardware_max_hz))
    ]
    clocks = " ".join(part for part in parts if part)
    return f"{policy.name} {clocks} GHz" if clocks else None


def _with_unit(value: float | None, form: str) -> str | None:
    return None if value is None else form.format(value)


def _bytes(count: int | None, what: str) -> str | None:
    return None if count is None else f"{size_text(count)} of {what} free"


def _output(name: str, text: str, dropped_bytes: int) -> Iterator[str]:
    lines = text.splitlines()
    dropped = f", {size_text(dropped_bytes)} more were not collected" if dropped_bytes else ""
    yield f"{name}: {'empty' if not lines else plural(len(lines), 'line')}{dropped}"
    yield from (f"  {line}" for line in _truncate(lines))


def _truncate(lines: Sequence[str]) -> Sequence[str]:
    left_out = len(lines) - HEAD_LINES - TAIL_LINES
    if left_out <= 0:
        return lines
    return [*lines[:HEAD_LINES], f"... {left_out} lines left out, --json has them ...", *lines[-TAIL_LINES:]]


app = typer.Typer(no_args_is_help=True)


@app.command("show")
def show_command(
    attempt_id: Annotated[
        int, typer.Argument(metavar="ID", help="The attempt's number, as `farm matrix jobs` shows it.")
    ],
    as_json: Json = False,
) -> None:
    """Show one attempt: command, files, conditions, output, and its evaluation.

    The middle of a long output is left out; --json prints all of it.

    Example: farm attempt show 12
    """
    show_view(lambda farm: farm.attempt(AttemptId(attempt_id)), attempt_report, as_json=as_json)


@app.command("energy")
def energy_command(
    attempt_id: Annotated[int, typer.Argument(metavar="ID", help="The attempt's number.")],
    joules: Annotated[float, typer.Option(help="Energy of all inferences together.")],
    boundary: Annotated[str, typer.Option(help="What it is of: `supply of the phone, idle included`.")],
    instrument: Annotated[str, typer.Option(help="What measured it.")],
    inferences: Annotated[
        int | None, typer.Option(help="Of how many inferences; without it, of those that were timed.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="The time that it is of.")] = None,
    note: Annotated[str, typer.Option(help="Anything else that people should know.")] = "",
    as_json: Json = False,
) -> None:
    """Import energy that an instrument outside of the farm measured during an attempt.

    It is shown as `external_energy`, and compared with energy of the same method only.

    Example: farm attempt energy 12 --joules 41.5 --boundary "whole phone" --instrument "power monitor"
    """
    imported = EnergyImport(
        joules=joules,
        boundary=boundary,
        instrument=instrument,
        inferences=inferences,
        seconds=seconds,
        note=note,
    )
    show_view(
        lambda farm: farm.import_energy(AttemptId(attempt_id), imported), attempt_report, as_json=as_json
    )
