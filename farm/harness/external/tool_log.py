"""The output of a tool that has an adapter, kept from a run that the farm did not make."""

import re
from dataclasses import replace
from statistics import median

from farm.core.base.setting_values import SettingValue
from farm.core.errors import InvalidInput
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import Metric, Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import Harness
from farm.harness.base.options import flag_defaults
from farm.harness.base.output_lines import plain_lines
from farm.harness.external.results import (
    MAX_SETTINGS,
    MAX_TEXT_CHARS,
    ExternalFile,
    ExternalResult,
    ImportFormat,
    Statistic,
    Told,
)

#: More than any loop has: how many iterations were asked for, a log does not say.
_ASKED = 1_000_000_000
#: How benchmark_model lists the flags that were given: `Num threads: [4]`.
_FLAG = re.compile(r"([#A-Z][\w #-]{0,60}): \[([^\]]{0,400})\]$")
_GRAPH = "Graph"


def tool_log_file(text: str, harness: Harness) -> ExternalFile:
    """Return the time and the further metrics that an adapter reads in a log.

    The clock's resolution and the counts are the tool's; which hardware ran is told only where the log
    shows it.

    Raises:
        InvalidInput: the adapter reads no time in it.
    """
    plan = RunPlan(
        harness=harness.name,
        backend=harness.backends[0],
        settings=_settings(harness),
        files=(),
        argv=(),
        timeout_s=1.0,
    )
    evidence = Evidence(fence=0, exit=ExitRecord(code=0, duration_s=0.0), stdout=text)
    reading = harness.parse(plan, evidence)
    if isinstance(reading, RunFailure):
        raise _refusal(reading, harness)
    told = _flags_told(text)
    first = _time_result(reading, harness, told)
    others = tuple(_metric_result(first, metric) for metric in reading.metrics)
    return ExternalFile(format=ImportFormat.LOG, results=(first, *others))


def _settings(harness: Harness) -> dict[str, SettingValue]:
    asked = {} if harness.sustained_flags is None else {harness.sustained_flags.iterations: _ASKED}
    return {**flag_defaults(harness), **{name: value for name, value in asked.items() if name}}


def _refusal(failure: RunFailure, harness: Harness) -> InvalidInput:
    if failure.code != "run.output_unreadable":
        return InvalidInput(f"the run did not end well: {failure.message}", hint=failure.hint)
    return InvalidInput(
        f"{harness.name} prints more than this: one complete run is not in it",
        hint="it may be cut off, have several runs in it, or be of another tool",
    )


def _time_result(reading: Reading, harness: Harness, told: dict[str, Told]) -> ExternalResult:
    has_samples = bool(reading.samples_ns)
    samples = tuple(float(sample) for sample in reading.samples_ns)
    extremes = reading.extremes_ns or (None, None)
    graph = told.get(_GRAPH)
    return ExternalResult(
        tool=harness.name,
        model=str(graph).replace("\\", "/").rsplit("/", 1)[-1] if graph else None,
        backend=_backend(reading),
        metric="time",
        value=median(samples) if has_samples else round(reading.mean_ns or 0.0, 3),
        unit="ns",
        statistic=Statistic.MEDIAN if has_samples else Statistic.MEAN,
        clock_covers=harness.clock_covers,
        sample_count=len(samples) if has_samples else reading.summed_samples,
        minimum=min(samples) if has_samples else extremes[0],
        maximum=max(samples) if has_samples else extremes[1],
        # Without a count, the deviation is what the asked number of iterations would have.
        deviation=None if reading.summed_samples is None else reading.deviation_ns,
        samples=samples,
        settings={name: value for name, value in told.items() if name != _GRAPH},
    )


def _metric_result(first: ExternalResult, metric: Metric) -> ExternalResult:
    return replace(
        first,
        metric=metric.name,
        value=metric.value,
        unit=metric.unit or None,
        statistic=Statistic.VALUE,
        clock_covers=None,
        sample_count=None,
        minimum=None,
        maximum=None,
        deviation=None,
        samples=(),
    )


def _backend(reading: Reading) -> str | None:
    """Return what the log shows; without it, an adapter concludes from the command, which is not known."""
    if reading.placement is None or not reading.placement.shares:
        return None
    return ", ".join(dict.fromkeys(share.by for share in reading.placement.shares))


def _flags_told(text: str) -> dict[str, Told]:
    found: dict[str, Told] = {}
    for line in plain_lines(text)[:500]:
        match = _FLAG.match(line)
        if match is not None and match[2] and len(line) <= MAX_TEXT_CHARS and len(found) < MAX_SETTINGS:
            found[match[1]] = match[2]
    return found
