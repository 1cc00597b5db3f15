"""The protobuf of `benchmark_model`, kept from a run that the farm did not make."""

from collections.abc import Iterator
from functools import partial

from farm.harness.base.tool_result import LOAD_TIME
from farm.harness.external.results import ExternalFile, ExternalResult, ImportFormat, Statistic
from farm.harness.tflite.benchmark_result import MEMORY_FIELDS, BenchmarkResult, benchmark_result

_INFERENCE = {"avg": Statistic.MEAN, "median": Statistic.MEDIAN, "p5": Statistic.P5, "p95": Statistic.P95}
_SINGLE = {"init": LOAD_TIME, "first_inference": "first_inference"}


def find_benchmark_result(data: bytes) -> ExternalFile | None:
    """Return the results in a message; None where the bytes are no such message, or have no mean."""
    message = benchmark_result(data)
    if message is None:
        return None
    return ExternalFile(format=ImportFormat.BENCHMARK_RESULT, results=tuple(_results(message)))


def _results(message: BenchmarkResult) -> Iterator[ExternalResult]:
    settings = {"name": message.name} if message.name else {}
    result = partial(ExternalResult, tool="benchmark_model", settings=settings)
    latency = message.latency_ms
    for field, statistic in _INFERENCE.items():
        if field in latency:
            yield result(
                metric="inference",
                value=latency[field],
                unit="ms",
                statistic=statistic,
                clock_covers="wall time",
                sample_count=message.runs,
                minimum=latency.get("min"),
                maximum=latency.get("max"),
                deviation=latency.get("stddev"),
            )
    for field, metric in _SINGLE.items():
        if field in latency:
            yield result(metric=metric, value=latency[field], unit="ms", statistic=Statistic.VALUE)
    if "average_warm_up" in latency:
        yield result(
            metric="warm_up",
            value=latency["average_warm_up"],
            unit="ms",
            statistic=Statistic.MEAN,
            sample_count=message.warmup_runs,
        )
    for metric, unit in MEMORY_FIELDS.values():
        if metric in message.memory:
            yield result(metric=metric, value=message.memory[metric], unit=unit, statistic=Statistic.VALUE)
