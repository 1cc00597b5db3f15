"""`farm matrix`: plan, submit, watch, show, cancel and rerun matrices."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from farm.cli.jobs.pending import matrix_why
from farm.cli.matrices.file import send_file
from farm.cli.matrices.plan import plan
from farm.cli.matrices.rejections import rejections
from farm.cli.matrices.report import (
    cancellation,
    failures,
    is_stuck,
    job_table,
    log_hint,
    matrix_report,
    matrix_table,
)
from farm.cli.matrices.standing import stand, standing
from farm.cli.matrices.watch import watch_changes, watch_matrix
from farm.cli.results.gate import (
    Decide,
    Gate,
    GateOption,
    Summary,
    check_gate_is_watched,
    deciding_rounds,
    judge,
    print_gate,
    summary_if_unreachable,
    write_summary,
)
from farm.cli.run.result import print_result, result_document
from farm.cli.shell.address import connect
from farm.cli.shell.next_steps import farm_command, watch_again_text
from farm.cli.shell.options import (
    AllowMissing,
    Json,
    JsonLines,
    Limit,
    MatrixFile,
    MatrixNumber,
    Metrics,
    Mine,
    NamePart,
    ShortYes,
    Since,
    Watch,
)
from farm.cli.shell.output import err, print_done, print_json, print_json_line, print_notice, show
from farm.client.farm_client import FarmClient
from farm.core.base.ids import MatrixId
from farm.core.errors import Blame, InvalidInput
from farm.core.results.statistics.gate import GateOutcome
from farm.core.runs.measurement import Outcome
from farm.presentation.text import past_moment, plural
from farm.wire.documents.matrices.matrices import MatrixView
from farm.wire.documents.matrices.plans import CancellationView

app = typer.Typer(no_args_is_help=True)
app.command()(plan)
app.command()(stand)
app.command()(standing)


@app.command()
def submit(
    file: MatrixFile,
    watch: Watch = False,
    allow_missing: AllowMissing = False,
    metrics: Metrics = False,
    gate: GateOption = None,
    decide: Decide = False,
    summary: Summary = None,
    as_json: Json = False,
) -> None:
    """Submit a matrix. The exit code is 2 if a cell is not run because its file is missing.

    With --watch it is also 3 if a job failed, 4 if one was inconclusive, and with --gate 7, 8 or 9.

    Example: farm matrix submit examples/demo.yaml --watch
    """
    check_gate_is_watched(gate, watch=watch, summary=summary, as_json=as_json)

    def send(spec: Mapping[str, object]) -> MatrixView:
        if not decide:
            return farm.submit_matrix(spec)
        rounds = deciding_rounds(spec.get("rounds"), gate, margin=spec.get("equivalence_margin"))
        return farm.submit_matrix({**spec, "rounds": rounds})

    with summary_if_unreachable(summary), connect() as farm:
        view = send_file(file, send)
        print_notice(submission_text(view))
        for line in rejections(view):
            print_notice(line)
        if watch:
            options = ResultOptions(
                allow_missing=allow_missing,
                metrics=metrics,
                gate=gate,
                can_decide=not decide,
                summary=summary,
                as_json=as_json,
            )
            raise typer.Exit(follow_to_end(farm, view.matrix_id, options))
    print_done(view, f"Watch it: farm matrix watch {view.matrix_id}", as_json=as_json)
    raise typer.Exit(exit_code_of(view, allow_missing=allow_missing))


@app.command("watch")
def watch_command(
    matrix_id: MatrixNumber,
    allow_missing: AllowMissing = False,
    metrics: Metrics = False,
    gate: GateOption = None,
    summary: Summary = None,
    as_json: JsonLines = False,
) -> None:
    """Watch a matrix until it is finished, then print its speedups, or its times without a baseline.

    With --json each change is one line without the cells, which `farm matrix show ID --json` prints.

    Example: farm matrix watch 3
    """
    check_gate_is_watched(gate, watch=True, summary=summary, as_json=as_json)
    if as_json and gate is not None:
        hint = "`farm speedups MATRIX --gate not-slower` asks a finished matrix"
        raise InvalidInput("--json of `farm matrix watch` prints changes, which no gate judges", hint=hint)
    with summary_if_unreachable(summary), connect() as farm:
        if as_json:
            raise typer.Exit(_watch_as_json(farm, MatrixId(matrix_id), allow_missing=allow_missing))
        options = ResultOptions(allow_missing=allow_missing, metrics=metrics, gate=gate, summary=summary)
        raise typer.Exit(follow_to_end(farm, MatrixId(matrix_id), options))


@app.command("show")
def show_command(matrix_id: MatrixNumber, as_json: Json = False) -> None:
    """Show one matrix: its progress, the time of every cell, and failures.

    Example: farm matrix show 3
    """
    with connect() as farm:
        view = farm.matrix(MatrixId(matrix_id))
    show(view, matrix_report, as_json=as_json)
    if not as_json:
        print_notice(f"Its jobs, with failed runs: {farm_command()} matrix jobs {matrix_id}")
        if is_stuck(view):
            print_notice(f"Nothing is running. Reasons: {farm_command()} matrix why {matrix_id}")


@app.command("list")
def list_command(
    since: Since = None,
    part: NamePart = None,
    mine: Mine = False,
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """List the matrices, newest first.

    Example: farm matrix list --mine --since 7d
    """
    begin = past_moment(since, option="--since")
    with connect() as farm:
        views = list(farm.matrices(since=begin, name=part, mine=mine, limit=limit))
    show(views, matrix_table, as_json=as_json)


@app.command("jobs")
def jobs_command(matrix_id: MatrixNumber, as_json: Json = False) -> None:
    """List the jobs of a matrix, with their attempts and failure reasons.

    Example: farm matrix jobs 3
    """
    with connect() as farm:
        jobs = farm.jobs(MatrixId(matrix_id))
    show(jobs, job_table, as_json=as_json)
    if not as_json and (hint := log_hint(jobs)):
        print_notice(hint)


app.command("why")(matrix_why)


@app.command()
def cancel(
    matrix_id: MatrixNumber,
    device: Annotated[str | None, typer.Option(help="Only the jobs on this device, by id or label.")] = None,
    yes: ShortYes = False,
    as_json: Json = False,
) -> None:
    """Cancel a matrix: queued jobs do not start, and running jobs are stopped.

    Finished jobs and their measurements are kept. On a terminal, the plan is shown for confirmation.

    Example: farm matrix cancel 3 --yes
    """
    with connect() as farm:
        view = farm.matrix(MatrixId(matrix_id))
        device_id = None if device is None else farm.device(device).device_id
        if view.finished_at is None and not yes and sys.stdin.isatty():
            print_notice(cancellation(view, device_id))
            typer.confirm("Go ahead?", abort=True, err=True)
        cancellation_view = farm.cancel_matrix(MatrixId(matrix_id), device=device_id)
    print_done(cancellation_view, _cancelled_text(cancellation_view), as_json=as_json)


def _cancelled_text(view: CancellationView) -> str:
    name = f"Matrix {view.matrix_id} ({view.name})"
    if not view.queued and not view.active:
        return f"{name} is already finished: nothing to cancel."
    are = "is" if view.active == 1 else "are"
    stopped = f", {plural(view.active, 'run')} {are} being stopped" if view.active else ""
    return f"{name}: {plural(view.queued, 'job')} will not start{stopped}; {view.finished} finished before."


@app.command()
def rerun(
    matrix_id: MatrixNumber,
    failed: Annotated[
        bool,
        typer.Option(
            "--failed", help="Only cells that lack a valid measurement in a round, with their baselines."
        ),
    ] = False,
    watch: Watch = False,
    allow_missing: AllowMissing = False,
    metrics: Metrics = False,
    as_json: Json = False,
) -> None:
    """Run a matrix again as a new matrix: the same file, on the devices that match its selectors now.

    Example: farm matrix rerun 3 --failed --watch
    """
    with connect() as farm:
        view: MatrixView = farm.rerun_matrix(MatrixId(matrix_id), failed=failed)
        print_notice(f"{submission_text(view)[:-1]}, a rerun of matrix {matrix_id}.")
        if watch:
            options = ResultOptions(allow_missing=allow_missing, metrics=metrics, as_json=as_json)
            raise typer.Exit(follow_to_end(farm, view.matrix_id, options))
    print_done(view, f"Watch it: farm matrix watch {view.matrix_id}", as_json=as_json)
    raise typer.Exit(exit_code_of(view, allow_missing=allow_missing))


def submission_text(view: MatrixView) -> str:
    """Return the result of a submission."""
    rejected = f", {plural(view.rejected, 'cell')} rejected" if view.rejected else ""
    return f"Matrix {view.matrix_id} ({view.name}): {plural(view.jobs, 'job')}{rejected}."


def follow(farm: FarmClient, matrix_id: MatrixId, *, leaving: str) -> MatrixView:
    """Watch a matrix until it is finished, then print its failures. `leaving` is the message for Ctrl-C.

    Raises:
        typer.Exit: the user pressed Ctrl-C.
    """
    try:
        view = watch_matrix(lambda: farm.matrix(matrix_id), err())
    except KeyboardInterrupt:
        print_notice(leaving)
        raise typer.Exit(130) from None
    _print_failures(farm, view)
    return view


def exit_code_of(view: MatrixView, *, allow_missing: bool = False) -> int:
    """Return 3 if a job failed, 4 if one was inconclusive or expired, 2 if one was cancelled, else 0.

    `unsupported` is a result, not a failure. A cell that is not run because its file is missing counts like a
    cancelled job, unless `allow_missing`.
    """
    if view.jobs_by_outcome.get(Outcome.FAILED):
        return Blame.VARIANT.exit_code
    if any(map(view.jobs_by_outcome.get, (Outcome.INCONCLUSIVE, Outcome.EXPIRED))):
        return Blame.DEVICE.exit_code
    is_not_run = any(rejection.kind.wants_file for rejection in view.rejected_list) and not allow_missing
    return Blame.USER.exit_code if view.jobs_by_outcome.get(Outcome.CANCELLED) or is_not_run else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultOptions:
    """What is printed of a finished matrix, and asked of it."""

    #: Cells whose files are missing do not count.
    allow_missing: bool = False
    #: All metrics, not only those that the matrix names.
    metrics: bool = False
    gate: Gate | None = None
    #: The matrix was submitted without `--decide`, which would add rounds.
    can_decide: bool = False
    summary: Path | None = None
    as_json: bool = False


def follow_to_end(farm: FarmClient, matrix_id: MatrixId, options: ResultOptions) -> int:
    """Watch a matrix, print its speedups, its times or JSON, and return the exit code.

    Of a gate, `slower` and `nothing measured` count before the jobs; where all is well with these, the exit
    code is that of the gate.
    """
    view = follow(farm, matrix_id, leaving=watch_again_text(matrix_id))
    results, speedups = farm.results(matrix_id), farm.speedups(matrix_id=matrix_id)
    gate, judged = options.gate, None
    if gate is not None:
        speedups = iter(compared := list(speedups))
        judged = judge(gate, compared, view, allow_missing=options.allow_missing)
    if options.as_json:
        print_json(result_document(view, results, speedups, gate=judged))
    else:
        print_result(view, results, speedups, metrics=options.metrics)
    # A gate that asks for cells whose files are missing is undecided.
    code = exit_code_of(view, allow_missing=options.allow_missing or gate is not None)
    if gate is None or judged is None:
        return code
    print_gate(gate, judged, can_decide=options.can_decide, matrix=view)
    if options.summary is not None:
        write_summary(judged, options.summary)
    is_final = judged.outcome in (GateOutcome.SLOWER, GateOutcome.NOT_MEASURED)
    return judged.outcome.exit_code if is_final else code or judged.outcome.exit_code


def _watch_as_json(farm: FarmClient, matrix_id: MatrixId, *, allow_missing: bool) -> int:
    """Print each change as one JSON line, and return the exit code."""

    def print_view(view: MatrixView) -> None:
        print_json_line(view.model_dump(mode="json", exclude={"cell_list", "rejected_list"}))

    try:
        view = watch_changes(lambda: farm.matrix(matrix_id), print_view)
        return exit_code_of(view, allow_missing=allow_missing)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _print_failures(farm: FarmClient, view: MatrixView) -> None:
    """Print the failures of a matrix, and how to see the output of a failed run."""
    for line in failures(view):
        print_notice(line)
    if view.jobs_by_outcome.keys() & {Outcome.FAILED, Outcome.UNSUPPORTED, Outcome.INCONCLUSIVE} and (
        hint := log_hint(farm.jobs(view.matrix_id))
    ):
        print_notice(hint)
