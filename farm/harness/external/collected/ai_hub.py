"""Profiles of Qualcomm AI Hub, as `job.download_profile()` returns them.

The client's own code has the names of the fields. Units are those that its users compute with: times in
microseconds, memory in bytes.
"""

from collections import Counter
from collections.abc import Iterator

from farm.harness.external.json_document import JsonRecord
from farm.harness.external.results import ExternalFile, ExternalResult, ImportFormat, Statistic, Told

_TOOL = "Qualcomm AI Hub"
_TIME = "estimated_inference_time"
_OTHERS = {
    "first_load_time": "us",
    "warm_load_time": "us",
    "compile_time": "us",
    "estimated_inference_peak_memory": "bytes",
    "first_load_peak_memory": "bytes",
    "warm_load_peak_memory": "bytes",
    "compile_peak_memory": "bytes",
}


def is_ai_hub(record: JsonRecord) -> bool:
    """Tell whether a document is one of these."""
    return isinstance(record.fields.get("execution_summary"), dict)


def ai_hub_file(document: JsonRecord) -> ExternalFile:
    """Return the estimated time with its iterations, and the further times and memory of a profile.

    Raises:
        InvalidInput: it has no time: the job failed.
    """
    return ExternalFile(format=ImportFormat.AI_HUB, results=tuple(_results(document)))


def _results(document: JsonRecord) -> Iterator[ExternalResult]:
    summary = document.record("execution_summary")
    time_us = summary.number(_TIME)
    if time_us is None:
        raise summary.wrong(_TIME, "a number")
    times = summary.numbers("all_inference_times")
    settings = _compute_units(document)
    yield ExternalResult(
        tool=_TOOL,
        metric=_TIME,
        value=time_us,
        unit="us",
        statistic=Statistic.VALUE,
        samples=times,
        sample_count=len(times) or None,
        settings=settings,
    )
    for name, unit in _OTHERS.items():
        value = summary.number(name)
        if value is not None:
            yield ExternalResult(
                tool=_TOOL, metric=name, value=value, unit=unit, statistic=Statistic.VALUE, settings=settings
            )


def _compute_units(document: JsonRecord) -> dict[str, Told]:
    """Return the number of layers of each compute unit."""
    units = [layer.text("compute_unit") or "unknown" for layer in document.records("execution_detail")]
    return {f"layers on {unit}": count for unit, count in sorted(Counter(units).items())[:16]}
