"""What adapters of tools make of numbers that they found: a reading, or why there is none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Better, Metric, Reading, RunFailure
from farm.core.runs.placement import Placement
from farm.core.runs.plan import RunPlan
from farm.harness.base.output_lines import without_colours
from farm.harness.base.placement_probe import actual_backend_of_plan
from farm.harness.failures.classification import find_failure, unreadable_failure
from farm.harness.failures.failure_pattern import FailurePattern
from farm.harness.failures.runtime_patterns import RUNTIME_PATTERNS

_LONGEST_LINE_CHARS = 2000
#: Longer than any run; keeps every value within 64 bits.
LONGEST_NS = 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTimes:
    """What a tool says its main loop took: each iteration, or its mean."""

    samples_ns: tuple[int, ...] = ()
    mean_ns: float | None = None
    expected: int
    #: How many are behind the mean, where it says that.
    summed: int | None = None
    #: The last digit of what it prints.
    step_ns: int = 0


def combined_output(evidence: Evidence) -> str:
    """Both outputs: which of them a tool, or its logger, takes differs by version.

    No tool writes lines so long that one is cut here; a program that does is not to be gone through for ever.
    """
    out = _complete_lines(evidence.stdout, evidence.stdout_dropped_bytes)
    err = _complete_lines(evidence.stderr, evidence.stderr_dropped_bytes)
    text = without_colours(f"{out}\n{err}")
    return "\n".join(line[:_LONGEST_LINE_CHARS] for line in text.splitlines())


def _complete_lines(text: str, dropped_bytes: int) -> str:
    """Without the line that was cut off, where any was: what is left of its number is another number."""
    return text[: max(text.rfind(end) for end in "\r\n") + 1] if dropped_bytes else text


def time_reading(
    plan: RunPlan,
    evidence: Evidence,
    times: LoopTimes,
    *,
    placement: Placement | None,
    on_cpu: str = "",
    metrics: Sequence[Metric] = (),
) -> Reading | RunFailure:
    """A reading of times, with where they were taken.

    Args:
        plan: what was asked for.
        evidence: what came of it.
        times: what was found.
        placement: what the output shows of where it ran.
        on_cpu: why it can only have been the CPU, where that is so; asked where nothing is shown.
        metrics: further figures.
    """
    if (wrong := _implausible_reason(times)) is not None:
        return missing_times_failure(evidence, wrong)
    found, shown = actual_backend_of_plan(plan, placement)
    backend, accelerator, proof = found.backend, str(found.accelerator), found.proof
    # Warnings alone are of what was not asked for.
    if on_cpu and (shown is None or not shown.shares):
        backend, accelerator, proof, shown = plan.backend, "cpu", on_cpu, None
    return Reading(
        samples_ns=times.samples_ns,
        mean_ns=times.mean_ns,
        expected_samples=times.expected,
        summed_samples=times.summed,
        actual_backend=backend,
        accelerator=accelerator,
        proof=proof,
        metrics=tuple(metrics),
        clock_step_ns=times.step_ns,
        placement=shown,
    )


def missing_times_failure(
    evidence: Evidence, why: str, signs: Sequence[FailurePattern] = RUNTIME_PATTERNS
) -> RunFailure:
    """A tool that ended well and did not say how long it took: what its output says of that, if anything."""
    return find_failure(evidence, signs) or unreadable_failure(evidence, why)


def lower_is_better(figures: Mapping[str, float | None], unit: str) -> list[Metric]:
    """Figures of which less is better; those that were not printed are left out."""
    return [
        Metric(name=name, value=value, unit=unit, better=Better.LOWER)
        for name, value in figures.items()
        if value is not None
    ]


def _implausible_reason(times: LoopTimes) -> str | None:
    values = times.samples_ns or (times.mean_ns or 0.0,)
    if min(values) <= 0:
        return "no iteration takes no time"
    return "no iteration takes so long" if max(values) > LONGEST_NS else None
