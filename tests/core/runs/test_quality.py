from dataclasses import replace
from datetime import UTC, datetime

import pytest

from farm.core.devices.condition import Condition, CpuPolicy, Gates, ThermalStatus
from farm.core.devices.controls import Controls, ControlState
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import Quality, QualityAssessment, Reading
from farm.core.runs.quality import assess_quality, notices
from farm.core.runs.stats import summarize_samples
from farm.core.runs.trace_findings import TraceFindings

STEADY = (100, 101, 100, 99, 100)
SCATTERED = (50, 100, 150, 200, 250)


def judged(
    samples_ns: tuple[int, ...] = STEADY,
    *,
    mean_ns: float | None = None,
    deviation_ns: float | None = None,
    median_ns: float | None = None,
    summed: int | None = None,
    expected: int = 5,
    actual: str = "cpu",
    requested: str = "cpu",
    before: Condition | None = None,
    after: Condition | None = None,
    evidence: Evidence | None = None,
    gates: Gates | None = None,
    controls: Controls | None = None,
    noise_limit: float = 0.25,
    during: TraceFindings | None = None,
    sustained_s: float | None = None,
) -> QualityAssessment:
    reading = Reading(
        samples_ns=samples_ns,
        mean_ns=mean_ns,
        deviation_ns=deviation_ns,
        median_ns=median_ns,
        expected_samples=expected,
        summed_samples=summed,
        actual_backend=actual,
        accelerator="cpu",
        proof="Running on CPU",
    )
    return assess_quality(
        reading,
        summarize_samples(reading),
        requested_backend=requested,
        evidence=evidence or Evidence(fence=1, before=before, after=after),
        gates=gates or Gates(),
        controls=controls,
        noise_limit=noise_limit,
        during=during,
        sustained_s=sustained_s,
    )


def within(duration_s: float) -> Evidence:
    return Evidence(fence=1, exit=ExitRecord(code=0, duration_s=duration_s))


@pytest.mark.parametrize(
    ("samples_ns", "mean_ns", "summed", "duration_s", "reason"),
    [
        (
            (),
            5e9,
            None,
            0.0,
            "one iteration is reported to have taken 5.00 s, but the whole process took 0.00 s",
        ),
        # Microseconds that were taken for milliseconds.
        (
            (1_200_000_000,) * 50,
            None,
            None,
            0.31,
            "50 iterations are reported to have taken 60.00 s, but the whole process took 0.31 s",
        ),
        (
            (),
            2e7,
            100,
            1.5,
            "100 iterations are reported to have taken 2.00 s, but the whole process took 1.50 s",
        ),
    ],
)
def test_a_time_that_cannot_have_happened_is_refused_with_both_numbers(
    samples_ns: tuple[int, ...], mean_ns: float | None, summed: int | None, duration_s: float, reason: str
) -> None:
    found = judged(
        samples_ns,
        mean_ns=mean_ns,
        summed=summed,
        expected=len(samples_ns) or 1,
        evidence=within(duration_s),
    )
    assert (found.quality, found.reasons) == (Quality.IMPLAUSIBLE, (reason,))


@pytest.mark.parametrize(
    ("samples_ns", "mean_ns", "expected", "duration_s"),
    [
        # Rounded to steps of 10 ms at both ends.
        ((4_000_000,) * 5, None, 5, 0.0),
        ((100_000_000,) * 10, None, 10, 0.99),
        # How many runs the mean is of is not printed: it may have been one.
        ((), 9e8, 50, 1.0),
        # The whole process.
        ((), 12.5e9, 1, 12.5),
    ],
)
def test_what_fits_into_its_process_is_plausible(
    samples_ns: tuple[int, ...], mean_ns: float | None, expected: int, duration_s: float
) -> None:
    found = judged(samples_ns, mean_ns=mean_ns, expected=expected, evidence=within(duration_s))
    assert found.quality is Quality.VALID


