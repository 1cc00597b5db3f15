"""Flags with which each tool works for a given time."""

import pytest

from farm.core.runs.derived.sustained import MAX_ITERATIONS
from farm.harness.base.options import flag_defaults
from farm.harness.base.sustained import SustainedFlags, sustained_settings
from farm.harness.onnxruntime.onnxruntime_perf_test import OnnxruntimePerfTest
from farm.harness.registry import get_harness, harness_names
from tests.support.harness import tool_samples as sample


def settings(name: str, *, sustained_s: int = 600, iteration_ns: float | None = 5e6) -> dict[str, object]:
    """What a sustained run changes of a harness's defaults."""
    harness = get_harness(name)
    assert harness.sustained_flags is not None
    defaults = flag_defaults(harness)
    changed = sustained_settings(
        harness.sustained_flags, defaults, sustained_s=sustained_s, iteration_ns=iteration_ns
    )
    assert changed.keys() == defaults.keys()
    assert {type(changed[flag]) is type(defaults[flag]) for flag in defaults} == {True}
    return {flag: value for flag, value in changed.items() if value != defaults[flag]}


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        # While either number or seconds is not reached, and never longer than max_secs.
        ("benchmark_model", {"min_secs": 600.0, "max_secs": 600.0, "num_runs": 1}),
        ("onnxruntime_perf_test", {"seconds": 600}),
        ("speed_benchmark_torch", {"iter": 120_000}),
        ("executor_runner", {"num_executions": 120_000}),
        ("litert-benchmark", {"num_runs": 120_000}),
        ("tvm_benchmark", {"num_runs": 120_000}),
        ("mnn_benchmark", {"loop": 120_000}),
        ("llama-bench", {"repetitions": 120_000}),
        ("litert_lm_advanced_main", {"num_iterations": 120_000}),
        ("benchncnn", {"loop_count": 120_000}),
    ],
)
def test_each_tool_works_by_seconds_where_it_can_and_else_by_iterations(
    name: str, changed: dict[str, object]
) -> None:
    assert settings(name) == changed


def test_no_tool_of_the_farms_own_is_left_out_without_a_reason() -> None:
    obstacles = {name: get_harness(name).sustained_obstacle for name in harness_names()}
    without = {name for name in harness_names() if get_harness(name).sustained_flags is None}
    # One generates a text and ends, the other prints means of tokens.
    with_reason = {name for name, obstacle in obstacles.items() if obstacle}
    assert without == with_reason == {"llama_main", "model_benchmark"}


@pytest.mark.parametrize(
    ("iteration_ns", "number"),
    [(None, 200), (1e9, 10), (3e9, 4), (1e12, 1), (1.0, MAX_ITERATIONS)],
)
def test_the_number_of_iterations_is_rounded_up_bounded_and_left_alone_where_nothing_is_known(
    iteration_ns: float | None, number: int
) -> None:
    changed = sustained_settings(
        SustainedFlags(iterations="iter"), {"iter": 200}, sustained_s=10, iteration_ns=iteration_ns
    )
    assert changed == {"iter": number}


def test_onnxruntime_is_told_the_seconds_instead_of_the_number() -> None:
    words = list(sample.plan("onnxruntime_perf_test", "cpu", seconds=600).argv)
    place = words.index("-m")
    assert words[place : place + 4] == ["-m", "duration", "-t", "600"]
    assert "-r" not in words
    assert list(sample.plan("onnxruntime_perf_test", "cpu").argv)[3:5] == ["-m", "times"]


def test_the_pass_of_a_sustained_run_is_as_short_as_ever() -> None:
    plan = sample.plan("onnxruntime_perf_test", "xnnpack", seconds=600)
    assert "duration" in plan.argv
    assert "duration" not in plan.passes[0].argv
    assert OnnxruntimePerfTest.sustained_flags is not None
