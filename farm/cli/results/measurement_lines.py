"""The parsed output of one run as text."""

from collections.abc import Iterator

from farm.cli.shell.formatting import EMPTY_CELL, duration_or_nothing, plural
from farm.core.base.units import duration_text
from farm.core.runs.measurement import UNKNOWN_ACCELERATOR, Metric, SampleKind
from farm.wire.documents.results.readings import ReadingView


def reading_fields(view: ReadingView) -> Iterator[tuple[str, str]]:
    """Return names and texts of time, spread, metrics and placement."""
    yield "time", f"{duration_text(view.value_ns)}, {_samples_text(view)}"
    if view.kind is SampleKind.SAMPLES:
        yield "samples", _spread(view)
    for metric in view.metrics:
        yield "metric", _metric(metric)
    accelerator = "unknown accelerator" if view.accelerator == UNKNOWN_ACCELERATOR else view.accelerator
    yield "actual", f"{view.actual_backend}, {accelerator}: {view.proof or EMPTY_CELL}"
    if view.offered:
        yield "offered", f"{', '.join(view.offered)}: devices that NNAPI offered"


def _samples_text(view: ReadingView) -> str:
    if view.kind is SampleKind.SUMMARY:
        return "the tool's own mean: it prints no samples"
    return f"the median of {plural(len(view.samples_ns), 'sample')}; mean {duration_text(view.mean_ns)}"


def _spread(view: ReadingView) -> str:
    least, most = duration_or_nothing(view.min_ns), duration_or_nothing(view.max_ns)
    scatter = "" if view.scatter is None else f", scatter {view.scatter:.1%}"
    return f"{least} to {most}, 90 % within {duration_or_nothing(view.p90_ns)}{scatter}"


def _metric(metric: Metric) -> str:
    return f"{metric.name} {metric.value:g} {metric.unit} ({metric.better} is better)"
