"""What `farm live time` measured: a library of TVM, by `time_evaluator` over RPC on a phone that was held."""

from collections.abc import Iterator
from functools import partial
from statistics import mean, median, pstdev

from farm.harness.external.json_document import JsonRecord
from farm.harness.external.results import ExternalFile, ExternalResult, ImportFormat, Statistic

_CLOCK = "calls of the network in TVM's virtual machine on the phone, one after the other"
_SETTINGS = ("driven", "library_digest", "program", "threads", "key", "inputs", "number", "repeat", "tvm_ffi")


def is_live_timing(first: JsonRecord) -> bool:
    """Tell whether the first record is one of these."""
    return all(name in first for name in ("driven", "library_digest", "times_ns"))


def live_timing_file(record: JsonRecord) -> ExternalFile:
    """Return mean and median of a timing, and the time that the library took to load.

    Raises:
        InvalidInput: it has no times, or a field is something else.
    """
    return ExternalFile(format=ImportFormat.LOG, results=tuple(_results(record)))


def _results(record: JsonRecord) -> Iterator[ExternalResult]:
    times = record.numbers("times_ns")
    if not times:
        raise record.wrong("times_ns", "a list with a time")
    result = partial(
        ExternalResult,
        tool=record.text("tool") or "time_evaluator",
        tool_version=record.text("tool_version"),
        model=record.text("model"),
        device=record.text("device"),
        backend="cpu",
        date=record.text("measured_at"),
        settings=record.told(*_SETTINGS),
    )
    inference = partial(
        result,
        metric="inference",
        unit="ns",
        clock_covers=_CLOCK,
        sample_count=len(times),
        minimum=min(times),
        maximum=max(times),
        deviation=pstdev(times),
        samples=times,
    )
    yield inference(value=mean(times), statistic=Statistic.MEAN)
    yield inference(value=median(times), statistic=Statistic.MEDIAN)
    load_ms = record.number("load_ms")
    if load_ms is not None:
        yield result(metric="load time", value=load_ms, unit="ms", statistic=Statistic.VALUE)
