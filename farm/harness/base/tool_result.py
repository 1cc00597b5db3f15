"""Readings from the numbers of a tool, or the reason why there are none."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Better, Metric, Reading, RunFailure
from farm.core.runs.placement import Placement
from farm.core.runs.plan import RunPlan
from farm.harness.base.output_lines import plain_lines, without_colours
from farm.harness.base.placement_probe import actual_backend_of_plan
from farm.harness.failures.classification import find_failure, unreadable_failure
from farm.harness.failures.patterns import RUNTIME_PATTERNS, FailurePattern

_LONGEST_LINE_CHARS = 2000
_ITERATION = re.compile(
    r"Iteration ([0-9]{1,9}) of ([0-9]{1,9}): ([0-9]{1,15}(?:\.[0-9]{1,12})?(?:[eE][+-]?[0-9]{1,2})?) ms"
)
_LOADED = re.compile(r"Model loaded in ([0-9]{1,15}(?:\.[0-9]{1,12})?(?:[eE][+-]?[0-9]{1,2})?) ms")
#: Longer than any run; values below it fit into 64 bits.
LONGEST_NS = 1e15
#: The metric of the time from the file to a model that can run: the tool's own, in the unit of its other
#: times; of a tool that prints none, that between lines which it prints.
LOAD_TIME = "load_time"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTimes:
    """The times of a tool's main loop: of each iteration, or the mean."""

    samples_ns: tuple[int, ...] = ()
    mean_ns: float | None = None
    expected: int
    #: Number of iterations in the mean, where the tool reports it.
    summed: int | None = None
    #: The resolution of the printed time.
    step_ns: int = 0
    #: The standard deviation of the iterations in the mean, where the tool prints it.
    deviation_ns: float | None = None
    #: The shortest and the longest of them; used where no deviation is printed.
    extremes_ns: tuple[float, float] | None = None
    #: Their median, where the tool prints it beside the mean.
    median_ns: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """One model's row in a tool's table: its times in milliseconds."""

    name: str
    min_ms: float
    max_ms: float
    mean_ms: float


def combined_output(evidence: Evidence) -> str:
    """Return both outputs together: which of them a tool or its logger uses differs by version.

    Lines are cut at a length that no tool reaches, so that a program with endless lines takes no endless
    time.
    """
    out = _complete_lines(evidence.stdout, evidence.stdout_dropped_bytes)
    err = _complete_lines(evidence.stderr, evidence.stderr_dropped_bytes)
    text = without_colours(f"{out}\n{err}")
    return "\n".join(line[:_LONGEST_LINE_CHARS] for line in text.splitlines())


def complete_stdout_lines(evidence: Evidence) -> list[str]:
    """Return the whole lines of the standard output, however long, for tools that print one record a line."""
    return _complete_lines(evidence.stdout, evidence.stdout_dropped_bytes).splitlines()


def _complete_lines(text: str, dropped_bytes: int) -> str:
    """Remove the line that was cut off, if any: the rest of a number is another number."""
    return text[: max(text.rfind(end) for end in "\r\n") + 1] if dropped_bytes else text


def iterations_ms(text: str) -> list[float]:
    """Return the times of lines `Iteration 3 of 50: 1.5 ms`, in order; empty where one of them is missing."""
    ms_by_number: dict[int, float] = {}
    totals: set[int] = set()
    for line in plain_lines(text):
        if (match := _ITERATION.search(line)) is not None:
            ms_by_number.setdefault(int(match[1]), float(match[3]))
            totals.add(int(match[2]))
    is_whole = totals == {len(ms_by_number)} and sorted(ms_by_number) == list(range(1, len(ms_by_number) + 1))
    return [ms_by_number[number] for number in sorted(ms_by_number)] if is_whole else []


def printed_load_ms(text: str) -> float | None:
    """Return the time from the file to a model that can run, where the tool or our own runner prints it."""
    match = _LOADED.search(text)
    return None if match is None else float(match[1])


def load_time(text: str, otherwise_ms: float | None = None) -> list[Metric]:
    """Return the time from the file to a model that can run, as a metric.

    Args:
        text: what was printed.
        otherwise_ms: the time by another source, for a tool that prints none; None without one.
    """
    ms = printed_load_ms(text)
    return lower_is_better({LOAD_TIME: otherwise_ms if ms is None else ms}, "ms")


def other_iterations(
    iterations_ms: Sequence[float], mean_ms: float, *, summed: int | None, tolerance_ms: float
) -> str | None:
    """Return why the printed iterations are not those of the stated mean; None where they are.

    Args:
        iterations_ms: their times in milliseconds.
        mean_ms: the stated mean.
        summed: of how many iterations it is; None where that is not printed.
        tolerance_ms: by how much the mean of all of them may differ from the stated one.
    """
    count = len(iterations_ms)
    found_ms = fmean(iterations_ms) if iterations_ms else 0.0
    if count and summed in (None, count) and abs(found_ms - mean_ms) <= tolerance_ms:
        return None
    stated = f"{mean_ms:.6g} ms" if summed is None else f"{mean_ms:.6g} ms of {summed}"
    return f"{count} inferences of {found_ms:.6g} ms are not those of the stated mean, {stated}"


