"""What a golden run says of a phone, by the band of its kind and its own history."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import takewhile

from farm.core.base.ids import DeviceId
from farm.core.checks.reference_range import DRIFT, Band, Drift, PastRun, band, drift
from farm.core.devices.condition import Condition, Gates, closed_gates
from farm.core.devices.device import DeviceFacts, Health

#: What a phone must be like for its golden run to be judged, and to teach. Full storage slows nothing.
FITNESS = Gates(max_skin_c=38.0, min_battery_pct=20, max_battery_c=40.0, min_storage_bytes=0)
#: How often in a row a phone that was out of its band may be unfit for the check that decides.
MAX_UNFIT = 6
#: Of a golden run that is not bound to cores.
ANY_CORES = "any"
#: When a phone that was out of its band, or unfit to be judged, is tried again: it may have cooled by then.
COOL_AFTER = timedelta(minutes=10)


class GoldenVerdict(StrEnum):
    """What came of a golden run."""

    #: The phone was not fit to be judged: warm, low, or its machine was busy.
    UNFIT = "unfit"
    #: Its kind has too few runs for a band.
    LEARNING = "learning"
    IN_BAND = "in_band"
    SLOW = "slow"
    #: Told, and not held against the phone.
    FAST = "fast"
    #: In the band of its kind, and slower than itself a week ago.
    DRIFTED = "drifted"


#: What costs a phone its health.
OUT = frozenset({GoldenVerdict.SLOW, GoldenVerdict.DRIFTED})


def check_code(verdict: GoldenVerdict) -> str:
    """What a check ends with that its golden run decides."""
    return f"check.{verdict}"


#: All of those.
GOLDEN_CODES = frozenset(map(check_code, (*OUT, GoldenVerdict.UNFIT)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict, and the figures behind it in words."""

    verdict: GoldenVerdict
    words: str
    band: Band | None = None


def unfit_because(
    before: Condition | None, after: Condition | None, facts: DeviceFacts | None
) -> tuple[str, ...]:
    """Why a golden run says nothing; empty when it does. What the phone does not report is no reason."""
    looks = {"before": before, "after": after}
    said = [
        f"{when}: {reason}"
        for when, look in looks.items()
        if look is not None
        for reason in (*closed_gates(look, FITNESS), *_busy(look, facts))
    ]
    if before is not None and after is not None and before.plugged != after.plugged:
        said.append(f"its charger changed from {before.plugged} to {after.plugged}")
    return tuple(said)


def band_key(facts: DeviceFacts, host: str, cores: str) -> str:
    """Phones of one key are compared: of one model, chip and build. Virtual phones are their host's CPU.

    So are `cores`, that a run was bound to: a phone that switches its fastest off now and then is not slow.
    """
    chip, build = facts.soc or "unknown chip", facts.build_fingerprint or "unknown build"
    kind = f"virtual phone on {host}" if facts.virtual else f"{facts.device_model} / {chip} / {build}"
    return kind if cores == ANY_CORES else f"{kind} / {cores}"


def own_band_key(kind: str, device_id: DeviceId, accepted_at: datetime) -> str:
    """The band of a phone whose level an operator accepted: it is its own kind since then."""
    return f"{kind} / {device_id} since {accepted_at:%Y-%m-%dT%H:%M:%S.%f}"


def judge(
    value_ns: float, *, unfit: Sequence[str], kind: Sequence[PastRun], own: Sequence[PastRun], now: datetime
) -> Judgement:
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
        return Judgement(
            verdict=GoldenVerdict.UNFIT, words=f"{took}, which says nothing of it: {'; '.join(unfit)}"
        )
    found = band(kind)
    if found is None:
        words = f"{took}; there are {len(kind)} runs of its kind to compare it to, too few"
        return Judgement(verdict=GoldenVerdict.LEARNING, words=words)
    words = f"{took}, {_compared(value_ns, found)}"
    if value_ns > found.upper_ns:
        return Judgement(verdict=GoldenVerdict.SLOW, words=words, band=found)
    if value_ns < found.lower_ns:
        return Judgement(verdict=GoldenVerdict.FAST, words=words, band=found)
    this = PastRun(phone=None, value_ns=value_ns, at=now)
    trend = drift([*own, this], now=now)
    if trend is not None and trend.factor > DRIFT:
        return Judgement(verdict=GoldenVerdict.DRIFTED, words=f"{took}; {_trend(trend)}", band=found)
    return Judgement(verdict=GoldenVerdict.IN_BAND, words=words, band=found)


def health_after(verdicts: Sequence[GoldenVerdict]) -> Health:
    """The health of a phone that passed the rest of its check, by its golden runs of one band, newest first.

    Out of band once: suspect, and tried again when it is cool; twice in a row: bad. One that was out of its
    band and is never fit for the second look is bad in the end, too: nobody could measure on it.
    """
    unfit = len(list(takewhile(lambda each: each is GoldenVerdict.UNFIT, verdicts)))
    judged = [each for each in verdicts if each is not GoldenVerdict.UNFIT]
    if not judged or judged[0] not in OUT:
        return Health.GOOD
    if len(judged) > 1 and judged[1] in OUT:
        return Health.BAD
    return Health.BAD if unfit >= MAX_UNFIT else Health.SUSPECT


def _compared(value_ns: float, found: Band) -> str:
    change = 100 * (value_ns / found.center_ns - 1)
    of = f"{found.runs} runs of {found.phones} phone{'s' if found.phones > 1 else ''} of its kind"
    told = f"{abs(change):.0f} % {'slower' if change > 0 else 'faster'} than the median of {of}"
    return f"{told} ({_ms(found.lower_ns)} to {_ms(found.upper_ns)})"


def _trend(trend: Drift) -> str:
    slower = 100 * (trend.factor - 1)
    return (
        f"it gets slower: {_ms(trend.recent_ns)} in its last {trend.recent_runs} runs,"
        f" {_ms(trend.past_ns)} in {trend.past_runs} runs until a week ago, {slower:.0f} % more"
    )


def _busy(look: Condition, facts: DeviceFacts | None) -> list[str]:
    """A virtual phone shares its cores with all that its machine does; Android's load counts waiting, too."""
    if facts is None or not facts.virtual or look.load_1m is None or not facts.cores:
        return []
    if look.load_1m <= facts.cores:
        return []
    return [f"a load of {look.load_1m:.1f} on {facts.cores} cores"]


def _ms(value_ns: float) -> str:
    return f"{value_ns / 1e6:.1f} ms"
