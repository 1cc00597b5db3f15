"""`farm job`: show one job, its pending reasons and its output."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import typer
from rich.text import Text

from farm.cli.jobs.pending import job_why
from farm.cli.shell.address import connect, show_view
from farm.cli.shell.options import JobNumber, Json
from farm.cli.shell.output import print_notice, print_unchanged
from farm.cli.shell.tables import text_report
from farm.core.base.ids import AttemptId, JobId
from farm.core.base.units import elapsed_text
from farm.core.errors import NotFound
from farm.presentation.jobs.measurement import run_lines
from farm.presentation.labels import device_name
from farm.presentation.text import Field, failure_text, local_time_text, round_text
from farm.wire.documents.results.explain import AttemptSummary, JobDetail


def job_report(view: JobDetail) -> Text:
    """Return the report of one job."""
    lines: list[Field] = [*_job_fields(view), *map(_attempt, view.attempt_list)]
    if view.run is not None:
        lines += [*run_lines(view.run), ("more", f"farm explain job {view.job_id}")]
    return text_report(job_headline(view), lines)


def job_headline(view: JobDetail) -> str:
    """Return the job with its outcome or state."""
    return f"job {view.job_id} on {device_name(view)}: {view.label}, {view.outcome or view.state}"


def flags(settings: Mapping[str, object]) -> str:
    """Return `iter=30, threads=2`, or that all flags have their defaults."""
    return ", ".join(f"{name}={value}" for name, value in sorted(settings.items())) or "all at their defaults"


def _job_fields(view: JobDetail) -> Iterator[Field]:
    if view.matrix_id is not None:
        where = round_text(view.round, view.block, view.repeat)
        yield "of", f"matrix {view.matrix_id} ({view.matrix}), {where}"
    yield "why", failure_text(view.message, view.code) or None
    yield "queued", local_time_text(view.created_at)
    yield "ended", None if view.finished_at is None else local_time_text(view.finished_at)


def _attempt(attempt: AttemptSummary) -> Field:
    took = ""
    if attempt.finished_at is not None:
        took = f" after {elapsed_text((attempt.finished_at - attempt.claimed_at).total_seconds())}"
    why = f": {attempt.message}" if attempt.message else ""
    ended = f"{attempt.state}, {attempt.outcome}" if attempt.outcome else attempt.state
    return ("attempt", f"{attempt.attempt_id}, {local_time_text(attempt.claimed_at)}, {ended}{took}{why}")


app = typer.Typer(no_args_is_help=True)


@app.command("show")
def show_command(job_id: JobNumber, as_json: Json = False) -> None:
    """Show one job: its attempts with outcomes, and its measurement.

    Example: farm job show 17
    """
    show_view(lambda farm: farm.job(JobId(job_id)), job_report, as_json=as_json)


app.command("why")(job_why)


@app.command("logs")
def logs_command(
    job_id: JobNumber,
    attempt: Annotated[
        int | None, typer.Option(metavar="N", help="Number of the attempt; default: the last one.")
    ] = None,
    stderr: Annotated[bool, typer.Option("--stderr", help="Print stderr instead of stdout.")] = False,
) -> None:
    """Print the output of a job's program unchanged, as far as it was collected.

    On a terminal, control sequences in it are replaced.

    Example: farm job logs 17 --stderr
    """
    with connect() as farm:
        job = farm.job(JobId(job_id))
        view = farm.attempt(_select_attempt(job, attempt))
    if view.evidence is None:
        why = "no report yet" if view.evidence_expired_at is None else "its output expired"
        hint = f"`farm attempt show {view.attempt_id}` shows its details"
        raise NotFound(f"attempt {view.attempt_id} of job {job_id} is {view.state}: {why}", hint=hint)
    name = "stderr" if stderr else "stdout"
    print_unchanged(str(view.evidence[name]))
    if dropped := view.evidence[f"{name}_dropped_bytes"]:
        print_notice(f"{dropped} bytes more were not collected")


def _select_attempt(job: JobDetail, attempt: int | None) -> AttemptId:
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
