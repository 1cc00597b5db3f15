"""`farm matrix cancel` and `farm matrix rerun`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, print_json, print_notice
from farm.core.base.ids import MatrixId

if TYPE_CHECKING:
    from farm.wire.documents.matrices.matrices import MatrixView
    from farm.wire.documents.matrices.plans import CancellationView

Id = Annotated[int, typer.Argument(metavar="ID", help="The matrix's number, as in `farm matrix list`.")]


def cancel(
    matrix_id: Id,
    device: Annotated[str | None, typer.Option(help="Only the jobs on this device, by id or label.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")] = False,
    as_json: Json = False,
) -> None:
    """Cancel a matrix: queued jobs do not start, and running jobs are stopped.

    Finished jobs and their measurements are kept. On a terminal, the plan is shown for confirmation.

    Example: farm matrix cancel 3 --yes
    """
    from farm.cli.matrices.report import cancellation

    with connect() as farm:
        view = farm.matrix(MatrixId(matrix_id))
        device_id = None if device is None else farm.device(device).device_id
        if view.finished_at is None and not yes and sys.stdin.isatty():
            print_notice(cancellation(view, device_id))
            typer.confirm("Go ahead?", abort=True, err=True)
        cancellation_view = farm.cancel_matrix(MatrixId(matrix_id), device=device_id)
    if as_json:
        print_json(cancellation_view.model_dump(mode="json"))
    else:
        print_notice(_cancelled_text(cancellation_view))


def _cancelled_text(view: "CancellationView") -> str:
    from farm.cli.shell.formatting import plural

    name = f"Matrix {view.matrix_id} ({view.name})"
    if not view.queued and not view.active:
        return f"{name} is already finished: nothing to cancel."
    stopped = f", {plural(view.active, 'run')} is being stopped" if view.active == 1 else ""
    stopped = f", {view.active} runs are being stopped" if view.active > 1 else stopped
    return f"{name}: {plural(view.queued, 'job')} will not start{stopped}; {view.finished} finished before."


def rerun(
    matrix_id: Id,
    failed: Annotated[
        bool,
        typer.Option(
            "--failed",
            help="Only cells that lack a valid measurement in a round, with their baselines.",
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Watch it until it is finished; Ctrl-C detaches.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a matrix again as a new matrix: the same file, on the devices that match its selectors now.

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
