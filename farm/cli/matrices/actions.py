"""`farm matrix cancel` and `farm matrix rerun`: orders about a matrix that is there."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, print_json, print_notice
from farm.core.base.ids import MatrixId

if TYPE_CHECKING:
    from farm.wire.documents.matrices.matrices import MatrixView
    from farm.wire.documents.matrices.plans import CancellationView

Id = Annotated[int, typer.Argument(metavar="ID", help="The matrix's number, as `farm matrix list` shows it.")]


def cancel(
    matrix_id: Id,
    device: Annotated[str | None, typer.Option(help="Only its part on this device: its id or label.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Cancel a matrix: nothing more of it starts, and what runs is stopped.

    What is finished stays, measurements included. Says first what it will do, and asks in a terminal.

    Example: farm matrix cancel 3 --yes
    """
    from farm.cli.matrices.report import cancellation

    with connect() as farm:
        view = farm.matrix(MatrixId(matrix_id))
        device_id = None if device is None else farm.device(device).device_id
        if view.finished_at is None and not yes and sys.stdin.isatty():
            print_notice(cancellation(view, device_id))
            typer.confirm("Go ahead?", abort=True, err=True)
        done = farm.cancel_matrix(MatrixId(matrix_id), device=device_id)
    if as_json:
        print_json(done.model_dump(mode="json"))
    else:
        print_notice(_cancelled_text(done))


def _cancelled_text(done: "CancellationView") -> str:
    from farm.cli.shell.formatting import plural

    name = f"Matrix {done.matrix_id} ({done.name})"
    if not done.queued and not done.active:
        return f"{name} is finished already: nothing is left to cancel."
    stopped = f", {plural(done.active, 'run')} is being stopped" if done.active == 1 else ""
    stopped = f", {done.active} runs are being stopped" if done.active > 1 else stopped
    return f"{name}: {plural(done.queued, 'job')} will not start{stopped}; {done.finished} finished before."


def rerun(
    matrix_id: Id,
    failed: Annotated[
        bool,
        typer.Option(
            "--failed",
            help="Only cells without a valid measurement in each round, with what they are compared to.",
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay until it is finished; Ctrl-C detaches.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a matrix again as a new one: the same file, on the devices that fit its selectors now.

    Example: farm matrix rerun 3 --failed --watch
    """
    from farm.cli.matrices.matrix import follow_to_end, submission_text

    with connect() as farm:
        view: MatrixView = farm.rerun_matrix(MatrixId(matrix_id), failed=failed)
        print_notice(f"{submission_text(view)[:-1]}, a rerun of matrix {matrix_id}.")
        if watch:
            raise typer.Exit(follow_to_end(farm, view.matrix_id, as_json=as_json))
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        print_notice(f"Watch it: farm matrix watch {view.matrix_id}")
