"""A program that prints its own mean only is judged by the deviation that it prints beside it."""

import math
from typing import Any

import pytest

from farm.core.devices.condition import Gates
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Quality, QualityAssessment, Reading
from farm.core.runs.quality import assess_quality
from farm.core.runs.stats import summarize_samples
from tests.harness.generic import generic_samples as sample

MEAN = {"pattern": "mean ([0-9.]+) ms", "unit": "ms"}
DEVIATION = {"pattern": "std ([0-9.a-z-]+)", "unit": "ms"}
EXTREMES: dict[str, Any] = {
    "minimum": {"pattern": "min ([0-9.]+)", "unit": "ms"},
    "maximum": {"pattern": "max ([0-9.]+)", "unit": "ms"},
    "iterations_flag": "runs",
    "arguments": "--runs=${runs}",
    "flags": {"runs": {"default": 10}},
}
#: Eight iterations of 11.25 beside the extremes.
OF_EXTREMES_MS = math.sqrt((5.0**2 + 35.0**2 + 8 * 3.75**2) / 10)


def quality(reading: Reading) -> QualityAssessment:
    return assess_quality(
        reading,
        summarize_samples(reading),
        requested_backend="cpu",
        evidence=Evidence(fence=1),
        gates=Gates(),
        noise_limit=0.25,
    )


def test_a_mean_with_a_deviation_of_nearly_half_of_it_is_noisy_and_not_valid() -> None:
    infer = sample.harness(value=MEAN, deviation=DEVIATION)
    judged = quality(sample.reading(infer, "mean 10.0 ms, std 4.7 ms\n"))
    assert judged.quality is Quality.NOISY
    assert judged.reasons == (
        "the deviation of the iterations is 47.0% of their mean, more than the limit of 25.0%",
    )
    assert quality(sample.reading(infer, "mean 10.0 ms, std 0.1 ms\n")).quality is Quality.VALID


@pytest.mark.parametrize(
    ("value", "deviation", "text", "scatter"),
    [
        (MEAN, {**DEVIATION, "unit": "us"}, "mean 10 ms std 470", 0.047),
        (MEAN, {**DEVIATION, "unit": "%"}, "mean 10 ms std 47", 0.47),
        (MEAN, DEVIATION, "mean 10 ms std 0", 0.0),
        (
            {"pattern": "= ([0-9.]+) fps", "unit": "fps"},
            {"pattern": "([0-9.]+) %", "unit": "%"},
            "= 50 fps +- 3 %",
            0.03,
        ),
        (
            {"pattern": "= ([0-9.]+) ", "unit": "GFLOP/s"},
            {"pattern": "[+]- ([0-9.]+)", "unit": "GFLOP/s"},
            "= 40.0 GFLOP/s +- 10.0",
            0.25,
        ),
        ({"json": "$.mean", "unit": "ms"}, {"json": "$.std", "unit": "ms"}, '{"mean": 2, "std": 1}', 0.5),
    ],
)
def test_a_deviation_is_a_time_a_rate_or_a_part_of_the_mean(
    value: dict[str, str], deviation: dict[str, str], text: str, scatter: float
) -> None:
    found = sample.reading(sample.harness(value=value, deviation=deviation), text)
    assert summarize_samples(found).scatter == pytest.approx(scatter)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("mean 10 ms", "0 numbers are at /std ([0-9.a-z-]+)/, one was expected"),
        ("mean 10 ms std 1 std 2", "2 numbers are at /std"),
        ("mean 10 ms std -1", "-1 at /std ([0-9.a-z-]+)/ is not a possible deviation"),
        ("mean 10 ms std 1e17", "is not a possible deviation"),
        ("mean 10 ms std nan", "`nan` is no number"),
    ],
)
def test_a_deviation_that_is_named_and_not_printed_is_refused(text: str, why: str) -> None:
    failed = sample.failure(sample.harness(value=MEAN, deviation=DEVIATION), text)
    assert (failed.code, why in failed.message) == ("run.output_unreadable", True), failed.message


def test_extremes_give_the_least_deviation_that_they_allow() -> None:
    found = sample.reading(sample.harness(value=MEAN, **EXTREMES), "min 10.0 max 50.0 mean 15.0 ms\n")
    assert found.deviation_ns == pytest.approx(OF_EXTREMES_MS * 1e6)
    assert (found.expected_samples, found.summed_samples) == (10, None)
    assert quality(found).quality is Quality.NOISY


def test_extremes_of_a_rate_are_times_the_other_way_round() -> None:
    rates = {**EXTREMES, **{end: {**EXTREMES[end], "unit": "fps"} for end in ("minimum", "maximum")}}
    found = sample.reading(sample.harness(value=MEAN, **rates), "min 20 max 100 mean 15.0 ms\n")
    assert found.deviation_ns == pytest.approx(OF_EXTREMES_MS * 1e6)


def test_a_printed_deviation_comes_before_that_of_the_extremes() -> None:
    infer = sample.harness(value=MEAN, deviation=DEVIATION, **EXTREMES)
    found = sample.reading(infer, "min 10.0 max 50.0 mean 15.0 ms std 1.5\n")
    assert found.deviation_ns == pytest.approx(1.5e6)


def test_one_iteration_does_not_scatter_whatever_is_printed_of_it() -> None:
    infer = sample.harness(value=MEAN, deviation=DEVIATION, **EXTREMES)
    found = sample.reading(infer, "mean 15.0 ms std nan\n", runs=1)
    assert (found.deviation_ns, quality(found).quality) == (None, Quality.VALID)