def test_a_time_that_cannot_be_comes_before_all_else_that_is_wrong() -> None:
    found = judged((10**9,), expected=5, actual="xnnpack", evidence=within(0.5))
    assert found.quality is Quality.IMPLAUSIBLE
    assert len(found.reasons) == 3


def test_a_step_of_the_clock_must_disappear_in_the_time() -> None:
    def timed(ms: int, *, margin: float = 0.02) -> QualityAssessment:
        reading = Reading(
            mean_ns=ms * 1e6,
            expected_samples=1,
            actual_backend="cpu",
            accelerator="cpu",
            proof="",
            clock_step_ns=10_000_000,
        )
        cool, gates = heated(None), Gates()
        figures = summarize_samples(reading)
        around = Evidence(fence=1, before=cool, after=cool)
        return assess_quality(
            reading,
            figures,
            requested_backend="cpu",
            evidence=around,
            gates=gates,
            noise_limit=0.25,
            margin=margin,
        )

    assert timed(500).quality is Quality.VALID
    assert timed(490).quality is Quality.COARSE
    assert timed(40).reasons == (
        "the clock's step of 10.0 ms is 25.0% of the time, more than the margin of 2.0%",
    )
    assert timed(200, margin=0.05).quality is Quality.VALID
    assert timed(500, margin=0.01).quality is Quality.COARSE
    assert timed(500, margin=0.0).quality is Quality.VALID


def heated(status: ThermalStatus | None) -> Condition:
    return Condition(taken_at=datetime(2026, 1, 1, tzinfo=UTC), thermal_status=status)


def test_steady_samples_on_a_cool_phone_are_valid() -> None:
    cool = heated(ThermalStatus.NONE)
    assert judged(before=cool, after=cool) == QualityAssessment(quality=Quality.VALID)


def test_what_a_phone_does_not_report_is_not_held_against_it() -> None:
    assert judged(before=heated(None), after=None).quality is Quality.VALID


def test_another_backend_than_the_requested_one_is_a_fallback_with_its_proof() -> None:
    answer = judged(requested="vulkan")
    assert answer.quality is Quality.FALLBACK
    assert answer.reasons == ("vulkan was asked for, cpu on cpu ran: Running on CPU",)


def test_fewer_samples_than_asked_for_are_short() -> None:
    answer = judged(expected=30)
    assert answer == QualityAssessment(quality=Quality.SHORT, reasons=("5 samples, 30 were asked for",))


@pytest.mark.parametrize(("expected", "quality"), [(5, Quality.VALID), (6, Quality.SHORT)])
def test_a_run_is_incomplete_from_the_first_missing_sample_on(expected: int, quality: Quality) -> None:
    assert judged(expected=expected).quality is quality
    assert judged((), mean_ns=1e6, summed=5, expected=expected).quality is quality


def test_a_tools_mean_is_not_short_for_want_of_samples() -> None:
    assert judged((), mean_ns=1e6, expected=30).quality is Quality.VALID


def test_a_tools_mean_of_fewer_runs_than_asked_for_is_short() -> None:
    answer = judged((), mean_ns=1e6, summed=24, expected=30)
    assert answer == QualityAssessment(quality=Quality.SHORT, reasons=("24 samples, 30 were asked for",))


def test_a_tool_may_do_more_runs_than_it_was_asked_for() -> None:
    assert judged((), mean_ns=1e6, summed=75, expected=30).quality is Quality.VALID


def test_a_phone_that_got_hot_during_the_run_was_throttled() -> None:
    answer = judged(before=heated(ThermalStatus.NONE), after=heated(ThermalStatus.MODERATE))
    assert answer.quality is Quality.THROTTLED
    assert answer.reasons == ("thermal status MODERATE after the run, at most NONE",)


