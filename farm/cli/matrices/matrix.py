"""`farm matrix`: submit, watch, show, cancel and rerun matrices."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.jobs import pending
from farm.cli.matrices import actions, plan
from farm.cli.shell.address import connect
from farm.cli.shell.exit_codes import exit_code
from farm.cli.shell.output import Json, JsonLines, err, out, print_json, print_json_line, print_notice, show
from farm.core.base.ids import MatrixId
from farm.core.errors import Blame

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient
    from farm.wire.documents.matrices.matrices import MatrixView

app = typer.Typer(no_args_is_help=True, help="Matrices: plan, submit, watch, show, cancel and rerun them.")

Id = actions.Id

app.command("plan")(plan.plan)


@app.command()
def submit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A matrix in YAML.")],
    watch: Annotated[
        bool, typer.Option("--watch", help="Watch it until it is finished; Ctrl-C detaches.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Submit a matrix. With --watch the exit code is 3 if a job failed, 4 if one was inconclusive.

    Example: farm matrix submit examples/demo.yaml --watch
    """
    from farm.cli.matrices.file import submit_file

    with connect() as farm:
        view = submit_file(farm, file)
        print_notice(submission_text(view))
        if watch:
            raise typer.Exit(follow_to_end(farm, view.matrix_id, as_json=as_json))
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        _print_rejected(view)
        print_notice(f"Watch it: farm matrix watch {view.matrix_id}")


@app.command("watch")
def watch_command(matrix_id: Id, as_json: JsonLines = False) -> None:
    """Watch a matrix until it is finished, then print its speedups, or its times without a baseline.

    With --json each change is one line without the cells, which `farm matrix show ID --json` prints.

    Example: farm matrix watch 3
    """
    with connect() as farm:
        if as_json:
            raise typer.Exit(_watch_as_json(farm, MatrixId(matrix_id)))
        raise typer.Exit(follow_to_end(farm, MatrixId(matrix_id), as_json=False))


@app.command("show")
def show_command(matrix_id: Id, as_json: Json = False) -> None:
    """Show one matrix: its progress, the time of every cell, and failures.

    Example: farm matrix show 3
    """
    from farm.cli.matrices.report import is_stuck, matrix_report
    from farm.cli.shell.next_steps import farm_command

    with connect() as farm:
        view = farm.matrix(MatrixId(matrix_id))
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        out().print(matrix_report(view))
        print_notice(f"Its jobs, with failed runs: {farm_command()} matrix jobs {matrix_id}")
        if is_stuck(view):
            print_notice(f"Nothing is running. Reasons: {farm_command()} matrix why {matrix_id}")


@app.command("list")
def list_command(as_json: Json = False) -> None:
    """List the matrices.

    Example: farm matrix list --json
    """
    from farm.cli.shell.tables import matrix_table

    with connect() as farm:
        show(farm.matrices(), matrix_table, as_json=as_json)


@app.command("jobs")
def jobs_command(matrix_id: Id, as_json: Json = False) -> None:
    """List the jobs of a matrix, with their attempts and failure reasons.

    Example: farm matrix jobs 3
    """
    from farm.cli.matrices.report import log_hint
    from farm.cli.shell.tables import job_table

    with connect() as farm:
        jobs = farm.jobs(MatrixId(matrix_id))
    show(jobs, job_table, as_json=as_json)
    if not as_json and (hint := log_hint(jobs)):
        print_notice(hint)


app.command("why")(pending.matrix_why)
app.command("cancel")(actions.cancel)
app.command("rerun")(actions.rerun)


def submission_text(view: "MatrixView") -> str:
    """Return the result of a submission."""
    from farm.cli.shell.formatting import plural

    rejected = f", {plural(view.rejected, 'cell')} rejected" if view.rejected else ""
    return f"Matrix {view.matrix_id} ({view.name}): {plural(view.jobs, 'job')}{rejected}."


def follow(farm: "FarmClient", matrix_id: MatrixId, *, leaving: str) -> "MatrixView":
    """Watch a matrix until it is finished, then print its failures.

    Args:
        farm: the farm.
        matrix_id: the matrix.
        leaving: message for Ctrl-C.

    Raises:
        typer.Exit: the user pressed Ctrl-C.
    """
    from farm.cli.matrices.watch import watch_matrix

    try:
        view = watch_matrix(lambda: farm.matrix(matrix_id), err())
    except KeyboardInterrupt:
        print_notice(leaving)
        raise typer.Exit(130) from None
    _print_failures(farm, view)
    return view


def exit_code_of(view: "MatrixView") -> int:
    """Return 3 if a job failed, 4 if one was inconclusive or expired, 2 if one was cancelled, else 0.

    `unsupported` is a result, not a failure.
    """
    from farm.core.runs.measurement import Outcome

    if view.jobs_by_outcome.get(Outcome.FAILED):
        return exit_code(Blame.VARIANT)
    if any(map(view.jobs_by_outcome.get, (Outcome.INCONCLUSIVE, Outcome.EXPIRED))):
        return exit_code(Blame.DEVICE)
    return exit_code(Blame.USER) if view.jobs_by_outcome.get(Outcome.CANCELLED) else 0


def follow_to_end(farm: "FarmClient", matrix_id: MatrixId, *, as_json: bool) -> int:
    """Watch a matrix, print its speedups, its times or JSON, and return the exit code."""
    from farm.cli.run.result import print_result
    from farm.cli.shell.next_steps import watch_again_text

    view = follow(farm, matrix_id, leaving=watch_again_text(matrix_id))
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        print_result(view, farm.results(matrix_id), farm.speedups(matrix_id=matrix_id))
    return exit_code_of(view)


def _watch_as_json(farm: "FarmClient", matrix_id: MatrixId) -> int:
    """Print each change as one JSON line, and return the exit code."""
    from farm.cli.matrices.watch import watch_changes

    def print_view(view: "MatrixView") -> None:
        print_json_line(view.model_dump(mode="json", exclude={"cell_list", "rejected_list"}))

    try:
        return exit_code_of(watch_changes(lambda: farm.matrix(matrix_id), print_view))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _print_failures(farm: "FarmClient", view: "MatrixView") -> None:
    """Print the failures of a matrix, and how to see the output of a failed run."""
    from farm.cli.matrices.report import failures, log_hint
    from farm.core.runs.measurement import Outcome

    for line in failures(view):
        print_notice(line)
    if view.jobs_by_outcome.keys() & {Outcome.FAILED, Outcome.UNSUPPORTED, Outcome.INCONCLUSIVE} and (
        hint := log_hint(farm.jobs(view.matrix_id))
    ):
        print_notice(hint)


def _print_rejected(view: "MatrixView") -> None:
    from farm.cli.matrices.report import rejections

    for line in rejections(view):
        print_notice(line)
