"""The table of TensorFlow Lite's profiler: the time of each kind of operator in one inference.

Its columns are separated by tabs, blanks or, on request, commas. A delegate's internal operators stand in a
further table, whose times repeat those of the delegate's row.
"""

import re
from dataclasses import dataclass

from farm.harness.base.output_lines import plain_lines

_RUNS = "Operator-wise Profiling Info"
_BY_TYPE = "Summary by node type"
_INSIDE = "Delegate internal"
_ROW = re.compile(r"(\S[^\t]{0,100}?),?\s+([0-9]{1,9}),?\s+([0-9]{1,12}\.[0-9]{1,9}),?\s+[0-9.]{1,12}%[\s,]")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTime:
    """All operators of one kind together; a delegate's partition counts as an operator."""

    kind: str
    count: int
    average_ms: float


def operator_times(text: str) -> list[OperatorTime]:
    """Return the time of each kind of node in the profile of the regular runs; empty without a table."""
    times: list[OperatorTime] = []
    lines = plain_lines(text)
    # Up to 2019 only the runs were profiled, without a heading.
    in_runs, in_table = not any("Profiling Info for" in line for line in lines), False
    for line in lines:
        if _BY_TYPE in line:
            in_table = in_runs
        elif "Profiling Info for" in line:
            in_runs, in_table = line.startswith(_RUNS), False
        elif line.startswith(_INSIDE):
            in_runs = in_table = False
        elif in_table and (row := _ROW.match(line)) is not None:
            times.append(OperatorTime(kind=row[1], count=int(row[2]), average_ms=float(row[3])))
        elif line.startswith(("Timings (microseconds)", "=====")):
            in_table = False
    return times
