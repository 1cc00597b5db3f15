"""MNN's `llm_bench`: the command line, and what a row of its table means."""

from dataclasses import replace
from typing import Any

import pytest

from farm.harness.registry import get_harness
from tests.support.harness import tool_samples as sample

NAME = "llm_bench"
OLD, OPENCL = (
    (sample.OUTPUTS / "mnn" / f"{NAME}_{name}.log").read_text(encoding="utf-8") for name in ("2025", "opencl")
)
OF_OPENCL: dict[str, Any] = {
    "backend": "opencl",
    "n_prompt": 64,
    "n_gen": 32,
    "threads": 68,
    "precision_mode": 0,
    "mmap": True,
    "loading_time": True,
}


def test_the_tool_is_told_its_configuration_and_tests_a_prompt_with_the_text_behind_it() -> None:
    assert sample.words(NAME) == [
        *("-m", "model/config.json", "-a", "cpu", "-kv", "true", "-p", "512", "-n", "128", "-rep", "5"),
        *("-t", "1", "-c", "2"),
    ]
    assert sample.words(NAME, mmap=True, loading_time=True)[-4:] == ["-mmp", "1", "-load", "true"]


def test_the_folder_has_the_model_under_the_name_that_the_exporter_gives_it() -> None:
    assert [file.path for file in sample.plan(NAME).files] == ["", "model/llm.mnn", "model/config.json"]


def test_a_model_without_its_configuration_is_unsupported_with_how_to_give_it() -> None:
    harness = get_harness(NAME)
    alone = replace(sample.variant(harness), files=())
    assert harness.unsupported(sample.variant(harness), "cpu") is None
    assert "--file config.json" in (harness.unsupported(alone, "cpu") or "")


def test_the_value_is_the_time_of_a_generation_by_its_mean_rate() -> None:
    found = sample.reading(NAME, OLD)
    assert found.mean_ns == pytest.approx(128e9 / 32.10)
    assert found.deviation_ns == pytest.approx(128e9 / 32.10 * 0.58 / 32.10)
    assert found.expected_samples == 5
    # A hundredth of a token per second.
    assert found.clock_step_ns == pytest.approx(128e9 / 32.10 * 0.01 / 32.10, rel=1e-6)
    assert sample.metrics(found) == {"prefill_rate": 145.88, "decode_rate": 32.10}
    assert (found.accelerator, found.actual_backend) == ("cpu", "cpu")


def test_further_columns_are_read_by_their_heads_and_the_load_time_is_the_mean_of_three() -> None:
    found = sample.reading(NAME, OPENCL, **OF_OPENCL)
    assert sample.metrics(found) == {"prefill_rate": 212.05, "decode_rate": 18.42, "load_time": 2310.0}
    soon = sample.reading(NAME, OPENCL.replace("2.31 ± 1.17", "0.00 ± 0.00"), **OF_OPENCL)
    assert "load_time" not in sample.metrics(soon)


def test_a_gpu_that_only_the_row_names_is_unproven_and_a_substitute_is_the_cpu() -> None:
    assert sample.reading(NAME, OPENCL, **OF_OPENCL).accelerator == "unknown"
    instead = "Can't Find type=3 backend, use 0 instead\n"
    found = sample.reading(NAME, instead + OPENCL, **OF_OPENCL)
    assert found.accelerator == "cpu"
    assert "use 0 instead" in found.proof


def test_a_gpu_that_lost_a_part_of_the_work_gives_no_number() -> None:
    lost = "CL ERROR CODE : -54, info:conv_2d_1x1\n"
    assert sample.failure(NAME, lost + OPENCL, **OF_OPENCL).code == "run.backend_failed"
    # An error of a size that was only tried is none.
    tried = f"{lost}lws tune res conv_2d_1x1\n"
    assert sample.reading(NAME, tried + OPENCL, **OF_OPENCL).mean_ns


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"n_prompt": 256}, "it tested a prompt of 512 and 128 tokens after it, and 256 and 128"),
        ({"n_gen": 64}, "and 512 and 64 were asked for"),
        ({"threads": 4}, "it ran with threads 1, and 4 was asked for"),
        ({"precision_mode": 1}, "it ran with precision Low, and High was asked for"),
        ({"backend": "opencl"}, "it ran with backend CPU, and OPENCL was asked for"),
    ],
)
def test_other_work_than_was_asked_for_gives_no_number(changed: dict[str, Any], reason: str) -> None:
    assert reason in sample.failure(NAME, OLD, **changed).message


def test_a_rate_of_tokens_that_were_never_made_is_refused() -> None:
    # Where a text ended early, older releases divide all tokens by the time of some: seen with Gemma 3.
    failed = sample.failure(NAME, OLD.replace("32.10 ± 0.58", "316.10 ± 2.58"))
    assert "the text may have ended before its 128 tokens" in failed.message
    short = OLD.replace("prompt=512", "prompt=8").replace("145.88", "30.00")
    assert sample.metrics(sample.reading(NAME, short, n_prompt=8))["decode_rate"] == 32.10


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (" | 145.88 ±", " ± 145.88 ±", "a row has 6 columns, and 7 heads"),
        ("145.88 ± 0.54<br>", "", "no test with the rates"),
        ("32.10 ±", "inf ±", "no test with the rates"),
        ("32.10 ±", "0.00 ±", "a rate of 0 tokens/s"),
        ("| llm_demo", "| test", "no row `prompt="),
    ],
)
def test_a_row_that_cannot_be_gives_no_number(old: str, new: str, reason: str) -> None:
    assert old in OLD
    assert reason in sample.failure(NAME, OLD.replace(old, new)).message


def test_a_deviation_that_is_no_number_is_none() -> None:
    # The tool takes the root of a difference that rounding makes negative.
    assert sample.reading(NAME, OLD.replace("± 0.58", "± -nan")).deviation_ns == 0


def test_two_tests_give_no_number() -> None:
    row = next(line for line in OLD.splitlines() if "Qwen" in line)
    assert "2 tests" in sample.failure(NAME, OLD.replace(row, f"{row}\n{row}")).message


def test_the_line_of_heads_alone_is_no_run() -> None:
    heads = "".join(line for line in OLD.splitlines(keepends=True) if "Qwen" not in line)
    assert "no row" in sample.failure(NAME, heads).message
