"""Energy of a run: from its battery's current and from its rails, and when there is none."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.devices.condition import Condition
from farm.core.runs.derived.energy import (
    EnergyReading,
    RailReading,
    battery_energy,
    energy_metric,
    rails_energy,
)
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Reading
from farm.core.runs.trace import RunTrace, TraceSample

AT = datetime(2026, 11, 1, tzinfo=UTC)

COUNT = 1000
TEN_MS = 10_000_000
#: 10 s of inferences, which end with the process at 112 s.
START_S, END_S = 102.0, 112.0


def reading(count: int = COUNT) -> Reading:
    return Reading(
        samples_ns=(TEN_MS,) * count,
        expected_samples=count,
        actual_backend="cpu",
        accelerator="cpu",
        proof="-",
    )


def condition(*, plugged: str | None = "none", charging: bool | None = False, boot: str = "a") -> Condition:
    return Condition(taken_at=AT, plugged=plugged, charging=charging, boot_id=boot)


UNPLUGGED = Evidence(fence=1, before=condition(), after=condition())


def trace(
    amperes: Sequence[float | None],
    *,
    volts: float | None = 4.0,
    charger: str | None = "discharging",
    charges_ah: Sequence[float | None] = (),
    step_s: float = 0.5,
) -> RunTrace:
    """Samples from 100 s on; the process ends at 112 s."""
    counters = list(charges_ah) or [None] * len(amperes)
    return RunTrace(
        started_uptime_s=100.0,
        ended_uptime_s=END_S,
        samples=tuple(
            TraceSample(
                uptime_s=100.0 + place * step_s,
                battery_a=current,
                battery_v=volts,
                battery_charge_ah=counter,
                charger=charger,
            )
            for place, (current, counter) in enumerate(zip(amperes, counters, strict=True))
        ),
    )


def measured(energy: EnergyReading | str) -> EnergyReading:
    assert isinstance(energy, EnergyReading), energy
    return energy


def test_joules_are_the_integral_over_the_measured_part_only() -> None:
    # 0.1 A while it loads, 0.5 A while it computes: 4 V x 0.5 A x 10 s.
    energy = measured(battery_energy(trace([-0.1] * 4 + [-0.5] * 21), reading(), UNPLUGGED))
    assert energy.joules == pytest.approx(20.0, rel=0.01)
    assert (energy.inferences, energy.samples, energy.seconds) == (COUNT, 21, 10.0)
    assert energy.unreliable is None
    assert energy.boundary.startswith("the whole device, from its battery")
    assert energy.notes == (
        "not calibrated: the device shows no charge counter",
        "what the device takes when idle is not subtracted",
    )
    metric = energy_metric(energy)
    assert (metric.name, metric.unit) == ("battery_energy", "mJ/inference")
    assert metric.value == pytest.approx(20.0, rel=0.01)


@pytest.mark.parametrize(
    ("what", "of", "evidence", "reason"),
    [
        ("not sampled", None, UNPLUGGED, "not sampled"),
        (
            "charging",
            trace([-0.5] * 25, charger="charging"),
            UNPLUGGED,
            "not discharging: `charging` 0.0 s in",
        ),
        ("full, on its charger", trace([-0.01] * 25, charger="full"), UNPLUGGED, "not discharging: `full`"),
        ("current into it", trace([-0.5] * 5 + [0.2] * 20), UNPLUGGED, "charged with 0.20 A 2.5 s in"),
        (
            "plugged in before it",
            trace([-0.5] * 25),
            Evidence(fence=1, before=condition(plugged="usb"), after=condition()),
            "plugged in (usb) before the run",
        ),
        (
            "charging after it",
            trace([-0.5] * 25),
            Evidence(fence=1, before=condition(), after=condition(plugged="usb", charging=True)),
            "charging after the run",
        ),
        (
            "nothing tells of a charger",
            trace([-0.5] * 25, charger=None),
            Evidence(fence=1, before=condition(plugged=None, charging=None)),
            "does not show whether it was charging",
        ),
        ("unit or file unknown", trace([None] * 25), UNPLUGGED, "neither current nor voltage"),
        ("no voltage", trace([-0.5] * 25, volts=None), UNPLUGGED, "neither current nor voltage"),
        ("only before it", trace([-0.5] * 3), UNPLUGGED, "no sample of the current within the measured part"),
    ],
)
def test_energy_from_the_battery_is_refused_with_the_reason(
    what: str, of: RunTrace | None, evidence: Evidence, reason: str
) -> None:
    energy = battery_energy(of, reading(), evidence)
    assert isinstance(energy, str)
    assert reason in energy


@pytest.mark.parametrize(
    ("what", "of", "joules", "doubt"),
    [
        (
            "seven samples",
            trace([-0.5] * 9, step_s=1.4),
            20.0,
            "7 samples of the current, at least 8 are needed",
        ),
        ("a gap", trace([-0.5] * 13 + [None] * 10 + [-0.5] * 2), 20.0, "no sample of the current for 5.5 s"),
        (
            "the counter disagrees",
            trace([-0.5] * 25, charges_ah=[3.0 - 0.001 * place for place in range(25)]),
            20.0,
            "the charge counter says 24.0 mAh, the current 1.7 mAh",
        ),
    ],
)
def test_doubtful_energy_is_marked_and_kept(what: str, of: RunTrace, joules: float, doubt: str) -> None:
    energy = measured(battery_energy(of, reading(), UNPLUGGED))
    assert energy.joules == pytest.approx(joules, rel=0.01)
    assert energy.unreliable is not None
    assert doubt in energy.unreliable


def test_the_charge_counter_calibrates_the_current() -> None:
    # 3 A for 12 s are 10 mAh; the counter says 11.
    charges = [3.0 - 0.011 * place / 24 for place in range(25)]
    energy = measured(battery_energy(trace([-3.0] * 25, charges_ah=charges), reading(), UNPLUGGED))
    assert energy.joules == pytest.approx(3.0 * 4.0 * 10 * 1.1, rel=0.01)
    assert energy.notes[0] == ("calibrated by 1.100: the charge counter says 11.0 mAh, the current 10.0 mAh")


def test_a_counter_that_hardly_moved_calibrates_nothing() -> None:
    charges = [3.0 - 0.002 * place / 24 for place in range(25)]
    energy = measured(battery_energy(trace([-0.5] * 25, charges_ah=charges), reading(), UNPLUGGED))
    assert energy.joules == pytest.approx(20.0)
    assert "moved by 2.0 mAh, at least 5 are needed" in energy.notes[0]


@given(st.lists(st.one_of(st.none(), st.floats(-10, 10)), min_size=1, max_size=40), st.integers(1, 2000))
def test_whatever_the_samples_hold_energy_is_positive_or_there_is_a_reason(
    amperes: list[float | None], count: int
) -> None:
    energy = battery_energy(trace(amperes), reading(count), UNPLUGGED)
    assert energy if isinstance(energy, str) else energy.joules > 0


def rails(at_s: float | None = 101.0, **joules: float) -> RailReading:
    return RailReading(joules=joules, uptime_s=at_s)


def test_rails_give_what_they_passed_between_the_two_readings() -> None:
    energy = measured(
        rails_energy(rails(big=100.0, gpu=7.0), rails(113.0, big=118.0, gpu=9.0), reading(), UNPLUGGED)
    )
    assert (energy.joules, energy.seconds, energy.unreliable) == (20.0, 12.0, None)
    assert energy.rails == {"big": 18.0, "gpu": 2.0}
    assert energy.boundary == "2 rails of the device: big, gpu"
    assert "start, loading, warm-up and end of the process are included" in energy.notes
    assert energy_metric(energy).name == "rails_energy"


def test_rails_of_a_short_measured_part_are_unreliable() -> None:
    energy = measured(rails_energy(rails(big=1.0), rails(141.0, big=9.0), reading(), UNPLUGGED))
    assert energy.unreliable == "10.0 s of the 40.0 s between the two readings were measured"


@pytest.mark.parametrize(
    ("before", "after", "evidence", "reason"),
    [
        (None, None, UNPLUGGED, "publishes no energy of its rails"),
        (rails(big=1.0), None, UNPLUGGED, "could not be read after the run"),
        (None, rails(big=1.0), UNPLUGGED, "could not be read before the run"),
        (rails(big=5.0), rails(big=1.0), UNPLUGGED, "began again"),
        (rails(big=5.0), rails(gpu=9.0), UNPLUGGED, "began again"),
        (rails(big=5.0), rails(big=5.0), UNPLUGGED, "no rail passed any energy"),
        (
            rails(big=1.0),
            rails(big=9.0),
            Evidence(fence=1, before=condition(), after=condition(boot="b")),
            "restarted between",
        ),
    ],
)
def test_energy_of_rails_is_refused_with_the_reason(
    before: RailReading | None, after: RailReading | None, evidence: Evidence, reason: str
) -> None:
    energy = rails_energy(before, after, reading(), evidence)
    assert isinstance(energy, str)
    assert reason in energy
