"""The protobuf that TensorFlow Lite's `benchmark_model` writes to `--result_file_path`.

Its schema is `tensorflow/lite/tools/benchmark/proto/benchmark_result.proto` of tensorflow/tensorflow: four
messages of numbers. Fields that are not in the schema are skipped, as the format has it.
"""

import struct
from collections.abc import Iterator, Mapping
from functools import partial

from farm.core.models.protobuf import BYTES, FIXED32, VARINT, protobuf_fields, signed
from farm.harness.external.results import ExternalFile, ExternalResult, ImportFormat, Statistic

_NAME, _LATENCY, _MEMORY, _MISC = 1, 2, 3, 4
_INFERENCE = {"avg": Statistic.MEAN, "median": Statistic.MEDIAN, "p5": Statistic.P5, "p95": Statistic.P95}
_LATENCY_FIELDS = {
    1: "avg",
    2: "min",
    3: "max",
    4: "stddev",
    5: "median",
    6: "p5",
    7: "p95",
    8: "init",
    9: "first_inference",
    10: "average_warm_up",
}
_MEMORY_FIELDS = {1: ("init_footprint", "kB"), 2: ("overall_footprint", "kB"), 3: ("peak_mem", "MB")}
_RUNS, _WARMUP_RUNS = 2, 3

#: Where a message begins and ends.
_Part = tuple[int, int]
_EMPTY: _Part = (0, 0)


def find_benchmark_result(data: bytes) -> ExternalFile | None:
    """Return the results of such a message; None where the bytes are none, or have no mean."""
    try:
        parts = {
            number: (start, stop) for number, wire, start, stop in protobuf_fields(data) if wire == BYTES
        }
        latency = _floats(data, parts.get(_LATENCY, _EMPTY))
        memory_part = parts.get(_MEMORY, _EMPTY)
        memory = {**_floats(data, memory_part), **_integers(data, memory_part)}
        misc = _integers(data, parts.get(_MISC, _EMPTY))
        name = data[slice(*parts.get(_NAME, _EMPTY))].decode()
    except ValueError:
        return None
    if 1 not in latency:
        return None
    results = tuple(_results(latency, memory, misc, name))
    return ExternalFile(format=ImportFormat.BENCHMARK_RESULT, results=results)


def _results(
    latency: Mapping[int, float], memory: Mapping[int, float], misc: Mapping[int, int], name: str
) -> Iterator[ExternalResult]:
    result = partial(ExternalResult, tool="benchmark_model", settings={"name": name} if name else {})
    by_name = {
        _LATENCY_FIELDS[number]: value for number, value in latency.items() if number in _LATENCY_FIELDS
    }
    runs, warmups = _count(misc.get(_RUNS)), _count(misc.get(_WARMUP_RUNS))
    for field, statistic in _INFERENCE.items():
        if field in by_name:
            yield result(
                metric="inference",
                value=by_name[field],
                unit="ms",
                statistic=statistic,
                clock_covers="wall time",
                sample_count=runs,
                minimum=by_name.get("min"),
                maximum=by_name.get("max"),
                deviation=by_name.get("stddev"),
            )
    for field in ("init", "first_inference"):
        if field in by_name:
            yield result(metric=field, value=by_name[field], unit="ms", statistic=Statistic.VALUE)
    if "average_warm_up" in by_name:
        value = by_name["average_warm_up"]
        yield result(metric="warm_up", value=value, unit="ms", statistic=Statistic.MEAN, sample_count=warmups)
    for number, (metric, unit) in _MEMORY_FIELDS.items():
        if number in memory:
            yield result(metric=metric, value=memory[number], unit=unit, statistic=Statistic.VALUE)


def _count(value: int | None) -> int | None:
    return value if value is not None and 0 <= value < 2**31 else None


def _floats(data: bytes, message: _Part) -> dict[int, float]:
    """Return the floats of a message by field; of a repeated one the last, as the format has it."""
    # The nearest number of 7 digits: what 32 bits hold, without digits that were not measured.
    return {
        number: float(f"{struct.unpack_from('<f', data, start)[0]:.7g}")
        for number, wire, start, _ in protobuf_fields(data, *message)
        if wire == FIXED32
    }


def _integers(data: bytes, message: _Part) -> dict[int, int]:
    """Return the integers of a message by field, like `_floats`."""
    return {
        number: signed(value) for number, wire, value, _ in protobuf_fields(data, *message) if wire == VARINT
    }
