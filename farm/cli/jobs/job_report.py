"""The report of one job and its measurement."""

from collections.abc import Iterator, Mapping

from rich.text import Text

from farm.cli.shell.formatting import local_time_text
from farm.core.base.units import duration_text, elapsed_text
from farm.wire.documents.results.explain import AttemptSummary, JobDetail, MeasurementView

_WIDTH = 12


def job_report(view: JobDetail) -> Text:
    """Return the report of one job."""
    lines = [*_job_fields(view), *map(_attempt, view.attempt_list)]
    if view.run is not None:
        lines += run_lines(view.run)
    if view.run is not None:
        lines.append(field("more", f"farm explain job {view.job_id}"))
    return Text("\n").join([Text(job_headline(view), style="bold"), *map(Text, lines)])


def job_headline(view: JobDetail) -> str:
    """Return the job with its outcome or state."""
    return f"job {view.job_id} on {view.device_id}: {view.label}, {view.outcome or view.state}"


def field(name: str, text: str) -> str:
    """Return a line with a name; an empty name continues the line above."""
    return f"{name:{_WIDTH}}{text}"


def flags(settings: Mapping[str, object]) -> str:
    """Return `iter=30, threads=2`, or that all flags have their defaults."""
    return ", ".join(f"{name}={value}" for name, value in sorted(settings.items())) or "all at their defaults"


def run_lines(run: MeasurementView) -> Iterator[str]:
    """Return the lines of a measurement: value, samples, quality, metrics."""
    yield field("value", f"{duration_text(run.value_ns)}, {_samples_text(run)}")
    if run.min_ns is not None and run.max_ns is not None and run.p90_ns is not None:
        spread = (
            f"{duration_text(run.min_ns)} to {duration_text(run.max_ns)}, p90 {duration_text(run.p90_ns)}"
        )
        scatter = "" if run.scatter is None else f"; the middle half spans {run.scatter:.1%} of the median"
        yield field("samples", f"{spread}{scatter}")
    reasons = f": {'; '.join(run.quality_reasons)}" if run.quality_reasons else ""
    yield field("quality", f"{run.quality}{reasons}")
    for metric in run.metrics:
        yield field("metric", f"{metric.name} {metric.value:g} {metric.unit} ({metric.better} is better)")


def _samples_text(run: MeasurementView) -> str:
    if run.sample_count:
        samples = f"{run.sample_count} samples"
        return f"median of {samples}" if run.kind == "samples" else f"the tool's own mean of {samples}"
    return "the tool's own mean"


def _job_fields(view: JobDetail) -> Iterator[str]:
    if view.matrix_id is not None:
        repeat = f", repeat {view.repeat} of its block" if view.repeat else ""
        yield field("of", f"matrix {view.matrix_id} ({view.matrix}), round {view.round}{repeat}")
    if view.message or view.code:
        code = f"[{view.code}]" if view.code else ""
        yield field("why", " ".join(filter(None, [view.message, code])))
    yield field("queued", local_time_text(view.created_at))
    if view.finished_at is not None:
        yield field("ended", local_time_text(view.finished_at))


def _attempt(attempt: AttemptSummary) -> str:
    took = ""
    if attempt.finished_at is not None:
        took = f" after {elapsed_text((attempt.finished_at - attempt.claimed_at).total_seconds())}"
    why = f": {attempt.message}" if attempt.message else ""
    ended = f"{attempt.state}, {attempt.outcome}" if attempt.outcome else attempt.state
    return field(
        "attempt", f"{attempt.attempt_id}, {local_time_text(attempt.claimed_at)}, {ended}{took}{why}"
    )
