"""Assessment of a reference run by the range of its kind of device and the device's own history."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import takewhile

from farm.core.base.ids import DeviceId, Digest, FactsId, JobId
from farm.core.checks.reference_range import (
    DRIFT_FACTOR,
    RANGE_SHARE,
    Drift,
    ReferenceRange,
    ReferenceSample,
    learn_reference_range,
    measure_drift,
)
from farm.core.devices.device import Health

#: The number of times in a row that a device that was out of range may be unfit for the check that decides.
MAX_UNFIT = 6
#: Delay before a device that was out of range, or unfit, is tried again: it may have cooled by then.
COOLDOWN = timedelta(minutes=10)


class ReferenceVerdict(StrEnum):
    """The verdict on a reference run."""

    #: The device was not fit: warm, low battery, or its host was busy.
    UNFIT = "unfit"
    #: Its kind has too few runs for a range.
    LEARNING = "learning"
    IN_RANGE = "in_range"
    SLOW = "slow"
    #: Reported, without effect on health.
    FAST = "fast"
    #: In the range of its kind, and slower than itself a week ago.
    DRIFTED = "drifted"


#: Verdicts that make a device suspect or bad.
OUT_OF_RANGE = frozenset({ReferenceVerdict.SLOW, ReferenceVerdict.DRIFTED})


def check_code(verdict: ReferenceVerdict) -> str:
    """Return the code of a check that its reference run decides."""
    return f"check.{verdict}"


#: All of those.
REFERENCE_CODES = frozenset(map(check_code, (*OUT_OF_RANGE, ReferenceVerdict.UNFIT)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRun:
    """A stored reference run."""

    job_id: JobId
    device_id: DeviceId
    reference_key: str
    facts_id: FactsId | None
    program_digest: Digest
    value_ns: float
    verdict: ReferenceVerdict
    #: The reason why it cannot be assessed, in words; exactly where its verdict is `unfit`.
    unfit_reasons: str | None = None
    measured_at: datetime

    @property
    def past(self) -> ReferenceSample:
        """Return the run as a sample for learning ranges."""
        was_out_of_range = self.verdict in OUT_OF_RANGE
        return ReferenceSample(
            device=self.device_id,
            value_ns=self.value_ns,
            at=self.measured_at,
            was_out_of_range=was_out_of_range,
        )


def verdicts_in_range(runs: Sequence[ReferenceRun]) -> list[ReferenceVerdict]:
    """Return the verdicts of the newest run and those before it that were assessed by the same range."""
    if not runs:
        return []
    newest = runs[0]
    same = (newest.reference_key, newest.program_digest)
    return [run.verdict for run in runs if (run.reference_key, run.program_digest) == same]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceAssessment:
    """A verdict, and its reason in words."""

    verdict: ReferenceVerdict
    words: str


def assess_reference_run(
    run: ReferenceRun, *, of_kind: Sequence[ReferenceSample], of_device: Sequence[ReferenceSample]
) -> ReferenceAssessment:
    """Judge a run by earlier fit runs: of devices of its kind, its own among them, and of its own alone."""
    took = f"its reference run took {_ms(run.value_ns)}"
    if run.unfit_reasons is not None:
        words = f"{took}, which cannot be assessed: {run.unfit_reasons}"
        return ReferenceAssessment(verdict=ReferenceVerdict.UNFIT, words=words)
    expected = learn_reference_range(of_kind)
    if expected is None:
        words = f"{took}; there are {len(of_kind)} runs of its kind to compare it to, too few"
        return ReferenceAssessment(verdict=ReferenceVerdict.LEARNING, words=words)
    words = f"{took}, {_comparison_text(run.value_ns, expected)}"
    if run.value_ns > expected.upper_ns:
        return ReferenceAssessment(verdict=ReferenceVerdict.SLOW, words=words)
    if run.value_ns < expected.lower_ns:
        return ReferenceAssessment(verdict=ReferenceVerdict.FAST, words=words)
    this = ReferenceSample(device=run.device_id, value_ns=run.value_ns, at=run.measured_at)
    trend = measure_drift([*of_device, this], now=run.measured_at)
    # A device that is as fast as before again was repaired, or has cooled: what it was counts no more.
    if trend is not None and min(trend.factor, run.value_ns / trend.past_ns) > DRIFT_FACTOR:
        return ReferenceAssessment(verdict=ReferenceVerdict.DRIFTED, words=f"{took}; {_drift_text(trend)}")
    return ReferenceAssessment(verdict=ReferenceVerdict.IN_RANGE, words=words)


def health_after(verdicts: Sequence[ReferenceVerdict]) -> Health:
    """Return the health of a device that passed the rest of its check, by its reference runs, newest first.

    Out of range once: suspect, and tried again when it is cool; twice in a row: bad. One that was out of
    range and is never fit for the second run is bad in the end, too: it cannot be measured on.
    """
    unfit = len(list(takewhile(lambda verdict: verdict is ReferenceVerdict.UNFIT, verdicts)))
    judged = [verdict for verdict in verdicts if verdict is not ReferenceVerdict.UNFIT]
    if not judged or judged[0] not in OUT_OF_RANGE:
        return Health.GOOD
    if len(judged) > 1 and judged[1] in OUT_OF_RANGE:
        return Health.BAD
    return Health.BAD if unfit >= MAX_UNFIT else Health.SUSPECT


def _comparison_text(value_ns: float, expected: ReferenceRange) -> str:
    change = 100 * (value_ns / expected.center_ns - 1)
    devices = f"{expected.devices} device{'s' if expected.devices > 1 else ''}"
    of = f"{expected.runs} runs of {devices} of its kind"
    comparison = f"{abs(change):.0f} % {'slower' if change > 0 else 'faster'} than the median of {of}"
    share = f"{100 * RANGE_SHARE:g} % of runs are expected"
    return f"{comparison} ({share} from {_ms(expected.lower_ns)} to {_ms(expected.upper_ns)})"


def _drift_text(trend: Drift) -> str:
    slower = 100 * (trend.factor - 1)
    return (
        f"it gets slower: {_ms(trend.recent_ns)} in its last {trend.recent_runs} runs,"
        f" {_ms(trend.past_ns)} in {trend.past_runs} runs until a week ago, {slower:.0f} % more"
    )


def _ms(value_ns: float) -> str:
    return f"{value_ns / 1e6:.1f} ms"
