"""`farm job why` and `farm matrix why`: pending reasons, each with its start, its actor and a hint."""

from farm.cli.shell.address import show_view
from farm.cli.shell.options import JobNumber, Json, MatrixNumber
from farm.core.base.ids import JobId, MatrixId
from farm.presentation.jobs.pending import PendingReport


def job_why(job_id: JobNumber, as_json: Json = False) -> None:
    """Show why a job is pending, how to resolve it, and how many jobs are queued ahead.

    Example: farm job why 17
    """
    show_view(
        lambda farm: farm.job_waiting(JobId(job_id)),
        lambda view: "\n".join(PendingReport().job(view)),
        as_json=as_json,
    )


def matrix_why(matrix_id: MatrixNumber, as_json: Json = False) -> None:
    """Show the remaining jobs of a matrix by device, why they are pending, and how to resolve it.

    Example: farm matrix why 3
    """
    show_view(
        lambda farm: farm.matrix_waiting(MatrixId(matrix_id)),
        lambda view: "\n".join(PendingReport().matrix(view)),
        as_json=as_json,
    )
