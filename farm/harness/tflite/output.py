"""Output of TensorFlow Lite's `benchmark_model`, in the wordings of all its versions.

Up to 2019: `Average inference timings in us: Warmup: W, Init: I, no stats: N`, in the last of these versions
`Inference: N`, which the app ends with `Overall max resident set size = ..`; the first tool has `N , Warmup:
W, ` after the colon, and TensorFlow's own, of the same name, no `Init` but a third, profiled loop: `with
stats: S`. Since 2020: `Inference timings in us: Init: I, First inference: F, Warmup (avg): W, Inference
(avg): N`. Before it, warm-up and main loop have a line each, `count=N first=.. curr=.. min=.. max=.. avg=..
std=..`, the newest with p5, median and p95; a loop of one run has `count=1 curr=..` only, runs of equal time
`count=N curr=..(all same)`, no run `count=0`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farm.core.runs.derived.operator_times import OperatorTime
from farm.harness.base.output_lines import plain_lines

#: C++ streams print 6 significant digits, and an exponent from 1e6 on.
_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?"
_LOOP = re.compile(
    r"(?:^|(?:(?<=[^:\s])|(?<=INFO:))\s+)count=([0-9]{1,9})"
    rf"((?: (?:first|curr|min|max|avg|std|p5|median|p95)={_NUMBER})*)"
    r"(?: ?\(all same\))?$"
)
#: Both are printed with six digits.
_MEANS_MAY_DIFFER = 0.001
_FIELD = re.compile(rf"\b(\w+)=({_NUMBER})")
_SINCE_2020 = re.compile(
    rf"Inference timings in us: Init: ({_NUMBER}), First inference: ({_NUMBER}),"
    rf" Warmup \(avg\): ({_NUMBER}), Inference \(avg\): ({_NUMBER})$"
)
_OF_2019 = re.compile(
    rf"Average inference timings in us: Warmup: ({_NUMBER})(?:, Init: ({_NUMBER}))?,"
    rf" (?:no stats|with stats|Inference): ({_NUMBER})(?:(, with stats: {_NUMBER})?$|Overall )"
)
_OF_2018 = re.compile(rf"Average inference timings in us: ({_NUMBER}) , Warmup: ({_NUMBER}),$")
_MEMORY = re.compile(
    r"(?:Memory footprint delta from the start of the tool|Peak memory footprint) \(MB\):"
    rf" init=({_NUMBER}) overall=({_NUMBER})"
)
_PEAK = re.compile(rf"Overall peak memory footprint \(MB\) via periodic monitoring: ({_NUMBER})")
#: Before the warm-up: the parameters, the model's name and size, the time of loading it.
_BEGINNING = re.compile(
    r"STARTING!|Log parameter values|Min num runs: \[|Graph: \[|Loaded model |resolved reporter"
    r"|The input model file size|Initialized session in "
)
#: Before each loop.
_HEADING = "Running benchmark for at least"
#: The second is printed by the tool that tries several options.
_UNKNOWN_FLAG = re.compile(
    r"(?:Unconsumed cmdline flags|unrecognized commandline flag):\s{1,9}(--?[\w-]{1,100})"
)
_RUNS = "Operator-wise Profiling Info"
_BY_TYPE = "Summary by node type"
_INSIDE = "Delegate internal"
_ROW = re.compile(r"(\S[^\t]{0,100}?),?\s+([0-9]{1,9}),?\s+([0-9]{1,12}\.[0-9]{1,9}),?\s+[0-9.]{1,12}%[\s,]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTiming:
    """One loop of runs: the warm-up, or the main one."""

    count: int
    mean_us: float
    #: min, max, std, p5, median, p95: whatever the version prints.
    values_us: Mapping[str, float]
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TfliteOutput:
    """The output of one run, as far as it got."""

    #: Of the main loop; None where it did not end.
    mean_us: float | None
    #: The line with the mean.
    line: str | None
    main: LoopTiming | None
    warmup: LoopTiming | None
    warmup_us: float | None
    init_us: float | None
    first_us: float | None
    init_mb: float | None
    overall_mb: float | None
    peak_mb: float | None
    #: Different last lines, or one that disagrees with its loop: it was cut off, or belongs to another run.
    contradicts: bool
    #: A flag that it ignored as unknown.
    unknown_flag: str | None


def tflite_output(text: str, *, is_cut: bool = False) -> TfliteOutput:
    """Parse an output; lines that loggers doubled count once, tables of operators not at all.

    Args:
        text: what the tool printed.
        is_cut: its end is missing.
    """
    lines = plain_lines(text)
    loops = _loops(lines)
    summaries = list(dict.fromkeys(summary for line in lines if (summary := _summary(line)) is not None))
    last = summaries[-1] if summaries else None
    warmup, main = _warmup_and_main(loops, lines, last, is_cut=is_cut)
    memory = _last(_MEMORY, lines)
    peak = _last(_PEAK, lines)
    unknown = _last(_UNKNOWN_FLAG, lines)
    return TfliteOutput(
        mean_us=last.mean_us if last else main.mean_us if main else None,
        line=last.line if last else main.line if main else None,
        main=main,
        warmup=warmup,
        warmup_us=last.warmup_us if last else warmup.mean_us if warmup else None,
        init_us=last.init_us if last else None,
        first_us=last.first_us if last else None,
        init_mb=float(memory[1]) if memory else None,
        overall_mb=float(memory[2]) if memory else None,
        peak_mb=float(peak[1]) if peak else None,
        contradicts=len(summaries) > 1 or len(loops) > (last.loops if last else 2) or _is_another(main, last),
        unknown_flag=unknown[1] if unknown else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Summary:
    mean_us: float
    init_us: float | None
    warmup_us: float
    first_us: float | None
    #: The largest possible number of loops: warm-up, main, profiled.
    loops: int = 2
    line: str


def _summary(line: str) -> _Summary | None:
    if (match := _SINCE_2020.search(line)) is not None:
        init, first, warmup, mean = map(float, match.groups())
        return _Summary(mean_us=mean, init_us=init, warmup_us=warmup, first_us=first, line=line)
    if (match := _OF_2019.search(line)) is not None:
        return _Summary(
            mean_us=float(match[3]),
            init_us=None if match[2] is None else float(match[2]),
            warmup_us=float(match[1]),
            first_us=None,
            loops=3 if match[4] else 2,
            line=line,
        )
    if (match := _OF_2018.search(line)) is not None:
        mean, warmup = map(float, match.groups())
        return _Summary(mean_us=mean, init_us=None, warmup_us=warmup, first_us=None, line=line)
    return None


def _warmup_and_main(
    loops: Sequence[LoopTiming], lines: Sequence[str], last: _Summary | None, *, is_cut: bool
) -> tuple[LoopTiming | None, LoopTiming | None]:
    """Return the loop of the warm-up and the main one.

    A lone one is the main loop: the head with the warm-up's was cut off. It is the warm-up's where the last
    line has its mean, and without a last line where the beginning is there, or the end was cut off.
    """
    if len(loops) != 1:
        return (loops[0], loops[1]) if loops else (None, None)
    lone = loops[0]
    if last is not None:
        is_warmup = _differs(lone.mean_us, last.mean_us) and not _differs(lone.mean_us, last.warmup_us)
    else:
        behind = next(at for at, line in enumerate(lines) if line.endswith(lone.line))
        is_warmup = (
            is_cut
            or any(_BEGINNING.match(line) is not None for line in lines[:behind])
            or any(line.startswith(_HEADING) for line in lines[behind:])
        )
    return (lone, None) if is_warmup else (None, lone)


def _is_another(main: LoopTiming | None, last: _Summary | None) -> bool:
    if main is None or last is None or main.count == 0:
        return False
    return _differs(main.mean_us, last.mean_us)


def _differs(mean_us: float, other_us: float) -> bool:
    return abs(mean_us - other_us) > max(0.01, _MEANS_MAY_DIFFER * mean_us)


def _loops(lines: Sequence[str]) -> list[LoopTiming]:
    """Return the loops in order. Labelled lines are none: `Timings (microseconds): count=` is of a table,
    `cpu w/ 4 threads: count=` of the tool that tries several options.
    """
    loops: list[LoopTiming] = []
    before = ""
    for line in lines:
        match = _LOOP.search(line)
        loop_text = match[0].strip() if match is not None else ""
        # After an unknown prefix only a loop's values are evidence enough.
        if match is not None and loop_text != before and (match[2] or match.start() == 0):
            loops.append(_loop(match))
        before = loop_text
    return loops


def _loop(match: re.Match[str]) -> LoopTiming:
    values = {name: float(value) for name, value in _FIELD.findall(match[2])}
    mean = values.pop("avg", values.get("curr", 0.0))
    for name in ("first", "curr"):
        values.pop(name, None)
    return LoopTiming(count=int(match[1]), mean_us=mean, values_us=values, line=match[0].strip())


def _last(pattern: re.Pattern[str], lines: Sequence[str]) -> re.Match[str] | None:
    return next((match for line in reversed(lines) if (match := pattern.search(line)) is not None), None)


def operator_times(text: str) -> list[OperatorTime]:
    """Return the time of each kind of node in the profile of the regular runs; empty without a table.

    A delegate's partition counts as an operator.
    """
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
            times.append(OperatorTime(operator=row[1], count=int(row[2]), ms=float(row[3])))
        elif line.startswith(("Timings (microseconds)", "=====")):
            in_table = False
    return times
