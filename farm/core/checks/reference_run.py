"""What a golden run says of a phone, by the band of its kind and its own history."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import takewhile

from farm.core.base.ids import DeviceId
from farm.core.checks.reference_range import (
    DRIFT_FACTOR,
    Drift,
    ReferenceRange,
    ReferenceSample,
    learn_reference_range,
    measure_drift,
)
from farm.core.devices.condition import Condition, Gates, closed_gates
from farm.core.devices.device import DeviceFacts, Health

#: What a phone must be like for its golden run to be judged, and to teach. Full storage slows nothing.
REFERENCE_GATES = Gates(max_skin_c=38.0, min_battery_pct=20, max_battery_c=40.0, min_storage_bytes=0)
#: How often in a row a phone that was out of its band may be unfit for the check that decides.
MAX_UNFIT = 6
#: Of a golden run that is not bound to cores.
ANY_CORES = "any"
#: When a phone that was out of its band, or unfit to be judged, is tried again: it may have cooled by then.
COOLDOWN = timedelta(minutes=10)


class ReferenceVerdict(StrEnum):
    """What came of a golden run."""

    #: The phone was not fit to be judged: warm, low, or its machine was busy.
    UNFIT = "unfit"
    #: Its kind has too few runs for a band.
    LEARNING = "learning"
    IN_RANGE = "in_range"
    SLOW = "slow"
    #: Told, and not held against the phone.
    FAST = "fast"
    #: In the band of its kind, and slower than itself a week ago.
    DRIFTED = "drifted"


#: What costs a phone its health.
OUT_OF_RANGE = frozenset({ReferenceVerdict.SLOW, ReferenceVerdict.DRIFTED})


def check_code(verdict: ReferenceVerdict) -> str:
    """What a check ends with that its golden run decides."""
    return f"check.{verdict}"


#: All of those.
REFERENCE_CODES = frozenset(map(check_code, (*OUT_OF_RANGE, ReferenceVerdict.UNFIT)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceAssessment:
    """A verdict, and the figures behind it in words."""

    verdict: ReferenceVerdict
    words: str
    reference_range: ReferenceRange | None = None


def unfit_reasons(
    before: Condition | None, after: Condition | None, facts: DeviceFacts | None
) -> tuple[str, ...]:
    """Why a golden run says nothing; empty when it does. What the phone does not report is no reason."""
    looks = {"before": before, "after": after}
    said = [
        f"{when}: {reason}"
        for when, look in looks.items()
        if look is not None
        for reason in (*closed_gates(look, REFERENCE_GATES), *_load_reasons(look, facts))
    ]
    if before is not None and after is not None and before.plugged != after.plugged:
        said.append(f"its charger changed from {before.plugged} to {after.plugged}")
    return tuple(said)


def reference_key(facts: DeviceFacts, host: str, cores: str) -> str:
    """Phones of one key are compared: of one model, chip and build. Virtual phones are their host's CPU.

    So are `cores`, that a run was bound to: a phone that switches its fastest off now and then is not slow.
    """
    chip, build = facts.soc or "unknown chip", facts.build_fingerprint or "unknown build"
    kind = f"virtual phone on {host}" if facts.virtual else f"{facts.device_model} / {chip} / {build}"
    return kind if cores == ANY_CORES else f"{kind} / {cores}"


def own_reference_key(kind: str, device_id: DeviceId, accepted_at: datetime) -> str:
    """The band of a phone whose level an operator accepted: it is its own kind since then."""
    return f"{kind} / {device_id} since {accepted_at:%Y-%m-%dT%H:%M:%S.%f}"


def assess_reference_run(
    value_ns: float,
    *,
    unfit: Sequence[str],
    kind: Sequence[ReferenceSample],
    own: Sequence[ReferenceSample],
    now: datetime,
) -> ReferenceAssessment:
    """Judge a run.

    Args:
        value_ns: what it took.
        unfit: why it says nothing.
        kind: earlier fit runs of phones of this kind, this one's among them.
        own: earlier fit runs of this phone.
        now: when it was measured.
    """
    took = f"its golden run took {_ms(value_ns)}"
    if unfit:
        return ReferenceAssessment(
            verdict=ReferenceVerdict.UNFIT, words=f"{took}, which says nothing of it: {'; '.join(unfit)}"
        )
    found = learn_reference_range(kind)
    if found is None:
        words = f"{took}; there are {len(kind)} runs of its kind to compare it to, too few"
        return ReferenceAssessment(verdict=ReferenceVerdict.LEARNING, words=words)
    words = f"{took}, {_comparison_text(value_ns, found)}"
    if value_ns > found.upper_ns:
        return ReferenceAssessment(verdict=ReferenceVerdict.SLOW, words=words, reference_range=found)
    if value_ns < found.lower_ns:
        return ReferenceAssessment(verdict=ReferenceVerdict.FAST, words=words, reference_range=found)
    this = ReferenceSample(phone=None, value_ns=value_ns, at=now)
    trend = measure_drift([*own, this], now=now)
    if trend is not None and trend.factor > DRIFT_FACTOR:
        return ReferenceAssessment(
            verdict=ReferenceVerdict.DRIFTED, words=f"{took}; {_drift_text(trend)}", reference_range=found
        )
    return ReferenceAssessment(verdict=ReferenceVerdict.IN_RANGE, words=words, reference_range=found)


def health_after(verdicts: Sequence[ReferenceVerdict]) -> Health:
    """The health of a phone that passed the rest of its check, by its golden runs of one band, newest first.

    Out of band once: suspect, and tried again when it is cool; twice in a row: bad. One that was out of its
    band and is never fit for the second look is bad in the end, too: nobody could measure on it.
    """
    unfit = len(list(takewhile(lambda each: each is ReferenceVerdict.UNFIT, verdicts)))
    judged = [each for each in verdicts if each is not ReferenceVerdict.UNFIT]
    if not judged or judged[0] not in OUT_OF_RANGE:
        return Health.GOOD
    if len(judged) > 1 and judged[1] in OUT_OF_RANGE:
        return Health.BAD
    return Health.BAD if unfit >= MAX_UNFIT else Health.SUSPECT


def _comparison_text(value_ns: float, found: ReferenceRange) -> str:
    change = 100 * (value_ns / found.center_ns - 1)
    of = f"{found.runs} runs of {found.phones} phone{'s' if found.phones > 1 else ''} of its kind"
    told = f"{abs(change):.0f} % {'slower' if change > 0 else 'faster'} than the median of {of}"
    return f"{told} ({_ms(found.lower_ns)} to {_ms(found.upper_ns)})"


def _drift_text(trend: Drift) -> str:
    slower = 100 * (trend.factor - 1)
    return (
        f"it gets slower: {_ms(trend.recent_ns)} in its last {trend.recent_runs} runs,"
        f" {_ms(trend.past_ns)} in {trend.past_runs} runs until a week ago, {slower:.0f} % more"
    )


def _load_reasons(look: Condition, facts: DeviceFacts | None) -> list[str]:
    """A virtual phone shares its cores with all that its machine does; Android's load counts waiting, too."""
    if facts is None or not facts.virtual or look.load_1m is None or not facts.cores:
        return []
    if look.load_1m <= facts.cores:
        return []
    return [f"a load of {look.load_1m:.1f} on {facts.cores} cores"]


def _ms(value_ns: float) -> str:
    return f"{value_ns / 1e6:.1f} ms"