def test_a_phone_that_was_hot_before_the_run_was_throttled() -> None:
    answer = judged(before=heated(ThermalStatus.LIGHT), after=heated(ThermalStatus.NONE))
    assert answer.reasons == ("thermal status LIGHT before the run, at most NONE",)


def test_heat_within_the_gate_is_valid() -> None:
    warm = heated(ThermalStatus.LIGHT)
    gates = Gates(max_thermal_status=ThermalStatus.LIGHT)
    assert judged(before=warm, after=warm, gates=gates).quality is Quality.VALID


def test_scatter_over_the_limit_is_noisy_with_both_numbers() -> None:
    answer = judged(SCATTERED)
    assert answer.quality is Quality.NOISY
    assert answer.reasons == (
        "the middle half of the samples spans 66.7% of their median, more than the limit of 25.0%",
    )
    assert judged(SCATTERED, noise_limit=0.7).quality is Quality.VALID


def test_the_most_serious_finding_names_the_quality_and_all_are_told() -> None:
    answer = judged(SCATTERED, expected=9, requested="nnapi", after=heated(ThermalStatus.SEVERE))
    assert answer.quality is Quality.FALLBACK
    assert len(answer.reasons) == 4
    assert "samples" in answer.reasons[1]
    assert "thermal" in answer.reasons[2]


def on_mains(before: str | None, after: str | None, *, away_s: float = 0.0) -> QualityAssessment:
    plugged = [replace(heated(None), plugged=plug) for plug in (before, after)]
    evidence = Evidence(fence=1, before=plugged[0], after=plugged[1], away_s=away_s)
    return judged(evidence=evidence, gates=Gates(mains=True))


@pytest.mark.fault(47)
def test_a_run_that_lost_its_charger_is_not_valid_where_mains_is_demanded() -> None:
    assert on_mains("ac", "usb").quality is Quality.VALID
    assert on_mains("ac", None).quality is Quality.VALID
    lost = on_mains("usb", "none")
    assert lost == QualityAssessment(quality=Quality.UNPLUGGED, reasons=("not plugged in after the run",))
    assert on_mains("usb", "usb", away_s=4.0).quality is Quality.UNPLUGGED
    elsewhere = Evidence(fence=1, before=replace(heated(None), plugged="none"), away_s=4.0)
    assert judged(evidence=elsewhere, gates=Gates()).quality is Quality.VALID


@pytest.mark.fault(46)
def test_a_clock_that_is_limited_after_the_run_is_throttling() -> None:
    limited = CpuPolicy(name="policy4", max_hz=10**9, hardware_max_hz=2 * 10**9)
    evidence = Evidence(fence=1, after=replace(heated(None), cpus=(limited,)))
    answer = judged(evidence=evidence)
    assert answer.quality is Quality.THROTTLED
    assert answer.reasons == ("policy4 is limited to 1.00 of 2.00 GHz after the run",)


def test_what_was_set_and_did_not_stay_so_is_uncontrolled() -> None:
    changed = ControlState(name="cores", requested="4-7", actual_before="4-7", actual_after="4-5")
    answer = judged(evidence=Evidence(fence=1, controls=(changed,)))
    assert answer.quality is Quality.UNCONTROLLED
    assert answer.reasons == ("cores was 4-5 after the run, 4-7 was asked for",)


def test_what_gates_could_not_see_is_a_notice() -> None:
    seen = replace(heated(ThermalStatus.NONE), battery_level_pct=80, battery_c=30.0, storage_free_bytes=2**40)
    assert notices(seen, Gates()) == ["skin temperature unknown", "CPU clocks unknown"]
    seen, lenient = replace(seen, skin_c=31.0), Gates(full_clocks=False)
    assert notices(seen, replace(lenient, mains=True)) == ["plugged in unknown"]
    assert notices(seen, lenient) == []
    assert notices(None, Gates()) == ["how the phone was before the run is unknown"]


