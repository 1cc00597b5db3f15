"""What every adapter of a tool that runs one model file has in common."""

from dataclasses import replace

import pytest

from farm.core.models.variant import Format
from farm.harness.registry import get_harness, harness_names
from tests.support.harness import tool_samples as sample

NAMES = sorted(sample.FORMAT_BY_HARNESS)
#: Defaults are for ever: a series says only what is not the default.
DEFAULTS = {
    "benchmark_model": {"num_threads": 1, "num_runs": 50, "warmup_runs": 1, "min_secs": 1.0},
    "benchncnn": {"loop_count": 20, "num_threads": 1, "powersave": 0, "cooling_down": 0},
    "executor_runner": {"num_executions": 50, "cpu_threads": 1},
    "litert-benchmark": {"num_runs": 50, "warmup_runs": 5, "num_threads": 1},
    "litert_lm_advanced_main": {
        "regime": "warm",
        "benchmark_prefill_tokens": 0,
        "benchmark_decode_tokens": 64,
        "num_iterations": 5,
        "num_cpu_threads": 1,
    },
    "llama_main": {
        "regime": "warm",
        "max_new_tokens": 65,
        "temperature": 0.0,
        "cpu_threads": 1,
        "num_bos": 0,
        "ignore_eos": False,
    },
    "llm_bench": {
        "n_prompt": 512,
        "n_gen": 128,
        "n_repeat": 5,
        "threads": 1,
        "precision_mode": 2,
        "mmap": False,
        "loading_time": False,
    },
    "model_benchmark": {"regime": "warm", "prompt_length": 0, "generation_length": 128, "repetitions": 5},
    "llama-bench": {"n_prompt": 512, "n_gen": 128, "repetitions": 5, "threads": 1, "n_gpu_layers": 99},
    "mnn_benchmark": {"loop": 20, "warmup": 5, "threads": 1, "precision_mode": 0},
    "onnxruntime_perf_test": {"repeated_times": 100, "intra_op_num_threads": 1, "optimization_level": 99},
    "tvm_benchmark": {"num_runs": 50, "warmup_runs": 5, "num_threads": 1, "inputs": ""},
}


def test_every_tool_of_the_farms_own_is_tried_here() -> None:
    assert {*NAMES, "speed_benchmark_torch"} == set(harness_names())


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_for_ever(name: str) -> None:
    defaults = {flag: told.default for flag, told in get_harness(name).flags.items()}
    assert {flag: defaults[flag] for flag in DEFAULTS[name]} == DEFAULTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_another_format_is_unsupported_with_the_formats_it_reads(name: str) -> None:
    harness = get_harness(name)
    right = sample.variant(harness)
    wrong = replace(right, recipe=replace(right.recipe, format=Format.TORCHSCRIPT))
    assert harness.unsupported(right, "cpu") is None
    said = harness.unsupported(wrong, "cpu")
    assert said is not None
    assert right.recipe.format in said
    assert "torchscript" in said


@pytest.mark.parametrize("name", NAMES)
def test_unknown_backends_and_missing_models_are_unsupported(name: str) -> None:
    harness = get_harness(name)
    assert "no backend 'abacus'" in str(harness.unsupported(sample.variant(harness), "abacus"))
    assert "without a model" in str(harness.unsupported(None, "cpu"))
    only_cpu = replace(sample.variant(harness), backends=("cpu",))
    for other in set(harness.backends) - {"cpu"}:
        assert "made for cpu" in str(harness.unsupported(only_cpu, other))


# ExecuTorch's files and GenAI's configurations name their backend, the command does not.
@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("executor_runner", "llama_main", "model_benchmark")]
)
def test_every_backend_has_a_command_of_its_own(name: str) -> None:
    harness = get_harness(name)
    said = {tuple(sample.plan(name, backend).argv) for backend in harness.backends}
    assert len(said) == len(harness.backends)


@pytest.mark.parametrize("name", NAMES)
def test_an_older_plan_without_a_newer_flag_can_be_read(name: str) -> None:
    harness = get_harness(name)
    planned = replace(sample.plan(name), settings={})
    assert harness.parse(planned, sample.evidence_of(planned, "nothing of use"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("code", [0, 1, 137])
def test_an_output_of_something_else_is_a_failure(name: str, code: int) -> None:
    assert (
        sample.failure(name, "hello\nworld\n", code=code).code
        in {
            0: "run.output_unreadable",
            1: "run.failed",
            137: "run.killed",
        }[code]
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("words", ["x", "ab 1", "I a", "count=1 curr=5 ", "min =   1.0 ", "a,1,2,3,"])
def test_an_output_without_line_ends_is_answered_soon(name: str, words: str) -> None:
    # A pattern that starts over at every place of it would take hours, and the test's time is limited.
    assert sample.failure(name, words * (500_000 // len(words)))
