"""Measurements and the readings of attempts as text: time, spread, metrics and placement."""

from collections.abc import Iterator

from farm.core.base.units import duration_text, elapsed_text, quantity_text, size_text
from farm.core.runs.derived.generation import Generation
from farm.core.runs.derived.sustained import is_sustained
from farm.core.runs.measurement import UNKNOWN_ACCELERATOR, Metric, SampleKind
from farm.presentation.jobs.energy import energy_fields
from farm.presentation.jobs.profile import profile_fields
from farm.presentation.text import EMPTY_CELL, Field, duration_or_nothing, plural
from farm.wire.documents.results.explain import MeasurementView
from farm.wire.documents.results.results import ReadingView


def run_lines(run: MeasurementView) -> Iterator[Field]:
    """Return the lines of a measurement: value, samples, quality, metrics."""
    yield "value", f"{duration_text(run.value_ns)}, {value_text(run)}"
    if run.min_ns is not None and run.max_ns is not None and run.p90_ns is not None:
        low, high, p90 = map(duration_text, (run.min_ns, run.max_ns, run.p90_ns))
        scatter = "" if run.scatter is None else f"; the middle half spans {run.scatter:.1%} of the median"
        yield "samples", f"{low} to {high}, p90 {p90}{scatter}"
    reasons = f": {'; '.join(run.quality_reasons)}" if run.quality_reasons else ""
    yield "quality", f"{run.quality}{reasons}"
    for metric in run.metrics:
        yield "metric", metric_text(metric)


def value_text(run: MeasurementView) -> str:
    """Return what the value of a measurement is: `median of 30 samples`."""
    count = f" of {run.sample_count} samples" if run.sample_count else ""
    if run.kind == "samples" and is_sustained(run.metrics):
        return f"steady: median of the last fifth of the time{count}"
    if run.kind == "samples":
        return f"median{count}"
    deviation = "" if run.scatter is None else f", deviation {run.scatter:.1%}"
    return f"the tool's own mean{count}{deviation}"


def metric_text(metric: Metric) -> str:
    """Return `peak_memory 12.5 MB (lower is better)`."""
    return f"{metric.name} {quantity_text(metric.value, metric.unit)} ({metric.better} is better)"


def reading_fields(view: ReadingView) -> Iterator[Field]:
    """Return names and texts of time, spread, metrics and placement."""
    yield "time", f"{duration_text(view.value_ns)}, {_samples_text(view)}"
    if view.kind is SampleKind.SAMPLES:
        yield "samples", _spread(view)
    if view.profile is not None:
        yield from profile_fields(view.profile)
    for energy in view.energy:
        yield from energy_fields(energy)
    for metric in view.metrics:
        yield "metric", metric_text(metric)
    accelerator = "unknown accelerator" if view.accelerator == UNKNOWN_ACCELERATOR else view.accelerator
    yield "actual", f"{view.actual_backend}, {accelerator}: {view.proof or EMPTY_CELL}"
    if view.generation is not None:
        yield from _generation_fields(view.generation)
    if view.offered:
        yield "offered", f"{', '.join(view.offered)}: devices that NNAPI offered"


def _generation_fields(generation: Generation) -> Iterator[Field]:
    yield "regime", str(generation.regime)
    for when, files in (("before", generation.caches_before), ("after", generation.caches_after)):
        if files is not None:
            listed = ", ".join(f"{file.name} {size_text(file.size_bytes)}" for file in files)
            yield "caches", f"{when}: {listed or 'none'}"
    for name, digest in (("prompt", generation.prompt_sha256), ("text", generation.text_sha256)):
        if digest is not None:
            yield name, f"SHA-256 {digest}"


def _samples_text(view: ReadingView) -> str:
    if view.kind is SampleKind.SUMMARY:
        deviation = "" if view.scatter is None else f", deviation {view.scatter:.1%}"
        return f"the tool's own mean{deviation}: it prints no samples"
    if view.profile is not None:
        number, worked = plural(len(view.samples_ns), "sample"), elapsed_text(view.profile.worked_s)
        return (
            f"steady: the median of the last fifth of {worked}; {number}, mean {duration_text(view.mean_ns)}"
        )
    return f"the median of {plural(len(view.samples_ns), 'sample')}; mean {duration_text(view.mean_ns)}"


def _spread(view: ReadingView) -> str:
    least, most = duration_or_nothing(view.min_ns), duration_or_nothing(view.max_ns)
    scatter = "" if view.scatter is None else f", scatter {view.scatter:.1%}"
    return f"{least} to {most}, 90 % within {duration_or_nothing(view.p90_ns)}{scatter}"
