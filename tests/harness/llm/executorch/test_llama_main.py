"""ExecuTorch's `llama_main`: the command line in each regime, and what its output means."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from farm.core.runs.derived.generation import Regime
from farm.core.runs.measurement import COUNTED, Quality, RunFailure
from farm.core.runs.plan import fill_argv
from farm.harness.registry import get_harness
from tests.support.harness import tool_samples as sample

NAME = "llama_main"
WARM, OLD = (
    (sample.OUTPUTS / "executorch" / f"llama_main_{name}.log").read_text() for name in ("warm", "2025")
)
OF_WARM: dict[str, Any] = {"prompt": "w5 w6 w77"}
OF_OLD: dict[str, Any] = {"prompt": "Once upon a time,", "max_new_tokens": 128}


def tool_words(**settings: Any) -> list[str]:
    """The words of the tool's command, behind the shell's script."""
    argv = sample.plan(NAME, **settings).argv
    assert argv[:2] == ("sh", "-c")
    return list(argv[4:])


def quality(stdout: str, **settings: Any) -> tuple[Quality, str]:
    found = sample.reading(NAME, stdout, **settings)
    planned = sample.plan(NAME, **settings)
    return sample.judged(planned, found, sample.evidence_of(planned, stdout))


def test_a_warm_process_generates_once_before_that() -> None:
    assert tool_words() == [
        "${file_program}",
        "--model_path=model/model.pte",
        "--tokenizer_path=model/tokenizer.bin",
        "--warmup=true",
        "--prompt=The answer to the ultimate question is",
        "--max_new_tokens=65",
        "--temperature=0.0",
        "--cpu_threads=1",
    ]
    cold = tool_words(regime="cold", ignore_eos=True)
    assert [flag for flag in cold if "warmup" in flag or "eos" in flag] == [
        "--warmup=false",
        "--ignore_eos=true",
    ]


def test_model_and_tokenizer_lie_in_one_folder_and_are_no_caches() -> None:
    files = sample.plan(NAME).files
    assert [file.path for file in files] == ["", "model/model.pte", "model/tokenizer.bin"]
    # Links are neither listed nor dropped.
    assert sample.plan(NAME).argv[2].count('[ -L "$$file" ] ||') == 2


def test_only_a_cold_run_has_a_process_before_it() -> None:
    scripts = {regime: sample.plan(NAME, regime=regime).argv[2] for regime in map(str, Regime)}
    assert [regime for regime, script in scripts.items() if "before.txt" in script] == ["cold"]
    assert "--max_new_tokens=2" in scripts["cold"]


def test_the_name_of_a_tokenizer_is_no_placeholder(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = get_harness(NAME)
    given = sample.variant(harness)
    named = replace(given, files=(given.files[0], replace(given.files[1], path="tokenizer${work}.bin")))
    monkeypatch.setattr(sample, "variant", lambda _harness: named)
    filled = fill_argv(sample.plan(NAME), work="/w", path_by_name={"model": "/m", "program": "/p"})
    assert "--tokenizer_path=model/tokenizer${work}.bin" in filled


def test_a_model_without_its_tokenizer_is_unsupported_and_the_reason_says_how_to_give_it() -> None:
    harness = get_harness(NAME)
    alone = replace(sample.variant(harness), files=())
    assert "--file tokenizer.bin" in (harness.unsupported(alone, "cpu") or "")
    assert harness.unsupported(sample.variant(harness), "cpu") is None


def test_the_generation_is_the_sample_and_a_prompt_below_a_step_of_the_clock_has_no_rate() -> None:
    found = sample.reading(NAME, WARM, **OF_WARM)
    assert (found.samples_ns, found.expected_samples) == ((68_000_000,), 1)
    assert found.clock_step_ns == 1_000_000
    assert (found.accelerator, found.actual_backend) == ("cpu", "cpu")
    metrics = sample.metrics(found)
    assert metrics.keys() == {"decode_rate", "time_to_first_token"}
    assert metrics["decode_rate"] == pytest.approx(64 / 0.068)


@pytest.mark.parametrize("regime", ["first", "cold"])
def test_a_new_process_has_its_load_time(regime: str) -> None:
    found = sample.reading(NAME, OLD, regime=regime, **OF_OLD)
    assert found.samples_ns == (2_820_000_000,)
    metrics = sample.metrics(found)
    assert (metrics["load_time"], metrics["time_to_first_token"]) == (1250.0, 120.0)
    assert metrics["prefill_rate"] == pytest.approx(50.0)
    assert metrics["decode_rate"] == pytest.approx(127 / 2.82)


def test_what_another_backend_ran_on_is_unproven() -> None:
    assert sample.reading(NAME, WARM, backend="vulkan", **OF_WARM).accelerator == "unknown"


def test_another_number_of_tokens_is_no_sample() -> None:
    failed = sample.read(NAME, WARM, max_new_tokens=66, **OF_WARM)
    assert isinstance(failed, RunFailure)
    assert "generated 64 tokens after the first, and 65 were asked for" in failed.message
    assert "ignore_eos" in failed.message


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"inference_end_ms":1753340004190', '"inference_end_ms":1753340001369', "the clock was set back"),
        ('"generated_tokens":127,', "", "no generated_tokens"),
        ('SECOND":1000', 'SECOND":0', "SCALING_FACTOR"),
        ("PyTorchObserver {", "PyTorchObserver [", "no PyTorchObserver record"),
        ('"inference_end_ms":1753340004190', '"inference_end_ms":1753340001370', "takes no time"),
    ],
)
def test_a_record_that_cannot_be_gives_no_number(old: str, new: str, reason: str) -> None:
    failed = sample.read(NAME, OLD.replace(old, new), regime="cold", **OF_OLD)
    assert isinstance(failed, RunFailure)
    assert reason in failed.message


def test_two_generations_give_no_number() -> None:
    failed = sample.read(NAME, WARM + WARM, **OF_WARM)
    assert isinstance(failed, RunFailure)
    assert "2 generations" in failed.message


def test_digests_are_of_the_prompt_and_of_the_text_behind_it() -> None:
    found = sample.reading(NAME, "benchfarm_cache before 7 a.bin\n" + WARM, **OF_WARM)
    assert found.generation is not None
    assert found.generation.prompt_sha256 == sha256(b"w5 w6 w77").hexdigest()
    text = WARM.partition("PyTorchObserver")[0].removeprefix("w5 w6 w77")
    assert text.startswith(" 0x9B 0xEB")
    assert found.generation.text_sha256 == sha256(text.encode()).hexdigest()
    assert [cache.name for cache in found.generation.caches_before] == ["a.bin"]


@pytest.mark.parametrize(("text", "reason"), [("", "blank"), (" w7" * 65, "again and again")])
def test_a_degenerate_text_is_wrong_output_whatever_the_prompt_is(text: str, reason: str) -> None:
    record = WARM[WARM.index("PyTorchObserver") :]
    found, reasons = quality(f"w5 w6 w77{text}\n{record}", **OF_WARM)
    assert found is Quality.WRONG_OUTPUT
    assert found not in COUNTED
    assert reason in reasons