def time_reading(
    plan: RunPlan,
    evidence: Evidence,
    times: LoopTimes,
    *,
    placement: Placement | None,
    on_cpu: str = "",
    metrics: Sequence[Metric] = (),
) -> Reading | RunFailure:
    """Return a reading of times, with where they were taken.

    Args:
        plan: the plan of the run.
        evidence: the evidence of the run.
        times: the times in its output.
        placement: where the output shows it ran.
        on_cpu: why it can only have been the CPU, or empty; used where the output shows nothing.
        metrics: further values.
    """
    if (wrong := _implausible_reason(times)) is not None:
        return missing_times_failure(evidence, wrong)
    actual, actual_placement = actual_backend_of_plan(plan, placement)
    backend, accelerator, proof = actual.backend, str(actual.accelerator), actual.proof
    # Warnings alone concern software that was not requested.
    if on_cpu and (actual_placement is None or not actual_placement.shares):
        backend, accelerator, proof, actual_placement = plan.backend, "cpu", on_cpu, None
    return Reading(
        samples_ns=times.samples_ns,
        mean_ns=times.mean_ns,
        expected_samples=times.expected,
        summed_samples=times.summed,
        deviation_ns=deviation_of_mean(times),
        extremes_ns=times.extremes_ns,
        median_ns=times.median_ns,
        actual_backend=backend,
        accelerator=accelerator,
        proof=proof,
        metrics=tuple(metrics),
        clock_step_ns=times.step_ns,
        placement=actual_placement,
    )


def row_reading(
    plan: RunPlan,
    evidence: Evidence,
    row: ResultRow,
    *,
    expected: int,
    summed: int | None,
    step_ns: int,
    placement: Placement | None,
    on_cpu: str = "",
    samples_ms: Sequence[float],
    rounded_ms: float,
    metrics: Sequence[Metric] = (),
) -> Reading | RunFailure:
    """Return a reading of a row's mean, or of the times that it is the mean of, with its extremes as metrics.

    Args:
        samples_ms: single times, in milliseconds; empty where the tool prints none.
        rounded_ms: by how much the printed mean may differ from theirs.

    Other arguments are those of `time_reading` and `LoopTimes`.
    """
    times = LoopTimes(
        mean_ns=row.mean_ms * 1e6,
        expected=expected,
        summed=summed,
        step_ns=step_ns,
        extremes_ns=(row.min_ms * 1e6, row.max_ms * 1e6),
    )
    if samples_ms:
        wrong = other_iterations(samples_ms, row.mean_ms, summed=None, tolerance_ms=rounded_ms)
        if wrong is not None:
            return unreadable_failure(evidence, wrong)
        samples_ns = tuple(round(ms * 1e6) for ms in samples_ms)
        times = LoopTimes(samples_ns=samples_ns, expected=expected, step_ns=1)
    extremes = lower_is_better(dict(zip(ROW_METRICS, (row.min_ms, row.max_ms), strict=True)), "ms")
    metrics = [*extremes, *metrics]
    return time_reading(plan, evidence, times, placement=placement, on_cpu=on_cpu, metrics=metrics)


def missing_times_failure(
    evidence: Evidence, why: str, patterns: Sequence[FailurePattern] = RUNTIME_PATTERNS
) -> RunFailure:
    """Return why a tool ended well without its time, by its output where that shows it."""
    return find_failure(evidence, patterns) or unreadable_failure(evidence, why)


#: The metrics of `row_reading`.
ROW_METRICS = ("min", "max")


def lower_is_better(values: Mapping[str, float | None], unit: str) -> list[Metric]:
    """Return metrics of which less is better; values that were not printed are left out."""
    return [
        Metric(name=name, value=value, unit=unit, better=Better.LOWER)
        for name, value in values.items()
        if value is not None
    ]


def deviation_of_mean(times: LoopTimes) -> float | None:
    """Return the deviation of the iterations; without one the least that mean, extremes and median allow.

    By the extremes that is the one where all iterations but these two took the same time. A median is never
    further from the mean than the deviation (Hotelling and Solomons, The Limits of a Measure of Skewness,
    1932).
    """
    count = times.summed or times.expected
    if times.mean_ns is None or times.deviation_ns is not None or count < 2:
        return times.deviation_ns
    least = []
    if times.extremes_ns is not None:
        least.append(_deviation_of_extremes(times.mean_ns, times.extremes_ns, count))
    if times.median_ns is not None:
        least.append(abs(times.mean_ns - times.median_ns))
    return max(least, default=None)


def _deviation_of_extremes(mean_ns: float, extremes_ns: tuple[float, float], count: int) -> float:
    others = count - 2
    other_ns = (count * mean_ns - sum(extremes_ns)) / others if others else mean_ns
    squares = sum((value_ns - mean_ns) ** 2 for value_ns in extremes_ns)
    return sqrt((squares + others * (other_ns - mean_ns) ** 2) / count)


def _implausible_reason(times: LoopTimes) -> str | None:
    values = times.samples_ns or (times.mean_ns or 0.0,)
    if min(values) <= 0:
        return "no iteration takes no time"
    return "no iteration takes so long" if max(values) > LONGEST_NS else None
