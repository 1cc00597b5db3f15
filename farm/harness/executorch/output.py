"""Output of ExecuTorch's runner and of Qualcomm's and Samsung's."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from farm.harness.base.output_lines import plain_line, plain_lines, without_colours

_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,12})?(?:[eE][+-]?[0-9]{1,2})?"
#: executor_runner: the time of all executions together.
_TOTAL = re.compile(rf"Model executed successfully ([0-9]{{1,9}}) time\(s\) in ({_NUMBER}) ms")
#: The time of each execution, in newer runners.
_ITERATION = re.compile(rf"Iteration ([0-9]{{1,9}}) of ([0-9]{{1,9}}): ({_NUMBER}) ms")
#: qnn_executor_runner, one line for each set of inputs.
_OF_SET = re.compile(rf"(?<!Total )\b([0-9]{{1,9}}) inferences? took ({_NUMBER}) ms, avg ({_NUMBER}) ms")
#: Samsung's older runner, which executes once.
_ONCE = re.compile(rf"End with elapsed time\(ms\): ({_NUMBER})$")
#: The number of sets; its average is per set, which may be many inferences.
_SETS = re.compile(r"Total ([0-9]{1,9}) inferences? took")
#: The time of a line of ExecuTorch's own logger, in microseconds since its start.
_STAMP = re.compile(r"[VDIWEF] ([0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}) executorch:")
#: Sums are printed with six decimals.
_ROUNDED = 0.001
_SUCCESS = re.compile(r"Model executed successfully")


@dataclass(frozen=True, slots=True, kw_only=True)
class Executions:
    """The time of several executions together."""

    count: int
    total_ms: float
    line: str
    #: Empty where the line has none.
    stamp: str = ""


def executions(text: str) -> list[Executions]:
    """Return each line with the time of executions; older runners report only success.

    Where every line goes to the log and to the output, each pair counts once.
    """
    lines: list[Executions] = []
    sets: int | None = None
    for raw in without_colours(text.replace("\0", "")).splitlines():
        line = plain_line(raw)
        if (match := _TOTAL.search(line) or _OF_SET.search(line)) is not None:
            stamp = _stamp(raw)
            lines.append(Executions(count=int(match[1]), total_ms=float(match[2]), line=line, stamp=stamp))
        elif (match := _ONCE.search(line)) is not None:
            lines.append(Executions(count=1, total_ms=float(match[1]), line=line, stamp=_stamp(raw)))
        elif (match := _SETS.search(line)) is not None:
            sets = int(match[1])
    runs = _without_duplicates(lines, sets)
    return runs[:-1] if sets is None and _is_sum(runs) else runs


def _stamp(line: str) -> str:
    match = _STAMP.search(line)
    return match[1] if match is not None else ""


def _without_duplicates(lines: Sequence[Executions], sets: int | None) -> list[Executions]:
    """Remove repetitions: lines in the log and in the output stand there twice, all of them or none."""
    stamped = [line for line in lines if line.stamp]
    unstamped = Counter(line for line in lines if not line.stamp)
    if unstamped == Counter(replace(line, stamp="") for line in stamped):
        return stamped
    times = Counter(lines)
    if len(lines) == sets or any(number % 2 for number in times.values()):
        return list(lines)
    return list(Counter({line: number // 2 for line, number in times.items()}).elements())


def _is_sum(lines: Sequence[Executions]) -> bool:
    """Return whether the last line is Qualcomm's sum over all sets: their number, and all of their times."""
    if len(lines) < 2 or lines[-1].count != len(lines) - 1:
        return False
    total_ms = sum(line.total_ms for line in lines[:-1])
    return abs(lines[-1].total_ms - total_ms) <= _ROUNDED * total_ms


def iterations_ms(text: str) -> list[float]:
    """Return the time of each execution, in order; empty where the runner prints none, or one is missing."""
    ms_by_number: dict[int, float] = {}
    totals: set[int] = set()
    for line in plain_lines(text):
        if (match := _ITERATION.search(line)) is not None:
            ms_by_number.setdefault(int(match[1]), float(match[3]))
            totals.add(int(match[2]))
    is_whole = totals == {len(ms_by_number)} and sorted(ms_by_number) == list(range(1, len(ms_by_number) + 1))
    return [ms_by_number[number] for number in sorted(ms_by_number)] if is_whole else []


def are_of_one_run(lines: Sequence[Executions]) -> bool:
    """Return whether one process can have printed all: sets of inputs have a line each, all else one."""
    return len(lines) < 2 or all(_OF_SET.search(executed.line) is not None for executed in lines)


def reports_execution(text: str) -> bool:
    """Return whether a runner reports a successful execution, with or without a time."""
    return _SUCCESS.search(text) is not None
