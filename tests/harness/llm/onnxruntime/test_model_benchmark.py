"""ONNX Runtime GenAI's `model_benchmark`: the command line in each regime, and what its output means."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from farm.core.runs.derived.generation import Regime
from farm.core.runs.evidence import Evidence, ExitRecord, PassEvidence
from farm.core.runs.measurement import COUNTED, Quality, Reading, RunFailure
from farm.harness.registry import get_harness
from tests.support.harness import tool_samples as sample

NAME = "model_benchmark"
WARM, OLD, COLD = (
    (sample.OUTPUTS / "onnxruntime_genai" / f"{NAME}_{name}.log").read_text()
    for name in ("warm", "2024", "cold")
)
OF_WARM: dict[str, Any] = {"prompt": "w5 w6 w77", "generation_length": 6, "repetitions": 3}
OF_COLD: dict[str, Any] = {"regime": "cold", "prompt_length": 512, "generation_length": 6}
PLACED = (
    "2026-11-29 13:14:33.686041685 [V:onnxruntime:, session_state.cc:1601 VerifyEachNodeIsAssignedToAnEp] "
    " All nodes placed on [{}]. Number of nodes: 93\n"
)


def with_pass(stdout: str, provider: str, backend: str = "cpu", **settings: Any) -> Reading | RunFailure:
    planned = sample.plan(NAME, backend, **settings)
    [probe] = planned.passes
    shown = PassEvidence(
        name=probe.name, exit=ExitRecord(code=0, duration_s=1.0), stdout=WARM, stderr=PLACED.format(provider)
    )
    evidence: Evidence = replace(sample.evidence_of(planned, stdout), passes=(shown,))
    return get_harness(NAME).parse(planned, evidence)


def tool_words(**settings: Any) -> list[str]:
    """The words of the tool's command, behind the shell's script."""
    argv = sample.plan(NAME, **settings).argv
    assert argv[:2] == ("sh", "-c")
    return list(argv[4:])


def quality(stdout: str, **settings: Any) -> tuple[Quality, str]:
    found = with_pass(stdout, "CPUExecutionProvider", **settings)
    assert isinstance(found, Reading)
    planned = sample.plan(NAME, **settings)
    return sample.judged(planned, found, sample.evidence_of(planned, stdout))


def test_a_warm_process_generates_once_before_that_and_shows_what() -> None:
    assert tool_words() == [
        "${file_program}",
        "--input_folder",
        "model",
        "--batch_size",
        "1",
        "--prompt",
        "What is the tallest building in the world?",
        "--generation_length",
        "128",
        "--repetitions",
        "5",
        "--warmup",
        "1",
        "--verbose",
    ]


@pytest.mark.parametrize("regime", ["first", "cold"])
def test_a_new_process_generates_once_and_nothing_before_that(regime: str) -> None:
    words = tool_words(regime=regime, repetitions=9)
    assert words[words.index("--repetitions") :] == ["--repetitions", "1", "--warmup", "0", "--verbose"]


def test_tokens_instead_of_a_text_are_random() -> None:
    words = tool_words(prompt_length=256)
    assert words[words.index("--prompt_length") :][:3] == ["--prompt_length", "256", "--use_random_tokens"]
    # The tool takes one of both only.
    assert "--prompt" not in words


def test_the_folder_has_model_configuration_and_tokenizer_as_links() -> None:
    files = sample.plan(NAME).files
    assert [file.path for file in files] == [
        "",
        "model/model.onnx",
        "model/genai_config.json",
        "model/tokenizer.json",
    ]


def test_only_a_cold_run_has_a_process_before_it() -> None:
    scripts = {regime: sample.plan(NAME, regime=regime).argv[2] for regime in map(str, Regime)}
    assert [regime for regime, script in scripts.items() if "before.txt" in script] == ["cold"]
    assert "--generation_length 2 --repetitions 1" in scripts["cold"]


@pytest.mark.parametrize("missing", ["genai_config.json", "tokenizer.json"])
def test_a_model_without_a_file_that_the_runtime_reads_is_unsupported_with_how_to_give_it(
    missing: str,
) -> None:
    harness = get_harness(NAME)
    whole = sample.variant(harness)
    without = replace(whole, files=tuple(file for file in whole.files if file.path != missing))
    assert harness.unsupported(whole, "cpu") is None
    assert "--file genai_config.json --file tokenizer.json" in (harness.unsupported(without, "cpu") or "")


def test_the_value_is_the_mean_of_a_token_as_the_tool_prints_it() -> None:
    found = sample.reading(NAME, OLD)
    assert found.mean_ns == pytest.approx(90_500_900)
    assert (found.expected_samples, found.summed_samples) == (5 * 127, 5 * 127)
    assert found.deviation_ns == pytest.approx(7_364_330)
    assert found.median_ns == pytest.approx(89_802_800)
    # Six digits of microseconds.
    assert found.clock_step_ns == 100
    metrics = sample.metrics(found)
    assert metrics == {
        "prefill_rate": pytest.approx(11 / 0.416591),
        "decode_rate": pytest.approx(11.0496, rel=1e-5),
        # The prompt, and the sampling of the first token.
        "time_to_first_token": pytest.approx(416.591 + 0.0300704),
        "memory_peak": pytest.approx(2483.78368),
    }


def test_the_newest_wording_and_numbers_with_an_exponent_are_read() -> None:
    newest = sample.metrics(sample.reading(NAME, WARM, **OF_WARM))
    assert newest["memory_peak"] == pytest.approx(111.837184)
    slow = sample.metrics(sample.reading(NAME, COLD, **OF_COLD))
    assert slow["time_to_first_token"] == pytest.approx(10092.4 + 0.0417)
    assert slow["prefill_rate"] == pytest.approx(512 / 10.0924)


def test_the_placement_is_that_of_a_pass_which_logs_it() -> None:
    [probe] = sample.plan(NAME, "qnn").passes
    assert probe.env["ORTGENAI_ORT_VERBOSE_LOGGING"] == "1"
    assert "ORTGENAI_ORT_VERBOSE_LOGGING" not in sample.plan(NAME, "qnn").env
    assert list(probe.argv)[-2:] == ["--warmup", "0"]
    on_cpu = with_pass(WARM, "CPUExecutionProvider", **OF_WARM)
    assert isinstance(on_cpu, Reading)
    assert (on_cpu.accelerator, on_cpu.actual_backend) == ("cpu", "cpu")
    assert "All nodes placed on [CPUExecutionProvider]" in on_cpu.proof


def test_a_configuration_for_another_provider_is_no_run_on_the_cpu() -> None:
    # Nothing in the command says where the runtime puts the model.
    assert sample.reading(NAME, WARM, **OF_WARM).accelerator == "unknown"
    other = with_pass(WARM, "WebGpuExecutionProvider", **OF_WARM)
    assert isinstance(other, Reading)
    assert other.accelerator != "cpu"
    asked = with_pass(WARM, "CPUExecutionProvider", backend="qnn", **OF_WARM)
    assert isinstance(asked, Reading)
    assert asked.accelerator == "cpu"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"generation_length": 7}, "and 1 x the prompt and 7 were asked for"),
        ({"repetitions": 4}, "it processed 3 prompts, and 4 were asked for"),
        ({"prompt_length": 10}, "it was told 1 x 9 and 6 tokens, and 1 x 10"),
    ],
)
def test_other_work_than_was_asked_for_is_no_sample(changed: dict[str, Any], reason: str) -> None:
    failed = sample.failure(NAME, WARM, **(OF_WARM | changed))
    assert reason in failed.message


def test_a_text_that_ended_early_is_no_sample() -> None:
    failed = sample.failure(NAME, WARM.replace("15 * 1 token", "11 * 1 token"), **OF_WARM)
    assert "generated 11 tokens after the first, and 15 were asked for" in failed.message


def test_a_text_of_one_token_is_no_sample() -> None:
    # The mean of nothing is 0, and its rate infinite.
    section = WARM[WARM.index("Token generation:") : WARM.index("Token sampling:")]
    nothing = section.replace("1139.66", "0").replace("877.455", "inf").replace("1128.67", "0")
    nothing = nothing.replace("52.2531", "0").replace("15 * 1", "0 * 1")
    failed = sample.failure(NAME, WARM.replace(section, nothing), **OF_WARM)
    assert "generated 0 tokens after the first" in failed.message


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("\tp50 (us):       1128.67\n", "", "no whole mean of the generation"),
        ("avg (ms):       10.8881", "avg (ms):       9.8881", "took 9.8881 ms, and its parts 10.8"),
        ("1139.66", "1e200", "the mean of the generation is too long"),
        ("1139.66", "1e-305", "the mean of the generation is too long or too short"),
        ("Batch size", "Batch", "no line `Batch size"),
    ],
)
def test_an_output_that_cannot_be_gives_no_number(old: str, new: str, reason: str) -> None:
    assert old in WARM
    assert reason in sample.failure(NAME, WARM.replace(old, new), **OF_WARM).message


def test_two_runs_give_no_number() -> None:
    assert "2 runs" in sample.failure(NAME, WARM + WARM, **OF_WARM).message


def test_digests_are_of_the_prompt_and_of_the_text_behind_it() -> None:
    found = sample.reading(NAME, "benchfarm_cache after 7 a_ctx.onnx\n" + WARM, **OF_WARM)
    assert found.generation is not None
    assert found.generation.prompt_sha256 == sha256(b"w5 w6 w77").hexdigest()
    text = b" w114 w114 w2469 w2026 w57 w2469"
    assert found.generation.text_sha256 == sha256(text).hexdigest()
    assert [cache.name for cache in found.generation.caches_after] == ["a_ctx.onnx"]


def test_a_new_process_prints_no_text_and_random_tokens_have_none() -> None:
    of_text = sample.reading(NAME, COLD, **(OF_COLD | {"prompt_length": 0, "prompt": "w5"}))
    assert of_text.generation is not None
    assert of_text.generation.prompt_sha256 == sha256(b"w5").hexdigest()
    assert of_text.generation.text_sha256 is None
    of_tokens = sample.reading(NAME, COLD, **OF_COLD)
    assert of_tokens.generation is not None
    assert of_tokens.generation.prompt_sha256 is None
    assert not of_tokens.wrong_output


@pytest.mark.parametrize(("text", "reason"), [("", "blank"), (" w7" * 6, "again and again")])
@pytest.mark.parametrize("prompt", ["w5 w6 w77", "<s><|user|>\nw5 w6 w77<|end|>"])
def test_a_degenerate_text_is_wrong_output_whatever_the_prompt_is(
    text: str, reason: str, prompt: str
) -> None:
    # Tokens that stand for a role are in the prompt, and not in what the tool prints.
    told = WARM.replace(" w114 w114 w2469 w2026 w57 w2469", text)
    assert text in told
    found, reasons = quality(told, **(OF_WARM | {"prompt": prompt}))
    assert found is Quality.WRONG_OUTPUT
    assert found not in COUNTED
    assert reason in reasons
    assert quality(WARM, **(OF_WARM | {"prompt": prompt}))[0] is Quality.VALID


@pytest.mark.parametrize("prompt", ["", "  ", "<s>"])
def test_a_prompt_without_text_is_not_looked_for(prompt: str) -> None:
    assert quality(WARM, **(OF_WARM | {"prompt": prompt}))[0] is Quality.VALID


def test_an_older_tool_that_knows_no_random_tokens_is_unsupported() -> None:
    said = "Error: Unknown option: --use_random_tokens\nUsage: model_benchmark -i <model path>\n"
    failed = sample.failure(NAME, "", stderr=said, code=1, prompt_length=16)
    assert failed.code == "run.unknown_flag"
    assert "--use_random_tokens" in failed.message