def test_what_an_agent_of_an_earlier_release_did_not_set_is_uncontrolled() -> None:
    nothing_set = Evidence(fence=1)
    answer = judged(evidence=nothing_set, controls=Controls(cores="big", governor="performance"))
    assert answer.quality is Quality.UNCONTROLLED
    assert answer.reasons == ("the run was not bound to big cores", "clocks and cores were not set: governor")
    assert judged(evidence=nothing_set, controls=Controls()).quality is Quality.VALID
    bound = ControlState(name="cores", requested="4-7", actual_before="4-7", actual_after="4-7")
    was_set = Evidence(fence=1, controls=(bound,))
    assert judged(evidence=was_set, controls=Controls(cores="big")).quality is Quality.VALID


def test_a_mean_is_judged_by_its_deviation() -> None:
    noisy = judged((), mean_ns=1e6, deviation_ns=470_000.0)
    assert noisy.quality is Quality.NOISY
    assert noisy.reasons == (
        "the deviation of the iterations is 47.0% of their mean, more than the limit of 25.0%",
    )
    assert judged((), mean_ns=1e6, deviation_ns=240_000.0).quality is Quality.VALID
    assert judged((), mean_ns=1e6).quality is Quality.VALID


@pytest.mark.parametrize("noise_limit", [0.25, 1.0, 2.0])
def test_a_mean_is_judged_by_its_median_too(noise_limit: float) -> None:
    few_took_most = judged(
        (), mean_ns=4e6, median_ns=1e6, deviation_ns=noise_limit * 4.4e6, noise_limit=noise_limit
    )
    assert few_took_most.quality is Quality.NOISY
    assert few_took_most.reasons[1:] == (
        f"the tool's mean is 4 times the median that it prints, more than the limit of {1 + noise_limit:.3g}:"
        " slow iterations raise the mean",
    )
    # It may print no deviation.
    alone = judged((), mean_ns=4e6, median_ns=1e6, noise_limit=noise_limit)
    assert (alone.quality, alone.reasons) == (Quality.NOISY, few_took_most.reasons[1:])
    assert judged((), mean_ns=1.2e6, median_ns=1e6).quality is Quality.VALID
    assert judged((), mean_ns=1e6, median_ns=3e6).quality is Quality.VALID


def test_a_sustained_run_is_not_blamed_for_the_heat_that_it_is_to_show() -> None:
    during = TraceFindings(throttled=("the cpu was limited",), capped=("the cpu was capped",))
    hot = heated(ThermalStatus.SEVERE)
    samples = tuple(sample * 10**6 for sample in SCATTERED)
    usual = judged(samples, before=heated(None), after=hot, during=during)
    assert usual.quality is Quality.THROTTLED
    # Heat after the run, both findings of the trace, and the scatter.
    assert len(usual.reasons) == 4
    sustained = judged(samples, before=heated(None), after=hot, during=during, sustained_s=0.75)
    assert sustained == QualityAssessment(quality=Quality.VALID)


def test_a_sustained_run_is_held_to_its_time_and_its_memory() -> None:
    during = TraceFindings(capped=("the cpu was capped",), swapped=("memory was swapped",))
    samples = tuple(sample * 10**6 for sample in STEADY)
    answer = judged(samples, during=during, sustained_s=60.0)
    assert answer.quality is Quality.SHORT
    assert answer.reasons == ("it worked for 0.5 s, 1 min 0 s were asked for", "memory was swapped")


def test_a_sustained_run_that_was_too_short_is_so_whatever_else_disturbed_it() -> None:
    evidence = Evidence(fence=1, after=replace(heated(None), plugged="none"))
    samples = tuple(sample * 10**6 for sample in STEADY)
    answer = judged(samples, evidence=evidence, gates=Gates(mains=True), sustained_s=60.0)
    assert answer.quality is Quality.SHORT
    assert answer.reasons == (
        "it worked for 0.5 s, 1 min 0 s were asked for",
        "not plugged in after the run",
    )
