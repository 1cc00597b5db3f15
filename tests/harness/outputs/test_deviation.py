"""The deviation of a tool's own mean: as it prints it, or the least one that its extremes allow."""

import math
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Quality, Reading
from farm.core.runs.quality import assess_quality
from farm.core.runs.stats import summarize_samples
from farm.harness.base.tool_result import LoopTimes, time_reading
from tests.support.harness import tool_samples as sample

LOOPS = (
    "count=3 first=900 curr=900 min=890 max=910 avg=900 std=10\n"
    "count=50 first=1000 curr=900 min=700 max=3000 avg=1000 std=470\n"
    "Inference timings in us: Init: 9, First inference: 900, Warmup (avg): 900, Inference (avg): 1000\n"
)
LITERT = "Inference (avg):       2.00 ms (50 runs)\nInference (std):       0.94 ms\n"
NCNN = "loop_count = 10\ngpu_device = -1\n  net  min =   10.00  max =   50.00  avg =   15.00\n"
MNN = (
    "Benchmarking... loop = 10, warmup = 5\n[ - ] a.mnn  max = 50.000 ms  min = 10.000 ms  avg = 15.000 ms\n"
)
ORT = (
    "Average inference time cost: 15 ms\nTotal inference requests: 10\n"
    "Min Latency: 0.010 s\nMax Latency: 0.050 s\n"
)
#: Eight iterations of 11.25 beside the extremes.
OF_EXTREMES_MS = math.sqrt((5.0**2 + 35.0**2 + 8 * 3.75**2) / 10)


@pytest.mark.parametrize(
    ("name", "stdout", "deviation_ms"),
    [
        ("benchmark_model", LOOPS, 0.47),
        ("litert-benchmark", LITERT, 0.94),
        ("benchncnn", NCNN, OF_EXTREMES_MS),
        ("mnn_benchmark", MNN, OF_EXTREMES_MS),
        ("onnxruntime_perf_test", ORT, OF_EXTREMES_MS),
    ],
)
def test_a_mean_that_scatters_is_noisy(name: str, stdout: str, deviation_ms: float) -> None:
    found = sample.reading(name, stdout)
    assert found.deviation_ns == pytest.approx(deviation_ms * 1e6)
    plan = sample.plan(name)
    judged = assess_quality(
        found,
        summarize_samples(found),
        requested_backend=found.actual_backend,
        evidence=Evidence(fence=1),
        gates=plan.gates,
        noise_limit=0.25,
    )
    assert judged.quality is not Quality.VALID
    assert any("the deviation of the iterations is" in reason for reason in judged.reasons)


SKEWED_LOOPS = (
    "count=3 first=900 curr=900 min=890 max=910 avg=900 std=10\n"
    "count=50 first=1000 curr=900 min=700 max=90000 avg=4000 std=4400 p5=800 median=1000 p95=9000\n"
    "Inference timings in us: Init: 9, First inference: 900, Warmup (avg): 900, Inference (avg): 4000\n"
)
SKEWED_LITERT = (
    "Inference (avg):       4.00 ms (50 runs)\nInference (median):    1.00 ms\n"
    "Inference (std):       4.40 ms\n"
)
#: It prints no deviation, and extremes of many iterations allow a small one.
SKEWED_ORT = (
    "Average inference time cost: 4 ms\nTotal inference requests: 1000000\n"
    "Min Latency: 0.001 s\nMax Latency: 0.050 s\nP50 Latency: 0.001 s\n"
)


@pytest.mark.parametrize(
    ("name", "stdout"),
    [
        ("benchmark_model", SKEWED_LOOPS),
        ("litert-benchmark", SKEWED_LITERT),
        ("onnxruntime_perf_test", SKEWED_ORT),
    ],
)
@pytest.mark.parametrize("noise_limit", [0.25, 1.0, 2.0])
def test_a_mean_four_times_the_median_is_not_valid(name: str, stdout: str, noise_limit: float) -> None:
    found = sample.reading(name, stdout)
    assert (found.mean_ns, found.median_ns) == (pytest.approx(4e6), pytest.approx(1e6))
    assert found.deviation_ns is not None
    assert found.deviation_ns >= 3e6 - 1
    judged = assess_quality(
        found,
        summarize_samples(found),
        requested_backend=found.actual_backend,
        evidence=Evidence(fence=1),
        gates=sample.plan(name).gates,
        noise_limit=noise_limit,
    )
    assert judged.quality is not Quality.VALID
    assert any("4 times the median" in reason for reason in judged.reasons)


@given(times=st.lists(st.integers(1, 10**9), min_size=2, max_size=30))
def test_the_least_deviation_is_never_more_than_the_real_one(times: list[int]) -> None:
    mean = sum(times) / len(times)
    loop = LoopTimes(
        mean_ns=mean, expected=len(times), extremes_ns=(min(times), max(times)), median_ns=median(times)
    )
    evidence = sample.evidence_of(sample.plan("benchncnn"), "")
    reading = time_reading(sample.plan("benchncnn"), evidence, loop, placement=None)
    real = math.sqrt(sum((value - mean) ** 2 for value in times) / len(times))
    assert isinstance(reading, Reading)
    assert reading.deviation_ns is not None
    assert 0 <= reading.deviation_ns <= real * (1 + 1e-6) + 1e-6
