"""The protobuf that LiteRT-LM's `litert_lm_advanced_main` writes to `--metric_proto_file_path`.

Its schema is `runtime/proto/litert_lm_metrics.proto` of google-ai-edge/LiteRT-LM, which has it since 2026: a
list of iterations, with the numbers of the `BenchmarkInfo` that is printed of each. Fields that are not in
the schema are skipped, as the format has it.
"""

from collections.abc import Iterator

from farm.core.models.protobuf import BYTES, VARINT, MalformedMessage, protobuf_fields, signed
from farm.harness.llm.litert_lm.benchmark_info import BenchmarkInfo, MalformedInfo, Turn, info_of_turns

#: Of `LitertLmMetricsList`, `LitertLmMetrics`, `BenchmarkTurnData` and of an entry of a map.
_METRICS = 1
_PHASES, _PREFILL_TURNS, _DECODE_TURNS = 2, 4, 5
_DURATION_US, _TOKENS = 1, 2
_KEY, _VALUE = 1, 2

#: Where a message begins and ends.
_Part = tuple[int, int]


def metrics_infos(data: bytes) -> list[BenchmarkInfo]:
    """Return the iterations of a `LitertLmMetricsList`; durations are in steps of 1 us.

    Raises:
        MalformedInfo: the bytes are no such message, or an iteration has not one turn of each kind, or one
            that took no time.
    """
    try:
        return [_info(data, part) for part in _parts(data, (0, len(data)), _METRICS)]
    except (MalformedMessage, UnicodeDecodeError) as error:
        raise MalformedInfo(f"the file of metrics is none: {error}") from error


def _info(data: bytes, metrics: _Part) -> BenchmarkInfo:
    phases: dict[str, float] = {}
    for entry in _parts(data, metrics, _PHASES):
        names = [data[start:stop].decode() for start, stop in _parts(data, entry, _KEY)]
        if names:
            phases[names[-1]] = _integer(data, entry, _VALUE) / 1e3
    turns = {
        kind: [
            Turn(tokens=_integer(data, part, _TOKENS), duration_ns=1e3 * _integer(data, part, _DURATION_US))
            for part in _parts(data, metrics, number)
        ]
        for kind, number in (("prefill", _PREFILL_TURNS), ("decode", _DECODE_TURNS))
    }
    return info_of_turns(phases, turns)


def _parts(data: bytes, message: _Part, number: int) -> Iterator[_Part]:
    """Yield where the messages and texts of a field are."""
    for found, wire, start, stop in protobuf_fields(data, *message):
        if (found, wire) == (number, BYTES):
            yield start, stop


def _integer(data: bytes, message: _Part, number: int) -> int:
    """Return a number of a message, 0 where it is not written; of a repeated one the last."""
    value = 0
    for found, wire, written, _ in protobuf_fields(data, *message):
        if (found, wire) == (number, VARINT):
            value = signed(written)
    return value
