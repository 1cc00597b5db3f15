"""`farm attempt`: show one run: command, conditions, output and evaluation."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.text import Text

from farm.cli.jobs.trace_strip import trace_fields
from farm.cli.shell.address import show_view
from farm.cli.shell.options import Json
from farm.cli.shell.tables import Line, text_report
from farm.core.base.ids import AttemptId
from farm.core.base.units import size_text
from farm.core.runs.evidence import Evidence, PassEvidence
from farm.core.runs.plan import RunPlan
from farm.presentation.jobs.attempt import (
    cell_fields,
    command_text,
    control_text,
    error_fields,
    evidence_of,
    exit_text,
    missing_text,
    notice_fields,
    order_text,
    plan_fields,
    plan_of,
    reason_fields,
    run_fields,
    state_text,
    unchecked_text,
)
from farm.presentation.jobs.condition import condition_text
from farm.presentation.jobs.measurement import reading_fields
from farm.presentation.jobs.trace import ceiling_texts
from farm.presentation.labels import device_name
from farm.presentation.text import Field, local_time_text, plural
from farm.wire.documents.matrices.jobs import AttemptView
from farm.wire.documents.results.results import EnergyImport

#: Lines shown of the beginning and of the end of an output.
HEAD_LINES, TAIL_LINES = 10, 20


def attempt_report(view: AttemptView) -> Text:
    """Return the report of one attempt, with the middle of long outputs left out."""
    plan, evidence = plan_of(view), evidence_of(view)
    headline = f"attempt {view.attempt_id} of job {view.job_id} on {device_name(view)}: {state_text(view)}"
    fields = _attempt_fields(view, plan)
    # A plan is kept for as long as the output.
    output = (
        _evidence_lines(evidence, view, plan)
        if evidence and plan
        else [missing_text(view), *notice_fields(view, evidence, plan)]
    )
    return text_report(headline, [*fields, *output], width=9)


def _attempt_fields(view: AttemptView, plan: RunPlan | None) -> Iterator[Field]:
    if view.cell is not None:
        yield from cell_fields(view.cell)
    yield from reason_fields(view)
    if view.reading:
        yield from reading_fields(view.reading)
    if plan is None:
        yield (
            "plan",
            f"expired after its output; `farm explain job {view.job_id}` shows what the number rests on",
        )
    else:
        yield from plan_fields(plan)
    if view.order is not None:
        yield "order", order_text(view.order)
    yield "claimed", local_time_text(view.claimed_at)


def _evidence_lines(evidence: Evidence, view: AttemptView, plan: RunPlan) -> Iterator[Line]:
    yield "command", command_text(None, evidence)
    yield from run_fields(evidence)
    yield "before", condition_text(evidence.before)
    if view.trace:
        yield from trace_fields(view.trace)
        yield from (("ceiling", f"{name} {text}") for name, text in ceiling_texts(view.trace).items())
    yield "after", condition_text(evidence.after)
    if unchecked := unchecked_text(evidence, plan):
        yield unchecked
    yield from notice_fields(view, evidence, plan)
    yield from (("control", control_text(state)) for state in evidence.controls)
    yield from _output("stdout", evidence.stdout, evidence.stdout_dropped_bytes)
    yield from _output("stderr", evidence.stderr, evidence.stderr_dropped_bytes)
    for diagnostic_pass in evidence.passes:
        yield from _pass(diagnostic_pass)


def _pass(evidence: PassEvidence) -> Iterator[Line]:
    """Return the lines of a diagnostic pass, which runs after the measurement for the log of the device."""
    ended = exit_text(evidence.exit) if evidence.exit else "did not end"
    yield "pass", f"{evidence.name}, not measured: {ended}"
    if evidence.error:
        yield from error_fields(evidence.error)
    yield from _output(f"log of pass {evidence.name}", evidence.log, 0)


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
