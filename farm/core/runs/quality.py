"""Quality of a measurement, with the reasons when it is not valid."""

from collections.abc import Iterator
from math import inf

from farm.core.base.units import duration_text
from farm.core.devices.condition import Condition, Gates, unknown_gates
from farm.core.devices.controls import Controls, control_deviations, missing_controls
from farm.core.runs.derived.sustained import shortfall
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import (
    DEFAULT_MARGIN,
    UNKNOWN_ACCELERATOR,
    Quality,
    QualityAssessment,
    Reading,
    SampleKind,
    SampleSummary,
)
from farm.core.runs.throttling import throttling_reasons
from farm.core.runs.trace_findings import TraceFindings

_Finding = tuple[Quality, str]

#: Iterations follow each other, so together they take no longer than their process. The rest is rounding: of
#: the tool's numbers, and of the start and the end of the process, which are known in steps of 10 ms.
_DURATION_FACTOR, _DURATION_STEPS_S = 1.02, 0.02


def assess_quality(
    reading: Reading,
    summary: SampleSummary,
    *,
    requested_backend: str,
    evidence: Evidence,
    gates: Gates,
    controls: Controls | None = None,
    noise_limit: float,
    during: TraceFindings | None = None,
    sustained_s: float | None = None,
    margin: float = DEFAULT_MARGIN,
) -> QualityAssessment:
    """Judge by the most serious finding: implausible, wrong output, fallback, unproven, coarse, short,
    unplugged, uncontrolled, throttled, capped, swapped, noisy; in that order.

    A value that the device or tool does not report is no finding, with two exceptions: missing proof of the
    accelerator (unproven), and time out of reach where mains are required (unplugged).

    Args:
        reading: what the adapter read; knows how many iterations were asked for.
        summary: of the same reading.
        requested_backend: what the cell asked for.
        evidence: how the phone was around the run, and what was set on it.
        gates: what had to hold before the run. Of these, `max_thermal_status`, `full_clocks` and `mains` are
            checked again after it; skin and battery temperature are not.
        controls: what was to be set on the phone.
        noise_limit: the largest interquartile range of the samples, as a fraction of their median; where the
            tool prints no samples, the largest standard deviation, as a fraction of its mean, and by how much
            the mean may exceed the median, as a fraction of that.
        during: what the trace of the run shows.
        sustained_s: how long the run was to work. Heat, ceilings and the scatter that they bring are
            then what is measured, and held against nothing.
        margin: the equivalence margin: a wider step of the clock would make runs equal that are not.
    """
    findings = [
        *_duration_findings(reading, evidence.exit),
        *([(Quality.WRONG_OUTPUT, reading.wrong_output)] if reading.wrong_output else []),
        *_backend_findings(reading, requested_backend),
        *_resolution_findings(reading, summary, margin),
        *_completeness_findings(reading, sustained_s),
        *_power_findings(evidence, gates),
        *_control_findings(evidence, controls or Controls()),
        *(
            _effort_findings(reading, summary, evidence, gates, during or TraceFindings(), noise_limit)
            if sustained_s is None
            else _swap_findings(during or TraceFindings())
        ),
    ]
    if not findings:
        return QualityAssessment(quality=Quality.VALID)
    return QualityAssessment(quality=findings[0][0], reasons=tuple(reason for _, reason in findings))


def _duration_findings(reading: Reading, ended: ExitRecord | None) -> Iterator[_Finding]:
    count = len(reading.samples_ns) or reading.summed_samples or 1
    measured_s = (sum(reading.samples_ns) or (reading.mean_ns or 0.0) * count) / 1e9
    if ended is not None and measured_s > ended.duration_s * _DURATION_FACTOR + _DURATION_STEPS_S:
        iterations = "one iteration is" if count == 1 else f"{count} iterations are"
        process = f"the whole process took {ended.duration_s:.2f} s"
        yield Quality.IMPLAUSIBLE, f"{iterations} reported to have taken {measured_s:.2f} s, but {process}"


def _backend_findings(reading: Reading, requested: str) -> Iterator[_Finding]:
    if reading.actual_backend != requested:
        is_known = reading.accelerator != UNKNOWN_ACCELERATOR
        actual = f"{reading.actual_backend} on {reading.accelerator}" if is_known else reading.actual_backend
        yield Quality.FALLBACK, f"{requested} was asked for, {actual} ran: {reading.proof}"
    elif reading.accelerator == UNKNOWN_ACCELERATOR:
        yield Quality.UNPROVEN, f"nothing shows which hardware ran {requested}: {reading.proof}"


