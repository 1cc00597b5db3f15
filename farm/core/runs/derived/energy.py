"""Energy of a run, by method: the current of its battery, or the meters of its power rails.

Each method has its own boundary, so values of different methods are never compared. What cannot be measured
is refused with a reason; what is doubtful is marked unreliable.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Literal

from farm.core.devices.condition import Condition
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Better, Metric, Reading
from farm.core.runs.stats import measured_s
from farm.core.runs.trace import DISCHARGING, RunTrace, TraceSample

#: With fewer samples of the current, the mean of what changes within milliseconds is a guess.
MIN_SAMPLES = 8
#: Samples of a measured part that lie further apart than this share of it leave too much unseen.
MAX_GAP_SHARE = 0.25
#: The charge counter calibrates the current where it moved by this much: its step is about 1 mAh.
MIN_COUNTED_AH = 0.005
#: Outside of these, counter and current contradict each other.
LEAST_FACTOR, GREATEST_FACTOR = 0.8, 1.25
#: Rails are read before and after the whole process. Less of that time than this measured, and most of the
#: energy may be that of loading, or of waiting.
MIN_RAIL_SHARE = 0.8
_WHOLE_DEVICE = "the whole device, from its battery: screen, radios and everything idle included"
_IDLE = "what the device takes when idle is not subtracted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RailReading:
    """The energy that each rail has passed since boot, in joules."""

    joules: Mapping[str, float]
    uptime_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyReading:
    """The energy of the inferences of one run."""

    method: Literal["battery", "rails", "external"]
    #: What the energy is of, in words.
    boundary: str
    joules: float
    inferences: int
    #: The time that the energy is of.
    seconds: float | None = None
    #: Of the current, within the measured part.
    samples: int | None = None
    #: The reason why it is doubtful; None where nothing shows that it is.
    unreliable: str | None = None
    #: What the number includes, and how it was calibrated.
    notes: tuple[str, ...] = ()
    #: Joules by rail.
    rails: Mapping[str, float] = field(default_factory=dict)
    #: Of imported energy: what measured it, and who imported it.
    instrument: str | None = None
    imported_by: str | None = None

    @property
    def joules_per_inference(self) -> float:
        """Return the energy of one inference."""
        return self.joules / self.inferences


def stored_energy(readings: Sequence[EnergyReading]) -> list[dict[str, object]]:
    """Return readings as stored with a measurement."""
    return [{**asdict(reading), "notes": list(reading.notes)} for reading in readings]


def energy_metric(energy: EnergyReading) -> Metric:
    """Return the energy of an inference as a metric; its name has the method, so that none is mixed."""
    value = energy.joules_per_inference * 1e3
    return Metric(name=f"{energy.method}_energy", value=value, unit="mJ/inference", better=Better.LOWER)


def inference_count(reading: Reading) -> int:
    """Return the number of timed inferences; 0 where the tool does not say."""
    return len(reading.samples_ns) or reading.summed_samples or 0


def battery_energy(trace: RunTrace | None, reading: Reading, evidence: Evidence) -> EnergyReading | str:
    """Return the energy from the battery over the measured part, or why there is none.

    That is the integral of voltage times current by the trapezoidal rule. Only a device that runs on its
    battery alone shows by it what it uses.

    Args:
        trace: of the run; current into the battery is positive.
        reading: its samples together are as long as the measured part, which ends with the process.
        evidence: whether the device was plugged in before and after the run.
    """
    if trace is None or not trace.samples:
        return "the run was not sampled"
    if (why := _charging_reason(trace, evidence)) is not None:
        return why
    count, length_s = inference_count(reading), measured_s(reading)
    if count == 0 or length_s is None or trace.ended_uptime_s is None:
        return "how long the inferences took together is not known"
    start_s, end_s = trace.ended_uptime_s - length_s, trace.ended_uptime_s
    points = [
        (sample.uptime_s, -sample.battery_a * sample.battery_v, -sample.battery_a)
        for sample in trace.samples
        if sample.battery_a is not None and sample.battery_v is not None
    ]
    inside = [point for point in points if start_s <= point[0] <= end_s]
    if not points:
        return "the device shows neither current nor voltage of its battery, or their unit is not certain"
    if not inside:
        return "there is no sample of the current within the measured part"
    joules = _mean_over([(at, watts) for at, watts, _ in points], start_s, end_s) * length_s
    if joules <= 0:
        return "the battery took more than it gave"
    factor, notes, contradiction = _calibration(trace.samples, points)
    doubts = [*contradiction, *_sampling_doubts([at for at, _, _ in inside], start_s, end_s)]
    return EnergyReading(
        method="battery",
        boundary=_WHOLE_DEVICE,
        joules=joules * factor,
        inferences=count,
        seconds=length_s,
        samples=len(inside),
        unreliable="; ".join(doubts) or None,
        notes=(*notes, _IDLE),
    )


def _charging_reason(trace: RunTrace, evidence: Evidence) -> str | None:
    """Return why the battery was not the only source; None where it was."""
    begins_s = trace.samples[0].uptime_s
    for sample in trace.samples:
        if sample.charger not in (None, DISCHARGING):
            return (
                f"the battery was not discharging: `{sample.charger}` {sample.uptime_s - begins_s:.1f} s in"
            )
        if sample.battery_a is not None and sample.battery_a > 0:
            return (
                f"the battery was charged with {sample.battery_a:.2f} A {sample.uptime_s - begins_s:.1f} s in"
            )
    for condition, when in ((evidence.before, "before"), (evidence.after, "after")):
        if condition is not None and condition.charging:
            return f"the device was charging {when} the run"
        if condition is not None and condition.plugged not in (None, "none"):
            return f"the device was plugged in ({condition.plugged}) {when} the run, which may have fed it"
    is_known = any(sample.charger is not None for sample in trace.samples)
    if not is_known and not any(_is_unplugged(each) for each in (evidence.before, evidence.after)):
        return "the device does not show whether it was charging"
    return None


def _is_unplugged(condition: Condition | None) -> bool:
    return condition is not None and condition.plugged == "none"


def _mean_over(points: Sequence[tuple[float, float]], start_s: float, end_s: float) -> float:
    """Return the mean over a time of what lies on straight lines between points, and is even outside."""
    if end_s <= start_s or len(points) == 1:
        return points[0][1]
    ends = [(start_s, _value_at(points, start_s)), (end_s, _value_at(points, end_s))]
    path = sorted([*(point for point in points if start_s < point[0] < end_s), *ends])
    area = sum((later - sooner) * (low + high) / 2 for (sooner, low), (later, high) in pairwise(path))
    return area / (end_s - start_s)


def _value_at(points: Sequence[tuple[float, float]], at_s: float) -> float:
    for (sooner, low), (later, high) in pairwise(points):
        if sooner <= at_s <= later and later > sooner:
            return low + (high - low) * (at_s - sooner) / (later - sooner)
    return points[0][1] if at_s < points[0][0] else points[-1][1]


def _calibration(
    samples: Sequence[TraceSample], points: Sequence[tuple[float, float, float]]
) -> tuple[float, list[str], list[str]]:
    """Return the factor by which the charge counter corrects the current, what to note, and what to doubt.

    The counter of a fuel gauge adds up the current all the time, which samples twice a second do not.
    """
    counted = [sample for sample in samples if sample.battery_charge_ah is not None]
    if len(counted) < 2 or len(points) < 2:
        return 1.0, ["not calibrated: the device shows no charge counter"], []
    first, last = counted[0], counted[-1]
    assert first.battery_charge_ah is not None
    assert last.battery_charge_ah is not None
    by_counter_ah = first.battery_charge_ah - last.battery_charge_ah
    if by_counter_ah < MIN_COUNTED_AH:
        moved = f"the charge counter moved by {by_counter_ah * 1e3:.1f} mAh"
        return 1.0, [f"not calibrated: {moved}, at least {MIN_COUNTED_AH * 1e3:g} are needed"], []
    current = [(at, amperes) for at, _, amperes in points]
    hours = (last.uptime_s - first.uptime_s) / 3600
    by_current_ah = _mean_over(current, first.uptime_s, last.uptime_s) * hours
    factor = by_counter_ah / by_current_ah if by_current_ah > 0 else 0.0
    texts = (
        f"the charge counter says {by_counter_ah * 1e3:.1f} mAh, the current {by_current_ah * 1e3:.1f} mAh"
    )
    if not LEAST_FACTOR <= factor <= GREATEST_FACTOR:
        return 1.0, [], [texts]
    return factor, [f"calibrated by {factor:.3f}: {texts}"], []


def _sampling_doubts(at_s: Sequence[float], start_s: float, end_s: float) -> Iterator[str]:
    if len(at_s) < MIN_SAMPLES:
        yield f"{len(at_s)} samples of the current, at least {MIN_SAMPLES} are needed"
        return
    gap_s = max(later - sooner for sooner, later in pairwise([start_s, *at_s, end_s]))
    if gap_s > MAX_GAP_SHARE * (end_s - start_s):
        yield f"no sample of the current for {gap_s:.1f} s of {end_s - start_s:.1f} s"


def rails_energy(
    before: RailReading | None, after: RailReading | None, reading: Reading, evidence: Evidence
) -> EnergyReading | str:
    """Return the energy of the rails from the reading before a run to that after it, or why there is none."""
    if before is None and after is None:
        return "the device publishes no energy of its rails"
    if before is None or after is None:
        return f"the energy of the rails could not be read {'after' if before else 'before'} the run"
    boots = [None if each is None else each.boot_id for each in (evidence.before, evidence.after)]
    if None not in boots and boots[0] != boots[1]:
        return "the device was restarted between the two readings of its rails"
    if (count := inference_count(reading)) == 0:
        return "how many inferences were timed is not known"
    names = [name for name in before.joules if name in after.joules]
    rails = {name: after.joules[name] - before.joules[name] for name in names}
    if not rails or min(rails.values()) < 0:
        return "the meters of the rails began again between the two readings"
    if (joules := sum(rails.values())) <= 0:
        return "no rail passed any energy between the two readings"
    seconds = None
    if before.uptime_s is not None and after.uptime_s is not None and after.uptime_s > before.uptime_s:
        seconds = after.uptime_s - before.uptime_s
    return EnergyReading(
        method="rails",
        boundary=f"{len(rails)} rails of the device: {', '.join(sorted(rails))}",
        joules=joules,
        inferences=count,
        seconds=seconds,
        unreliable=_rail_doubt(measured_s(reading), seconds),
        notes=(
            "start, loading, warm-up and end of the process are included",
            _IDLE,
            "a rail that feeds another one counts twice",
        ),
        rails=rails,
    )


def _rail_doubt(measured_s: float | None, seconds: float | None) -> str | None:
    if measured_s is None or seconds is None:
        return "how much of the time between the two readings was measured is not known"
    if measured_s >= MIN_RAIL_SHARE * seconds:
        return None
    return f"{measured_s:.1f} s of the {seconds:.1f} s between the two readings were measured"
