"""A speedup table counted again from the raw samples in the database, by the rules as they are written down.

Nothing here is the farm's: the samples are decoded as `farm/core/runs/samples.py` says they are packed, the
rules are those of the concepts page, and the statistics are the standard library's and SciPy's.
"""

import json
import sqlite3
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import exp, log, sqrt
from pathlib import Path
from typing import Any

_CONFIDENCE = 0.95
_MIN_ROUNDS = 5
#: speed_benchmark_torch prints whole microseconds.
_STEP_NS = 1000

_MEASURED = """
SELECT m.cell_id, m.round, m.repeat, m.samples, m.quality, c.settings
FROM measurements m JOIN cells c USING (cell_id) WHERE c.matrix_id = ? AND m.accepted
"""
_COMPARED = """
SELECT candidate.cell_id AS candidate_id, baseline.cell_id AS baseline_id,
    candidate.device_id, candidate.label AS candidate, baseline.label AS baseline,
    (SELECT duplicate.cell_id FROM cells duplicate
     WHERE duplicate.matrix_id = candidate.matrix_id AND duplicate.baseline_index = baseline.cell_index
     AND duplicate.replica > 1 AND candidate.replica = 1) AS duplicate_id
FROM cells candidate JOIN cells baseline
    ON baseline.matrix_id = candidate.matrix_id AND baseline.cell_index = candidate.baseline_index
WHERE candidate.matrix_id = ?
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One process start: the median of its samples, and whether it may be compared."""

    value_ns: float
    counts: bool


#: By round and repeat.
Side = Mapping[tuple[int, int], Value]


def recounted_rows(database: Path, matrix_id: int) -> list[dict[str, Any]]:
    """One row a candidate and device, with the names `farm speedups --json` uses."""
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        (text,) = connection.execute("SELECT spec FROM matrices WHERE matrix_id = ?", [matrix_id]).fetchone()
        spec = json.loads(text)
        side_by_cell: dict[int, dict[tuple[int, int], Value]] = {}
        for row in connection.execute(_MEASURED, [matrix_id]):
            value = _value(row, spec["noise_limit"])
            side_by_cell.setdefault(row["cell_id"], {})[row["round"], row["repeat"]] = value
        return [
            {
                "device_id": row["device_id"],
                "baseline": row["baseline"],
                "candidate": row["candidate"],
                **_compared(
                    _joined(side_by_cell[row["baseline_id"]], side_by_cell.get(row["duplicate_id"], {})),
                    side_by_cell[row["candidate_id"]],
                    spec["equivalence_margin"],
                ),
            }
            for row in connection.execute(_COMPARED, [matrix_id])
        ]


def unpacked(blob: bytes) -> list[int]:
    """Samples in nanoseconds: a version byte, varints of a unit and of zig-zag differences, a checksum."""
    assert blob[0] == 2
    samples, last = [], 0
    unit_ns, *numbers = _varints(blob[1:-4])
    for number in numbers:
        last += unit_ns * (number // 2 if number % 2 == 0 else -(number + 1) // 2)
        samples.append(last)
    return samples


def _varints(data: bytes) -> Iterator[int]:
    groups: list[int] = []
    for byte in data:
        groups.append(byte % 128)
        if byte < 128:
            yield sum(group * 128**place for place, group in enumerate(groups))
            groups = []
    assert not groups


def _value(row: sqlite3.Row, noise_limit: float) -> Value:
    samples = unpacked(row["samples"])
    median = statistics.median(samples)
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    is_complete = len(samples) == json.loads(row["settings"])["iter"]
    is_quiet = (high - low) / median <= noise_limit
    quality = "incomplete" if not is_complete else "valid" if is_quiet else "noisy"
    assert quality == row["quality"]
    return Value(value_ns=median, counts=quality in ("valid", "noisy"))


def _joined(baseline: Side, duplicate: Side) -> Side:
    """An A/A duplicate joins its baseline by block; where one does not count, the other stands alone."""
    joined = dict(baseline)
    for block, value in duplicate.items():
        own = baseline.get(block)
        if value.counts and (own is None or not own.counts):
            joined[block] = value
        elif value.counts and own is not None:
            joined[block] = Value(value_ns=sqrt(own.value_ns * value.value_ns), counts=True)
    return joined


def _compared(baseline: Side, candidate: Side, margin: float) -> dict[str, Any]:
    blocks = sorted({*baseline, *candidate})
    usable = {
        round: (baseline[round, repeat].value_ns, candidate[round, repeat].value_ns)
        for round, repeat in blocks
        if _counts(baseline, round, repeat) and _counts(candidate, round, repeat)
    }
    ratios = [before / after for before, after in usable.values()]
    steps = [
        (_STEP_NS / before) ** 2 / 12 + (_STEP_NS / after) ** 2 / 12 for before, after in usable.values()
    ]
    low, high = _interval(ratios, statistics.fmean(steps) if steps else 0.0)
    return {
        "speedup": statistics.geometric_mean(ratios),
        "ci_low": low,
        "ci_high": high,
        "rounds": len(usable),
        "excluded": len(blocks) - len(usable),
        "verdict": _verdict(low, high, margin),
        "baseline_ns": statistics.geometric_mean([before for before, _ in usable.values()]),
        "candidate_ns": statistics.geometric_mean([after for _, after in usable.values()]),
    }


def _counts(side: Side, round: int, repeat: int) -> bool:
    value = side.get((round, repeat))
    return value is not None and value.counts


def _interval(ratios: Sequence[float], hidden: float) -> tuple[float | None, float | None]:
    """Student's t, with the variance that the clock's steps hide, which all rounds share."""
    # Its import takes half a second, which only this test needs.
    from scipy.stats import t as student_t

    if len(ratios) < _MIN_ROUNDS:
        return None, None
    logs = [log(ratio) for ratio in ratios]
    sampled = statistics.variance(logs) / len(logs)
    # Welch and Satterthwaite's; of equal rounds only the steps are left.
    degrees = (len(logs) - 1) * ((sampled + hidden) / sampled) ** 2 if sampled else 1e6
    reach = student_t.ppf((1 + _CONFIDENCE) / 2, min(degrees, 1e6)) * sqrt(sampled + hidden)
    middle = statistics.fmean(logs)
    return exp(middle - reach), exp(middle + reach)


def _verdict(low: float | None, high: float | None, margin: float) -> str:
    if low is None or high is None:
        return "undecided"
    if high < 1:
        return _verdict(1 / high, 1 / low, margin).replace("faster", "slower")
    if low > 1 + margin:
        return "faster"
    if low > 1:
        return "faster_within_margin" if high <= 1 + margin else "faster_size_open"
    return "same" if 1 / (1 + margin) <= low and high <= 1 + margin else "undecided"
