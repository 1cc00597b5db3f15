"""`farm job`: show one job, its pending reasons and its output."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.jobs import pending
from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, out, print_json, print_notice
from farm.core.base.ids import AttemptId, JobId
from farm.core.errors import NotFound

if TYPE_CHECKING:
    from farm.wire.documents.results.explain import JobDetail

app = typer.Typer(no_args_is_help=True, help="Jobs: one cell in one round, with its attempts.")

Id = Annotated[int, typer.Argument(metavar="ID", help="The job's number, as in `farm matrix jobs`.")]


@app.command("show")
def show_command(job_id: Id, as_json: Json = False) -> None:
    """Show one job: its attempts with outcomes, and its measurement.

    Example: farm job show 17
    """
    from farm.cli.jobs.job_report import job_report

    with connect() as farm:
        view = farm.job(JobId(job_id))
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        out().print(job_report(view), soft_wrap=True)


app.command("why")(pending.job_why)


@app.command("logs")
def logs_command(
    job_id: Id,
    attempt: Annotated[
        int | None, typer.Option(metavar="N", help="Number of the attempt; default: the last one.")
    ] = None,
    stderr: Annotated[bool, typer.Option("--stderr", help="Print stderr instead of stdout.")] = False,
) -> None:
    """Print the output of a job's program unchanged, as far as it was collected.

    Example: farm job logs 17 --stderr
    """
    with connect() as farm:
        job = farm.job(JobId(job_id))
        view = farm.attempt(_select_attempt(job, attempt))
    if view.evidence is None:
        gone = view.evidence_expired_at is not None
        why = "its output expired" if gone else "no report yet"
        hint = f"`farm attempt show {view.attempt_id}` shows its details"
        raise NotFound(f"attempt {view.attempt_id} of job {job_id} is {view.state}: {why}", hint=hint)
    name = "stderr" if stderr else "stdout"
    # Unchanged: markup and a missing final line feed are the program's.
    sys.stdout.write(str(view.evidence[name]))
    if dropped := view.evidence[f"{name}_dropped_bytes"]:
        print_notice(f"{dropped} bytes more were not collected")


def _select_attempt(job: "JobDetail", attempt: int | None) -> AttemptId:
    """Return the selected attempt, else the last one.

    Raises:
        NotFound: the job has no such attempt, or no attempt at all.
    """
    if not job.attempts:
        hint = f"`farm matrix show {job.matrix_id}` shows what its device waits for"
        raise NotFound(f"job {job.job_id} has no attempt yet", hint=hint if job.matrix_id else None)
    if attempt is None:
        return job.attempts[-1]
    if attempt not in job.attempts:
        numbers = ", ".join(map(str, job.attempts))
        raise NotFound(f"job {job.job_id} has no attempt {attempt}", hint=f"it has {numbers}")
    return AttemptId(attempt)
