"""Output of ONNX Runtime's `onnxruntime_perf_test`, with the labels of old versions and new ones.

Averages are in milliseconds, totals and percentiles in seconds, whatever the version. Its result file has one
line `model,seconds,peak bytes,cpu %,number` for each iteration; in the newest version, the time to submit the
work stands before the total time.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from farm.harness.base.output_lines import plain_lines

_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,12})?(?:[eE][+-]?[0-9]{1,3})?"
#: By a line's label in lower case: the field, and the nanoseconds of its unit; 1 for plain numbers.
_FIELDS: Mapping[str, tuple[str, float]] = {
    "average inference time cost": ("mean_ns", 1e6),
    "average inference time cost total": ("mean_ns", 1e6),
    "average time cost": ("mean_ns", 1e6),
    "first inference time cost": ("first_ns", 1e6),
    "session creation time cost": ("creation_ns", 1e9),
    "total inference requests": ("requests", 1.0),
    "total iterations": ("requests", 1.0),
    "runs": ("runs", 1.0),
    "avg cpu usage": ("cpu_pct", 1.0),
    "peak working set size": ("peak_bytes", 1.0),
    "min latency": ("min_ns", 1e9),
    "max latency": ("max_ns", 1e9),
    "p50 latency": ("p50_ns", 1e9),
    "p90 latency": ("p90_ns", 1e9),
    "p95 latency": ("p95_ns", 1e9),
    "p99 latency": ("p99_ns", 1e9),
    "p999 latency": ("p999_ns", 1e9),
}
_TOTALS = ("total inference time cost", "total time cost")
_LINE = re.compile(rf"([A-Z][\w ]{{2,40}}?)(?::| is)\s{{0,4}}({_NUMBER})\s{{0,4}}(s|sec|ms|%|bytes)?$")
#: Unique labels, wherever they begin: a line may have an unknown prefix.
_INSIDE = re.compile(
    r"\b((?:Average|Total|First) inference (?:time cost(?: total)?|requests)|Session creation time cost)"
    rf":\s{{0,4}}({_NUMBER})\s{{0,4}}(s|ms)?$"
)
_SAMPLE = re.compile(
    rf"[^,\n]{{0,300}}(?:,{_NUMBER})?,({_NUMBER}),([0-9]{{1,18}}),([0-9]{{1,6}}),([0-9]{{1,9}})$"
)
_UNIT_NS: Mapping[str, float] = {"s": 1e9, "sec": 1e9, "ms": 1e6}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrtOutput:
    """The figures of one run, by name; times in nanoseconds."""

    figures: Mapping[str, float]
    #: Every iteration's time, where the output has it.
    samples_ns: tuple[int, ...]
    #: Its samples are numbered from 0 without a gap.
    samples_are_whole: bool
    #: More than one run ended in the output.
    contradicts: bool

    @property
    def mean_ns(self) -> float | None:
        """Return the tool's own average."""
        return self.figures.get("mean_ns")

    @property
    def requests(self) -> int | None:
        """Return the number of inferences in the average."""
        count = self.figures.get("requests", self.figures.get("runs"))
        return None if count is None else round(count)


def ort_output(text: str) -> OrtOutput:
    """Parse an output of any version; without an average line, compute it from total and count."""
    figures: dict[str, float] = {}
    samples: dict[int, int] = {}
    total_ns: float | None = None
    #: Figures that a run prints once.
    values_by_field: dict[str, set[float]] = {"mean_ns": set(), "creation_ns": set()}
    for line in plain_lines(text):
        if (sample := _SAMPLE.match(line)) is not None:
            samples[int(sample[4])] = round(float(sample[1]) * 1e9)
        elif (match := _INSIDE.search(line) or _LINE.match(line)) is not None:
            label, value, unit = match[1].lower(), float(match[2]), match[3] or ""
            if label in _TOTALS:
                total_ns = value * 1e9 if unit else total_ns
            elif (field := _FIELDS.get(label)) is not None:
                # The unit of old versions is the field's own; newer ones print it.
                figures[field[0]] = value * (_UNIT_NS.get(unit, field[1]) if field[1] > 1 else 1.0)
                values_by_field.get(field[0], set()).add(figures[field[0]])
    count = figures.get("requests")
    if "mean_ns" not in figures and total_ns is not None and count:
        figures["mean_ns"] = total_ns / count
    return OrtOutput(
        figures=figures,
        samples_ns=tuple(samples[number] for number in sorted(samples)),
        samples_are_whole=sorted(samples) == list(range(len(samples))),
        contradicts=any(len(values) > 1 for values in values_by_field.values()),
    )
