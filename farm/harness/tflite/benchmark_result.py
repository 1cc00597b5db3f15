"""The protobuf that TensorFlow Lite's `benchmark_model` writes to `--result_file_path`.

Its schema is `tensorflow/lite/tools/benchmark/proto/benchmark_result.proto` of tensorflow/tensorflow: four
messages of numbers. Fields that are not in the schema are skipped, as the format has it.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from farm.core.models.protobuf import BYTES, FIXED32, VARINT, protobuf_fields, signed

_NAME, _LATENCY, _MEMORY, _MISC = 1, 2, 3, 4
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
#: With their units.
MEMORY_FIELDS = {1: ("init_footprint", "kB"), 2: ("overall_footprint", "kB"), 3: ("peak_mem", "MB")}
_RUNS, _WARMUP_RUNS = 2, 3

#: Where a message begins and ends.
_Part = tuple[int, int]
_EMPTY: _Part = (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResult:
    """The numbers of one run, by the schema's names without their units."""

    name: str
    latency_ms: Mapping[str, float]
    #: In the units of `MEMORY_FIELDS`.
    memory: Mapping[str, float]
    runs: int | None
    warmup_runs: int | None


def benchmark_result(data: bytes) -> BenchmarkResult | None:
    """Parse such a message; None where the bytes are none, or have no mean."""
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
    return BenchmarkResult(
        name=name,
        latency_ms={field: latency[number] for number, field in _LATENCY_FIELDS.items() if number in latency},
        memory={field: memory[number] for number, (field, _) in MEMORY_FIELDS.items() if number in memory},
        runs=_count(misc.get(_RUNS)),
        warmup_runs=_count(misc.get(_WARMUP_RUNS)),
    )


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
