"""The protobuf that TensorFlow Lite's `benchmark_model` writes to `--result_file_path`.

Its schema is `tensorflow/lite/tools/benchmark/proto/benchmark_result.proto` of tensorflow/tensorflow: four
messages of numbers. The encoding is that of protobuf.dev/programming-guides/encoding; fields that are not in
the schema are skipped, as the format has it.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from farm.harness.base.tool_result import LOAD_TIME
from farm.harness.external.results import ExternalFile, ExternalResult, ImportFormat, Statistic

_NAME, _LATENCY, _MEMORY, _MISC = 1, 2, 3, 4
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_BYTES_OF_FIXED = {_FIXED64: 8, _FIXED32: 4}
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

Value = int | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    number: int
    wire_type: int
    value: Value


def find_benchmark_result(data: bytes) -> ExternalFile | None:
    """Return the results of such a message; None where the bytes are none, or have no mean."""
    try:
        parts = {
            field.number: field.value
            for field in _fields(data)
            if field.wire_type == _LENGTH and isinstance(field.value, bytes)
        }
        latency = _floats(parts.get(_LATENCY, b""))
        memory = {**_floats(parts.get(_MEMORY, b"")), **_integers(parts.get(_MEMORY, b""))}
        misc = _integers(parts.get(_MISC, b""))
        name = parts.get(_NAME, b"").decode()
    except (ValueError, struct.error):
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
    for field, metric in (("init", LOAD_TIME), ("first_inference", "first_inference")):
        if field in by_name:
            yield result(metric=metric, value=by_name[field], unit="ms", statistic=Statistic.VALUE)
    if "average_warm_up" in by_name:
        value = by_name["average_warm_up"]
        yield result(metric="warm_up", value=value, unit="ms", statistic=Statistic.MEAN, sample_count=warmups)
    for number, (metric, unit) in _MEMORY_FIELDS.items():
        if number in memory:
            yield result(metric=metric, value=memory[number], unit=unit, statistic=Statistic.VALUE)


def _count(value: int | None) -> int | None:
    return value if value is not None and 0 <= value < 2**31 else None


def _floats(message: bytes) -> dict[int, float]:
    """Return the floats of a message by field; of a repeated one the last, as the format has it."""
    # The nearest number of 7 digits: what 32 bits hold, without digits that were not measured.
    return {
        field.number: float(f"{struct.unpack('<f', field.value)[0]:.7g}")
        for field in _fields(message)
        if field.wire_type == _FIXED32 and isinstance(field.value, bytes)
    }


def _integers(message: bytes) -> dict[int, int]:
    """Return the integers of a message by field, like `_floats`."""
    return {
        field.number: field.value - 2**64 if field.value >= 2**63 else field.value
        for field in _fields(message)
        if field.wire_type == _VARINT and isinstance(field.value, int)
    }


def _fields(message: bytes) -> Iterator[_Field]:
    """Yield the fields of a message.

    Raises:
        ValueError: the bytes are no message, or are cut off.
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire_type = key >> 3, key & 7
        if number == 0:
            raise ValueError("no field has the number 0")
        value: Value
        if wire_type == _VARINT:
            value, at = _varint(message, at)
        else:
            if wire_type == _LENGTH:
                length, at = _varint(message, at)
            elif wire_type in _BYTES_OF_FIXED:
                length = _BYTES_OF_FIXED[wire_type]
            else:
                raise ValueError(f"no field has the wire type {wire_type}")
            value = message[at : at + length]
            at += length
            if at > len(message):
                raise ValueError("the message is cut off")
        yield _Field(number=number, wire_type=wire_type, value=value)


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
    raise ValueError("a number is cut off, or too long")
