"""What happened during a run is called what it is, and what only looks like it is not."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from farm.core.devices.condition import Gates
from farm.core.devices.controls import ControlState
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import Quality, Reading
from farm.core.runs.placement import Accelerator
from farm.core.runs.quality import assess_quality
from farm.core.runs.stats import summarize_samples
from farm.core.runs.trace import ClockSample, RunTrace, TracePolicy, TraceSample
from farm.core.runs.trace_findings import TraceFindings, trace_findings

GHZ = 10**9
MIB = 2**20
LITTLE = TracePolicy(name="policy0", cores=(0, 1, 2, 3), hardware_max_hz=1_700_000_000)
BIG = TracePolicy(name="policy4", cores=(4, 5, 6, 7), hardware_max_hz=2_367_000_000)
SECONDS = 60

At = Callable[[int], Any]


def sample(second: int, **values: Any) -> TraceSample:
    """A second of a process that keeps one big core busy, at full clocks."""
    clocks = (
        ClockSample(limit_hz=1_700_000_000, current_hz=600_000_000),
        ClockSample(limit_hz=2_367_000_000, current_hz=2_367_000_000),
    )
    usual: dict[str, Any] = {
        "uptime_s": 1000.0 + second,
        "clocks": clocks,
        "allowed_cores": tuple(range(8)),
        "swap_bytes": 0,
        "cpu_s": float(second),
        "core": 5,
    }
    return TraceSample(**(usual | values))


def trace(**by_name: At) -> RunTrace:
    """A run of a minute; values by second."""
    return RunTrace(
        policies=(LITTLE, BIG),
        gpu_name="mali",
        gpu_max_hz=GHZ,
        started_uptime_s=1000.0,
        ended_uptime_s=1000.0 + SECONDS,
        pause_s=1.0,
        samples=tuple(
            sample(second, **{name: value(second) for name, value in by_name.items()})
            for second in range(1, SECONDS)
        ),
    )


def clocks(
    *, little: float = 1.7, big: float = 2.367, little_now: float = 0.6, big_now: float | None = None
) -> Any:
    return (
        ClockSample(limit_hz=round(little * GHZ), current_hz=round(little_now * GHZ)),
        ClockSample(limit_hz=round(big * GHZ), current_hz=round((big if big_now is None else big_now) * GHZ)),
    )


def reading(*, measured_s: float = 55.0, accelerator: Accelerator = Accelerator.CPU) -> Reading:
    return Reading(
        samples_ns=(round(measured_s * 1e9 / 50),) * 50,
        expected_samples=50,
        actual_backend="cpu",
        accelerator=accelerator,
        proof="ran",
    )


def found(
    run: RunTrace, *, gates: Gates | None = None, controls: tuple[ControlState, ...] = (), **of_reading: Any
) -> TraceFindings:
    busy_s = run.samples[-1].cpu_s if run.samples else None
    evidence = Evidence(
        fence=1,
        exit=ExitRecord(code=0, duration_s=float(SECONDS), cpu_s=busy_s),
        controls=controls,
    )
    return trace_findings(run, reading(**of_reading), evidence, gates or Gates())


def lowered(second: int) -> bool:
    """The published case: 20 s into the run, and over before its end."""
    return 20 <= second < 50


def kinds(findings: TraceFindings) -> list[str]:
    return [name for name in ("throttled", "capped", "swapped") if getattr(findings, name)]


def falls_and_recovers(second: int) -> Any:
    return clocks(big=1.418 if lowered(second) else 2.367)


def gpu_falls(second: int) -> ClockSample:
    hz = 400_000_000 if lowered(second) else GHZ
    return ClockSample(limit_hz=hz, current_hz=hz)


ON_LITTLE: dict[str, At] = {"core": lambda _: 2}
WAITING: dict[str, At] = {
    "cpu_s": lambda second: second * 0.02,
    "clocks": lambda second: clocks(big=1.418 if lowered(second) else 2.367, big_now=0.5),
}

CASES: dict[str, tuple[list[str], dict[str, At], dict[str, Any]]] = {
    "nothing happens": ([], {}, {}),
    "the ceiling falls and recovers": (["capped"], {"clocks": falls_and_recovers}, {}),
    "only the little cluster stays high": (
        ["capped"],
        {"clocks": lambda second: clocks(big=1.418 if second >= 20 else 2.367, little_now=1.7)},
        {},
    ),
    "several threads, the main one on a little core": (
        ["capped"],
        {"clocks": falls_and_recovers, "cpu_s": lambda second: 3.5 * second, "core": lambda _: 2},
        {},
    ),
    "work of a child, which counts after its end": (
        ["capped"],
        {
            "clocks": falls_and_recovers,
            "cpu_s": lambda second: 0.0 if second < 59 else 55.0,
            "core": lambda _: 2,
        },
        {},
    ),
    "the GPU is limited": (["capped"], {"gpu": gpu_falls}, {"accelerator": Accelerator.GPU}),
    "the GPU is limited, and the CPU works": ([], {"gpu": gpu_falls}, {}),
    "the run only waits": ([], WAITING, {}),
    "the run uses another cluster": (
        [],
        ON_LITTLE | {"clocks": lambda second: clocks(big=1.418, big_now=0.5, little_now=1.7)},
        {},
    ),
    "the run may not use that cluster": (
        [],
        ON_LITTLE | {"allowed_cores": lambda _: (0, 1, 2, 3), "clocks": lambda _: clocks(big=1.418)},
        {},
    ),
    "the other cluster is busy, too": (
        [],
        ON_LITTLE | {"clocks": lambda second: clocks(big=1.418, little_now=1.7)},
        {},
    ),
    "the clock was not at its ceiling": ([], {"clocks": lambda _: clocks(big=1.9, big_now=0.8)}, {}),
    "before it was measured": ([], {"clocks": falls_and_recovers}, {"measured_s": 5.0}),
    "for too short a time": (
        [],
        {"clocks": lambda second: clocks(big=1.9 if second == 30 else 2.367)},
        {},
    ),
    "by less than counts": ([], {"clocks": lambda _: clocks(big=2.13)}, {}),
    "memory is swapped out": (
        ["swapped"],
        {"swap_bytes": lambda second: 40 * MIB if lowered(second) else 0},
        {},
    ),
    "memory was swapped out before": ([], {"swap_bytes": lambda _: 40 * MIB}, {}),
    "memory was swapped out before it was measured": (
        [],
        {"swap_bytes": lambda second: 40 * MIB if second > 2 else 0},
        {"measured_s": 20.0},
    ),
    "cores are switched off": (
        ["throttled"],
        {"cooling": lambda second: {"cpu-hotplug": int(lowered(second))}},
        {},
    ),
    "cooling that ceilings show better": ([], {"cooling": lambda _: {"thermal-cpufreq-0": 3}}, {}),
    "cooling where ceilings are hidden": (
        ["throttled"],
        {"cooling": lambda _: {"thermal-cpufreq-0": 3}, "clocks": lambda _: ()},
        {},
    ),
}


@pytest.mark.parametrize(("expected", "by_name", "of_reading"), CASES.values(), ids=CASES.keys())
def test_what_happened_is_called_what_it_is(
    expected: list[str], by_name: dict[str, At], of_reading: dict[str, Any]
) -> None:
    assert kinds(found(trace(**by_name), **of_reading)) == expected


def test_the_reason_has_policy_time_and_ceilings() -> None:
    (reason,) = found(trace(clocks=falls_and_recovers)).capped
    assert reason.startswith("policy4 was limited to 1.42 of 2.37 GHz, first 20.0 s after the start: ")
    assert reason.endswith(" less on average over the measured 55.0 s")


def test_a_ceiling_that_moves_nothing_is_a_notice() -> None:
    findings = found(trace(clocks=lambda _: clocks(big=2.13)))
    assert findings.notices == (
        "policy4 was limited to 2.13 of 2.37 GHz, first 1.0 s after the start: 10.0% less on average over the"
        " measured 55.0 s",
    )
    swapped = found(trace(swap_bytes=lambda _: 40 * MIB))
    assert swapped.notices == ("40.0 MiB of its memory was swapped out before it was measured",)


def test_a_clock_that_is_limited_on_purpose_is_not_capped() -> None:
    control = ControlState(name="policy4.max_hz", requested="1418000")
    findings = found(trace(clocks=falls_and_recovers), controls=(control,))
    assert findings == TraceFindings(ceilings=())


def test_where_clocks_may_be_limited_it_is_a_notice() -> None:
    findings = found(trace(clocks=falls_and_recovers), gates=Gates(full_clocks=False))
    assert kinds(findings) == []
    assert len(findings.notices) == 1


def test_the_ceilings_of_the_whole_run_are_kept_whoever_used_them() -> None:
    (ceiling,) = found(trace(**WAITING)).ceilings or ()
    assert (ceiling.name, ceiling.lowest_hz, ceiling.first_s) == ("policy4", 1_418_000_000, 20.0)
    assert 29 <= ceiling.lowered_s <= 31
    assert ceiling.loss == 0.0


def test_without_an_end_the_whole_run_counts() -> None:
    run = replace(trace(clocks=falls_and_recovers), ended_uptime_s=None, is_cut=True)
    assert kinds(found(run, measured_s=5.0)) == ["capped"]


def test_what_a_device_hides_is_unknown_and_said_once() -> None:
    hidden = trace(clocks=lambda _: (), swap_bytes=lambda _: None)
    assert found(hidden).notices == ("unknown during the run: CPU ceilings, swapped memory",)
    assert found(hidden).ceilings is None
    nothing = replace(hidden, policies=(), samples=())
    assert found(nothing).notices == ("the device showed nothing of itself during the run",)
    without_end = replace(trace(), samples=trace().samples[:30])
    assert found(without_end).notices == ("unknown during the run: 28.0 of the measured 55.0 s",)


def test_a_run_that_was_not_sampled_shows_nothing() -> None:
    assert trace_findings(None, reading(), Evidence(fence=1), Gates()) == TraceFindings()


def test_the_cause_stands_before_what_it_causes() -> None:
    noisy = replace(reading(), samples_ns=(10**9, 2 * 10**9) * 25)
    during = TraceFindings(capped=("the ceiling",), swapped=("the memory",))
    assessment = assess_quality(
        noisy,
        summarize_samples(noisy),
        requested_backend="cpu",
        evidence=Evidence(fence=1),
        gates=Gates(),
        noise_limit=0.25,
        during=during,
    )
    assert assessment.quality is Quality.CAPPED
    assert assessment.reasons[:2] == ("the ceiling", "the memory")