def _resolution_findings(reading: Reading, summary: SampleSummary, margin: float) -> Iterator[_Finding]:
    share = reading.clock_step_ns / summary.value_ns if summary.value_ns > 0 else 0.0
    # With a margin of 0 no verdict is "same"; the step is then judged by the default margin.
    if share > (margin or DEFAULT_MARGIN):
        step = f"the clock's step of {duration_text(reading.clock_step_ns)} is {share:.1%} of the time"
        yield Quality.COARSE, f"{step}, more than the margin of {margin or DEFAULT_MARGIN:.1%}"


def _completeness_findings(reading: Reading, sustained_s: float | None) -> Iterator[_Finding]:
    count = len(reading.samples_ns) if reading.mean_ns is None else reading.summed_samples
    if count is not None and count < reading.expected_samples:
        yield Quality.SHORT, f"{count} samples, {reading.expected_samples} were asked for"
    if sustained_s is not None and (words := shortfall(reading, sustained_s)) is not None:
        yield Quality.SHORT, words


def _effort_findings(
    reading: Reading,
    summary: SampleSummary,
    evidence: Evidence,
    gates: Gates,
    during: TraceFindings,
    noise_limit: float,
) -> Iterator[_Finding]:
    """Yield what shows that a run did not go as fast as its device can, or not evenly."""
    yield from ((Quality.THROTTLED, words) for words in throttling_reasons(evidence, gates))
    yield from _trace_findings(during)
    yield from _noise_findings(reading, summary, noise_limit)


def _power_findings(evidence: Evidence, gates: Gates) -> Iterator[_Finding]:
    if not gates.mains:
        return
    for condition, when in ((evidence.before, "before"), (evidence.after, "after")):
        if condition is not None and condition.plugged == "none":
            yield Quality.UNPLUGGED, f"not plugged in {when} the run"
    if away := _interruption_notices(evidence.away_s):
        yield Quality.UNPLUGGED, f"{away[0]}, and nothing shows that it stayed on mains"


def _control_findings(evidence: Evidence, controls: Controls) -> Iterator[_Finding]:
    for words in (*missing_controls(controls, evidence.controls), *control_deviations(evidence.controls)):
        yield Quality.UNCONTROLLED, words


def notices(before: Condition | None, gates: Gates, *, away_s: float = 0.0) -> list[str]:
    """Return notices about a measurement that do not affect its quality.

    That is what its gates could not see, and that the phone could not be seen for a part of the run.
    """
    if before is None:
        return ["how the phone was before the run is unknown", *_interruption_notices(away_s)]
    return [*(f"{name} unknown" for name in unknown_gates(before, gates)), *_interruption_notices(away_s)]


def _interruption_notices(away_s: float) -> list[str]:
    return [f"the phone could not be reached for {away_s:.1f} s during the run"] if away_s > 0 else []


def _trace_findings(during: TraceFindings) -> Iterator[_Finding]:
    yield from ((Quality.THROTTLED, words) for words in during.throttled)
    yield from ((Quality.CAPPED, words) for words in during.capped)
    yield from _swap_findings(during)


def _swap_findings(during: TraceFindings) -> Iterator[_Finding]:
    yield from ((Quality.SWAPPED, words) for words in during.swapped)


def _noise_findings(reading: Reading, summary: SampleSummary, limit: float) -> Iterator[_Finding]:
    scatter = summary.scatter
    if scatter is not None and scatter > limit:
        match summary.kind:
            case SampleKind.SAMPLES:
                spread = f"the middle half of the samples spans {scatter:.1%} of their median"
            case SampleKind.SUMMARY:
                spread = f"the deviation of the iterations is {scatter:.1%} of their mean"
        yield Quality.NOISY, f"{spread}, more than the limit of {limit:.1%}"
    if reading.mean_ns is not None and reading.median_ns is not None:
        ratio = reading.mean_ns / reading.median_ns if reading.median_ns > 0 else inf
        if ratio > 1 + limit:
            mean = f"the tool's mean is {ratio:.3g} times the median that it prints"
            yield (
                Quality.NOISY,
                f"{mean}, more than the limit of {1 + limit:.3g}: slow iterations raise the mean",
            )
