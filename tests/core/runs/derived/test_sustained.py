"""Sustained runs: windows over time, steady time, peak, decay, and the first ceiling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.runs.derived.sustained import (
    WINDOWS,
    first_ceiling_s,
    is_sustained,
    latency_profile,
    shortfall,
    summarize_sustained,
    sustained_metrics,
)
from farm.core.runs.measurement import Metric, Reading, SampleKind
from farm.core.runs.trace_findings import Ceiling

MS = 1_000_000


def reading(samples_ns: list[int] | None = None, *, mean_ns: float | None = None, summed: int = 0) -> Reading:
    return Reading(
        samples_ns=tuple(samples_ns or ()),
        mean_ns=mean_ns,
        summed_samples=summed or None,
        expected_samples=1,
        actual_backend="cpu",
        accelerator="cpu",
        proof="cpu by construction",
    )


def named(metrics: list[Metric]) -> dict[str, float]:
    return {metric.name: metric.value for metric in metrics}


@pytest.mark.parametrize(
    ("what", "samples_ns", "windows", "peak_ms", "steady_ms", "decay"),
    [
        ("even", [2 * MS] * 1000, 20, 2.0, 2.0, 0.0),
        # 20 s of 2 ms, then 3 ms to the end of the minute: the best window is the peak.
        ("slows", [2 * MS] * 10_000 + [3 * MS] * 13_333, 20, 2.0, 3.0, 0.5),
        # A tenth of the time fast, at the start only.
        ("slows soon", [1 * MS] * 1000 + [2 * MS] * 4500, 20, 1.0, 2.0, 1.0),
        # Slow first, as where clocks rise late: the steady time is the peak.
        ("warms up", [4 * MS] * 100 + [2 * MS] * 2000, 20, 2.0, 2.0, 0.0),
        ("recovers", [2 * MS] * 500 + [4 * MS] * 500 + [2 * MS] * 1000, 20, 2.0, 2.0, 0.0),
        ("few samples, five to a window", [2 * MS] * 30, 6, 2.0, 2.0, 0.0),
        ("too few to compare", [2 * MS] * 12 + [3 * MS] * 12, 4, None, 3.0, None),
        ("one sample", [5 * MS], 1, None, 5.0, None),
        ("one that fills the end", [1 * MS] * 5 + [95 * MS], 1, None, 95.0, None),
    ],
)
def test_peak_and_steady_time_follow_from_the_samples(
    what: str,
    samples_ns: list[int],
    windows: int,
    peak_ms: float | None,
    steady_ms: float,
    decay: float | None,
) -> None:
    profile = latency_profile(samples_ns)
    assert len(profile.windows) == windows
    assert profile.peak_ns == (None if peak_ms is None else peak_ms * 1e6)
    assert profile.steady_ns == steady_ms * 1e6
    assert profile.decay == (None if decay is None else pytest.approx(decay))
    assert profile.worked_s == pytest.approx(sum(samples_ns) / 1e9)


def test_the_axis_is_time_and_not_the_number_of_iterations() -> None:
    # As many fast ones as slow ones; the slow ones take three quarters of the time.
    profile = latency_profile([1 * MS] * 1000 + [3 * MS] * 1000)
    fast = [window for window in profile.windows if window.median_ns == 1 * MS]
    assert len(fast) == WINDOWS // 4
    assert [fast[0].start_s, fast[-1].end_s] == pytest.approx([0.0, 1.0])


def test_a_window_in_which_no_iteration_began_has_no_median() -> None:
    profile = latency_profile([1 * MS] * 50 + [900 * MS] + [1 * MS] * 50)
    assert [window.median_ns for window in profile.windows].count(None) > 10
    assert sum(window.count for window in profile.windows) == 101


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=300))
def test_every_sample_is_in_one_window_and_nothing_beats_the_peak(samples_ns: list[int]) -> None:
    profile = latency_profile(samples_ns)
    assert sum(window.count for window in profile.windows) == len(samples_ns)
    assert profile.windows[-1].end_s == pytest.approx(sum(samples_ns) / 1e9)
    assert min(samples_ns) <= profile.steady_ns <= max(samples_ns)
    assert profile.decay is None or profile.decay >= 0


@pytest.mark.parametrize("samples_ns", [[], [0, 0]])
def test_samples_that_take_no_time_have_no_profile(samples_ns: list[int]) -> None:
    with pytest.raises(ValueError, match="take time"):
        latency_profile(samples_ns)


def test_the_value_is_the_steady_time_and_its_scatter_not_that_of_the_decay() -> None:
    slowing = reading([2 * MS] * 1000 + [4 * MS] * 1000)
    summary = summarize_sustained(slowing)
    assert (summary.kind, summary.value_ns, summary.scatter) == (SampleKind.SAMPLES, 4e6, 0.0)
    assert (summary.count, summary.mean_ns, summary.min_ns) == (2000, 3e6, 2 * MS)


def test_a_tool_without_samples_keeps_its_mean() -> None:
    summary = summarize_sustained(reading(mean_ns=3e6, summed=1000))
    assert (summary.kind, summary.value_ns) == (SampleKind.SUMMARY, 3e6)
    assert named(list(sustained_metrics(reading(mean_ns=3e6, summed=1000), first_ceiling_s=None))) == {
        "sustained_for": 3.0
    }


def test_metrics_tell_how_long_it_worked_the_peak_the_decay_and_the_first_ceiling() -> None:
    metrics = list(sustained_metrics(reading([2 * MS] * 1000 + [4 * MS] * 1000), first_ceiling_s=2.5))
    assert named(metrics) == {
        "sustained_for": pytest.approx(6.0),
        "sustained_peak": 2.0,
        "sustained_decay": pytest.approx(100.0),
        "first_ceiling": 2.5,
    }
    assert is_sustained(metrics)
    assert not is_sustained([metric for metric in metrics if metric.name != "sustained_for"])


@pytest.mark.parametrize(
    ("of", "sustained_s", "words"),
    [
        (reading([10 * MS] * 100), 1, None),
        (reading([10 * MS] * 91), 1, None),
        (reading([10 * MS] * 89), 1, "it worked for 0.9 s, 1 s were asked for"),
        (reading([10 * MS] * 200), 600, "it worked for 2.0 s, 10 min 0 s were asked for"),
        (reading(mean_ns=10e6, summed=200), 600, "it worked for 2.0 s, 10 min 0 s were asked for"),
        # Not known: the tool does not say how many iterations its mean is of.
        (reading(mean_ns=10e6), 600, None),
    ],
)
def test_a_run_that_ended_early_says_so(of: Reading, sustained_s: int, words: str | None) -> None:
    assert shortfall(of, sustained_s) == words


def ceiling(lowest_hz: int, first_s: float) -> Ceiling:
    return Ceiling(
        name="policy4", hardware_hz=2_000_000_000, lowest_hz=lowest_hz, first_s=first_s, lowered_s=5.0
    )


@pytest.mark.parametrize(
    ("what", "ceilings", "seconds"),
    [
        ("not sampled, or hidden", None, None),
        ("no ceiling", (), None),
        ("one", (ceiling(1_400_000_000, 20.5),), 20.5),
        ("the first of two", (ceiling(1_400_000_000, 20.5), ceiling(1_000_000_000, 8.0)), 8.0),
        ("a little below", (ceiling(1_750_000_000, 8.0), ceiling(1_400_000_000, 20.5)), 20.5),
    ],
)
def test_the_first_ceiling_that_is_clearly_low_is_dated_from_the_start(
    what: str, ceilings: tuple[Ceiling, ...] | None, seconds: float | None
) -> None:
    assert first_ceiling_s(ceilings) == seconds
