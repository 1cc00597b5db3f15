"""Rows of the leaderboard of google-ai-edge/litert-samples: JSON lines that its collector writes.

`benchmark/driver/collect.py` there makes them; `benchmark/leaderboard/README.md` says what each means.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from farm.harness.base.tool_result import LOAD_TIME
from farm.harness.external.json_document import JsonRecord
from farm.harness.external.results import ExternalFile, ExternalResult, ImportFormat, Statistic

#: By the name in `latency_ms`; those of benchmark_model.
_STATISTICS = {
    "avg": Statistic.MEAN,
    "median": Statistic.MEDIAN,
    "p5": Statistic.P5,
    "p95": Statistic.P95,
}
_SINGLE = {
    "init": (LOAD_TIME, Statistic.VALUE),
    "first_inference": ("first_inference", Statistic.VALUE),
    "warm_up_avg": ("warm_up_avg", Statistic.MEAN),
}
_SETTINGS = (
    "file",
    "task",
    "platform",
    "device_id",
    "delegate",
    "nodes_delegated",
    "nodes_total",
    "partitions",
    "binary",
    "runner",
    "session",
    "source",
)


def is_leaderboard(first: JsonRecord) -> bool:
    """Tell whether the first record is one of these."""
    return "row_id" in first and isinstance(first.fields.get("latency_ms"), dict)


def leaderboard_file(records: Sequence[JsonRecord]) -> ExternalFile:
    """Return the times and memory of each row; rows that were not measured are left out.

    Raises:
        InvalidInput: a field is something else.
    """
    results: list[ExternalResult] = []
    notes = []
    for record in records:
        status = record.text("status")
        if status not in (None, "measured"):
            notes.append(f"{record.place} is left out: its status is {status}")
        else:
            results += _results(record)
    return ExternalFile(format=ImportFormat.LITERT_LEADERBOARD, results=tuple(results), notes=tuple(notes))


def _results(record: JsonRecord) -> Iterator[ExternalResult]:
    runtime, version = record.text("runtime"), record.text("runtime_version")
    result = partial(
        ExternalResult,
        tool="benchmark_model",
        tool_version=" ".join(word for word in (runtime, version) if word) or None,
        model=record.text("model"),
        device=record.text("device"),
        os=record.text("os"),
        backend=record.text("accelerator"),
        date=record.text("date"),
        settings=record.told(*_SETTINGS),
    )
    times, memory = record.record("latency_ms"), record.record("memory_mb")
    for name, statistic in _STATISTICS.items():
        value = times.number(name)
        if value is None:
            continue
        yield result(
            metric="inference",
            value=value,
            unit="ms",
            statistic=statistic,
            sample_count=record.count("runs"),
            minimum=times.number("min"),
            maximum=times.number("max"),
            deviation=times.number("stddev"),
        )
    for name, (metric, statistic) in _SINGLE.items():
        value = times.number(name)
        if value is not None:
            count = record.count("warmup_runs") if statistic is Statistic.MEAN else None
            yield result(metric=metric, value=value, unit="ms", statistic=statistic, sample_count=count)
    for name in ("init_footprint", "overall_footprint"):
        value = memory.number(name)
        if value is not None:
            yield result(metric=name, value=value, unit="MB", statistic=Statistic.VALUE)
