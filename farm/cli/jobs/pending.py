"""`farm job why` and `farm matrix why`: show pending reasons and how to resolve them."""

from collections.abc import Iterator
from typing import Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, out, print_json
from farm.core.base.ids import JobId, MatrixId

JobNumber = Annotated[int, typer.Argument(metavar="ID", help="The job's number, as in `farm matrix jobs`.")]
MatrixNumber = Annotated[
    int, typer.Argument(metavar="ID", help="The matrix's number, as in `farm matrix list`.")
]


def job_why(job_id: JobNumber, as_json: Json = False) -> None:
    """Show why a job is pending, how to resolve it, and how many jobs are queued ahead.

    Example: farm job why 17
    """
    from farm.cli.jobs.pending_report import PendingReport

    with connect() as farm:
        view = farm.job_waiting(JobId(job_id))
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        _print(PendingReport().job(view))


def matrix_why(matrix_id: MatrixNumber, as_json: Json = False) -> None:
    """Show the remaining jobs of a matrix by device, why they are pending, and how to resolve it.

    Example: farm matrix why 3
    """
    from farm.cli.jobs.pending_report import PendingReport

    with connect() as farm:
        view = farm.matrix_waiting(MatrixId(matrix_id))
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        _print(PendingReport().matrix(view))


def _print(lines: Iterator[str]) -> None:
    console = out()
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
