"""LiteRT-LM's benchmark: the command line in each regime, and what its output means."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from farm.core.runs.derived.generation import CacheFile, Regime
from farm.core.runs.measurement import COUNTED, Quality, RunFailure
from tests.support.harness import tool_samples as sample

NAME = "litert_lm_advanced_main"
WARM, OLD = (
    (sample.OUTPUTS / "litert_lm" / f"litert_lm_{name}.log").read_text() for name in ("warm", "2025")
)
#: The text of each iteration, as the tool prints it.
TEXTS = "The tallest building is tall.\n" * 6
OF_OLD: dict[str, Any] = {"benchmark_prefill_tokens": 1024, "benchmark_decode_tokens": 256}


def quality(stdout: str, **settings: Any) -> tuple[Quality, str]:
    found = sample.reading(NAME, stdout, stderr=WARM, **settings)
    planned = sample.plan(NAME, **settings)
    return sample.judged(planned, found, sample.evidence_of(planned, stdout, stderr=WARM))


def tool_words(**settings: Any) -> list[str]:
    """The words of the tool's command, behind the shell's script."""
    argv = sample.plan(NAME, **settings).argv
    assert argv[:2] == ("sh", "-c")
    return list(argv[4:])


def test_a_warm_process_makes_one_more_iteration_than_count() -> None:
    assert tool_words() == [
        "${file_program}",
        "--benchmark",
        "--backend=cpu",
        "--model_path=model/model.litertlm",
        "--async=false",
        "--input_prompt=What is the tallest building in the world?",
        "--benchmark_prefill_tokens=0",
        "--benchmark_decode_tokens=64",
        "--num_iterations=6",
        "--num_cpu_threads=1",
    ]


@pytest.mark.parametrize("regime", ["first", "cold"])
def test_a_process_has_one_first_generation_however_many_iterations_are_set(regime: str) -> None:
    assert "--num_iterations=1" in tool_words(regime=regime, num_iterations=9)


def test_the_model_lies_where_the_runtime_puts_its_caches() -> None:
    [model] = [file for file in sample.plan(NAME).files if file.name == "model"]
    assert model.path == "model/model.litertlm"


def test_only_a_cold_run_has_a_process_before_it() -> None:
    scripts = {regime: sample.plan(NAME, regime=regime).argv[2] for regime in map(str, Regime)}
    assert [regime for regime, script in scripts.items() if "before.txt" in script] == ["cold"]
    assert [regime for regime, script in scripts.items() if "rm -f" in script] == ["first", "warm"]


def test_the_first_iteration_of_a_warm_process_does_not_count() -> None:
    found = sample.reading(NAME, TEXTS, stderr=WARM)
    assert found.samples_ns == (98282891, 99418114, 97964270, 98992324, 98151818)
    assert (found.expected_samples, found.accelerator) == (5, "cpu")
    metrics = sample.metrics(found)
    assert metrics.keys() == {"prefill_rate", "decode_rate", "time_to_first_token"}
    assert metrics["prefill_rate"] == pytest.approx(9 / 0.0205)
    assert metrics["decode_rate"] == pytest.approx(649.36, rel=1e-4)
    assert metrics["time_to_first_token"] == pytest.approx(20.5 + 98.562 / 64, rel=1e-3)


@pytest.mark.parametrize("regime", ["first", "cold"])
def test_a_new_process_has_one_sample_and_its_load_time(regime: str) -> None:
    found = sample.reading(NAME, "", stderr=OLD, regime=regime, **OF_OLD)
    assert found.samples_ns == (9_750_000_000,)
    assert found.expected_samples == 1
    assert sample.metrics(found)["load_time"] == 2000.0


def test_an_accelerator_is_unproven() -> None:
    found = sample.reading(NAME, TEXTS, backend="npu", stderr=WARM)
    assert found.accelerator == "unknown"


def test_other_numbers_of_tokens_are_no_sample() -> None:
    few = WARM.replace("64 tokens in 98.282891ms", "63 tokens in 98.282891ms")
    found = sample.reading(NAME, TEXTS, stderr=few)
    assert (len(found.samples_ns), found.expected_samples) == (4, 5)
    failed = sample.read(NAME, TEXTS, stderr=WARM, benchmark_decode_tokens=128)
    assert isinstance(failed, RunFailure)
    assert "generated 64: all of the prompt and 128 were asked for" in failed.message
    failed = sample.read(NAME, "", stderr=WARM, benchmark_prefill_tokens=256)
    assert isinstance(failed, RunFailure)
    assert "processed 9 tokens" in failed.message


def test_a_run_with_fewer_iterations_is_incomplete_and_one_with_more_gives_no_number() -> None:
    assert quality(TEXTS, num_iterations=7)[0] is Quality.SHORT
    failed = sample.read(NAME, TEXTS, stderr=WARM, num_iterations=4)
    assert isinstance(failed, RunFailure)
    assert "6 iterations are more" in failed.message


def test_digests_of_prompt_and_text_are_kept_with_the_caches() -> None:
    records = "benchfarm_cache before 7 a.bin\nbenchfarm_cache after 4096 m_1.xnnpack_cache\n"
    before, after = records.splitlines(keepends=True)
    found = sample.reading(NAME, before + TEXTS + after, stderr=WARM, input_prompt="Hello")
    assert found.generation is not None
    assert found.generation.regime is Regime.WARM
    assert found.generation.prompt_sha256 == sha256(b"Hello").hexdigest()
    assert found.generation.text_sha256 == sha256(TEXTS.encode()).hexdigest()
    assert found.generation.caches_before == (CacheFile(name="a.bin", size_bytes=7),)
    assert found.generation.caches_after == (CacheFile(name="m_1.xnnpack_cache", size_bytes=4096),)


def test_made_up_tokens_have_no_digest_and_no_text_to_judge() -> None:
    found = sample.reading(NAME, "", stderr=OLD, regime="cold", **OF_OLD)
    assert found.generation is not None
    assert (found.generation.prompt_sha256, found.generation.text_sha256) == (None, None)
    assert found.wrong_output == ""


def test_a_text_that_was_cut_off_is_not_judged() -> None:
    planned = sample.plan(NAME)
    evidence = replace(sample.evidence_of(planned, "", stderr=WARM), stdout_dropped_bytes=7)
    found = sample.get_harness(NAME).parse(planned, evidence)
    assert not isinstance(found, RunFailure)
    assert found.generation is not None
    assert (found.generation.text_sha256, found.wrong_output) == (None, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [("\n" * 6, "blank"), ("", "blank"), ("the the the the\n" * 6, "again and again, 24 times")],
)
def test_a_degenerate_text_is_wrong_output_and_enters_no_comparison(text: str, reason: str) -> None:
    found, reasons = quality(text)
    assert found is Quality.WRONG_OUTPUT
    assert found not in COUNTED
    assert reason in reasons


def test_any_other_text_is_valid() -> None:
    assert quality(TEXTS) == (Quality.VALID, "")
