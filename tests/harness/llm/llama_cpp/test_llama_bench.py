"""llama.cpp's llama-bench: the command line, and what its records mean."""

import json
from dataclasses import replace
from typing import Any

import pytest

from farm.core.runs.derived.generation import Regime
from farm.core.runs.measurement import Outcome, Quality, RunFailure
from farm.core.runs.quality import assess_quality
from farm.core.runs.stats import summarize_samples
from farm.harness.base.adapter import ClockScope
from farm.harness.registry import get_harness, harness_names
from tests.support.harness import tool_samples as sample

NAME = "llama-bench"
#: What the tool printed here, of a model of random weights, and the same with a GPU in its fields.
REAL = sample.output("llama_bench")
PROMPT, GENERATION = REAL.splitlines()


def changed(line: str, **fields: Any) -> str:
    """A record with other fields; a field of None is not in it."""
    found = {**json.loads(line), **fields}
    return json.dumps({name: value for name, value in found.items() if value is not None})


def refusal(stdout: str, **settings: Any) -> str:
    failed = sample.failure(NAME, stdout, **settings)
    assert failed.code == "run.output_unreadable"
    return failed.message


def test_the_command_has_the_letters_that_every_version_has() -> None:
    assert sample.words(NAME) == [
        *("-m", "${file_model}", "-o", "jsonl", "-r", "5", "-p", "512", "-n", "128", "-t", "1"),
        *("-ngl", "0", "-dev", "none"),
    ]
    assert not sample.plan(NAME).passes


def test_settings_that_differ_from_the_tools_defaults_are_passed() -> None:
    words = sample.words(
        NAME,
        "vulkan",
        n_depth=256,
        batch_size=64,
        ubatch_size=32,
        cache_type_k="q8_0",
        cache_type_v="q4_0",
        flash_attn="on",
        n_gpu_layers=20,
        device="Vulkan1",
        delay=2,
    )
    behind = words[words.index("-ngl") :]
    assert behind == [
        *("-ngl", "20", "-dev", "Vulkan1", "-d", "256", "-b", "64", "-ub", "32", "-ctk", "q8_0"),
        *("-ctv", "q4_0", "-fa", "on", "--delay", "2"),
    ]


def test_a_cold_run_is_one_repetition_of_one_test_without_warm_up() -> None:
    words = sample.words(NAME, regime="cold", repetitions=9)
    assert words[4:12] == ["-r", "1", "-p", "0", "-n", "0", "-pg", "512,128"]
    assert words[-1] == "--no-warmup"
    alone = sample.words(NAME, regime="cold", n_prompt=0)
    assert alone[4:10] == ["-r", "1", "-p", "0", "-n", "128"]
    [one] = json.loads(GENERATION)["samples_ns"][:1]
    whole = changed(GENERATION, samples_ns=[one], avg_ns=one, n_prompt=512)
    found = sample.reading(NAME, f"{whole}\n", regime="cold")
    assert (found.samples_ns, found.expected_samples, found.metrics) == ((one,), 1, ())
    assert found.generation is not None
    assert found.generation.regime is Regime.COLD
    assert "pp512 is in it" in refusal(PROMPT, regime="cold")


def test_a_run_from_before_there_were_regimes_has_none() -> None:
    planned = sample.plan(NAME)
    before = replace(planned, settings={k: v for k, v in planned.settings.items() if k != "regime"})
    found = sample.get_harness(NAME).parse(before, sample.evidence_of(before, REAL))
    assert not isinstance(found, RunFailure)
    assert found.generation is None


def test_the_regime_is_kept_with_a_warm_run() -> None:
    found = sample.reading(NAME, REAL, regime="warm")
    assert found.generation is not None
    assert (found.generation.regime, found.generation.text_sha256) == (Regime.WARM, None)
    # The farm did not look: that is not the same as none.
    assert found.generation.caches_before is None
    assert found.wrong_output == ""


def test_one_test_of_prompt_and_generation_runs_no_other() -> None:
    words = sample.words(NAME, together=True, n_prompt=64, n_gen=16)
    assert words[words.index("-p") : words.index("-t")] == ["-p", "0", "-n", "0", "-pg", "64,16"]
    line = changed(PROMPT, n_prompt=64, n_gen=16)
    found = sample.reading(NAME, line, together=True, n_prompt=64, n_gen=16)
    assert found.samples_ns == tuple(json.loads(PROMPT)["samples_ns"])
    assert sample.metrics(found) == {}


@pytest.mark.parametrize(
    ("backend", "device"), [("opencl", "GPUOpenCL"), ("vulkan", "Vulkan0"), ("hexagon", "HTP0")]
)
def test_an_accelerator_is_asked_in_a_short_pass_where_the_layers_are(backend: str, device: str) -> None:
    plan = sample.plan(NAME, backend, n_depth=512, repetitions=50)
    assert list(plan.argv[-6:]) == ["-ngl", "99", "-dev", device, "-d", "512"]
    [probe] = plan.passes
    assert list(probe.argv[1:]) == [
        *("-m", "${file_model}", "-o", "jsonl", "-r", "1", "-p", "1", "-n", "0", "-t", "1"),
        *("-ngl", "99", "-dev", device, "-v"),
    ]


def test_the_repetitions_of_the_generation_are_the_samples_and_the_rates_are_the_tools_own() -> None:
    found = sample.reading(NAME, REAL)
    assert found.samples_ns == (98282891, 99418114, 97964270, 98992324, 98151818)
    assert (found.expected_samples, found.mean_ns) == (5, None)
    assert (found.actual_backend, found.accelerator) == ("cpu", "cpu")
    assert '"backends": "CPU"' in found.proof
    assert sample.metrics(found) == {
        "prefill_rate": pytest.approx(2137.143284, rel=1e-6),
        "decode_rate": pytest.approx(1298.717056, rel=1e-6),
        "prefill_time": pytest.approx(239.576091, rel=1e-6),
    }
    assert {metric.name: (metric.unit, metric.better.value) for metric in found.metrics} == {
        "prefill_rate": ("tokens/s", "higher"),
        "decode_rate": ("tokens/s", "higher"),
        "prefill_time": ("ms", "lower"),
    }


def test_a_prompt_alone_is_the_value_where_nothing_is_generated() -> None:
    found = sample.reading(NAME, PROMPT, n_gen=0)
    assert found.samples_ns == tuple(json.loads(PROMPT)["samples_ns"])
    assert sample.metrics(found).keys() == {"prefill_rate", "prefill_time"}
    assert sample.metrics(sample.reading(NAME, GENERATION, n_prompt=0)).keys() == {"decode_rate"}


def test_fewer_repetitions_than_were_asked_for_are_incomplete() -> None:
    planned = sample.plan(NAME, repetitions=9)
    found = sample.reading(NAME, REAL, repetitions=9)
    judged = assess_quality(
        found,
        summarize_samples(found),
        requested_backend="cpu",
        evidence=sample.evidence_of(planned, REAL),
        gates=planned.gates,
        noise_limit=0.25,
    )
    assert judged.quality is Quality.SHORT


@pytest.mark.parametrize(
    ("stdout", "settings", "said"),
    [
        (REAL, {"n_gen": 64}, "pp512, tg128 is in it, and pp512, tg64 was asked for"),
        (REAL, {"n_prompt": 256}, "pp512, tg128 is in it, and pp256, tg128 was asked for"),
        (REAL, {"n_depth": 512}, "and pp512 @ d512, tg128 @ d512 was asked for"),
        (REAL, {"together": True}, "and pp512+tg128 was asked for"),
        (REAL, {"threads": 4}, "it ran with n_threads 1, and 4 was asked for"),
        (REAL, {"cache_type_k": "q8_0"}, "it ran with type_k f16, and q8_0 was asked for"),
        (REAL, {"n_prompt": 0, "n_gen": 0}, "nothing was to be measured"),
        (PROMPT, {}, "pp512 is in it, and pp512, tg128 was asked for"),
        (REAL + REAL, {}, "pp512, tg128, pp512, tg128 is in it"),
        ("[\n", {}, "no test is in it"),
    ],
)
def test_other_work_than_was_asked_for_is_no_measurement(
    stdout: str, settings: dict[str, Any], said: str
) -> None:
    assert said in refusal(stdout, **settings)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"avg_ns": 98_000_000}, "the mean of tg128 is 9.8e+07 ns, and that of its 5 repetitions"),
        ({"avg_ns": None}, "tg128 has no mean"),
        ({"avg_ns": 10**400}, "tg128 has no mean"),
        ({"avg_ns": float("nan")}, "tg128 has no mean"),
        ({"samples_ns": None}, "no times of repetitions"),
        ({"samples_ns": []}, "no times of repetitions"),
        ({"samples_ns": [0]}, "took no time"),
        ({"samples_ns": [-5]}, "took no time"),
        ({"samples_ns": [10**16]}, "too long"),
        ({"samples_ns": [1.5]}, "took no time"),
        ({"samples_ns": [True]}, "took no time"),
        ({"n_gen": -128}, "n_gen of a record is no number of tokens"),
        ({"n_gen": "128"}, "n_gen of a record is no number of tokens"),
        ({"n_prompt": None}, "n_prompt of a record is no number of tokens"),
        ({"n_depth": 10**12}, "n_depth of a record is no number of tokens"),
    ],
)
def test_a_record_that_no_tool_writes_is_refused(fields: dict[str, Any], said: str) -> None:
    assert said in refusal(f"{PROMPT}\n{changed(GENERATION, **fields)}\n")


@pytest.mark.parametrize("line", [GENERATION[:-40], '{"build_commit": ' + "[" * 100_000])
def test_a_record_that_is_not_whole_is_refused(line: str) -> None:
    assert "a record is not whole" in refusal(f"{PROMPT}\n{line}\n")


def test_a_record_of_many_repetitions_is_one_long_line() -> None:
    samples = [98_000_000 + number for number in range(20_000)]
    line = changed(GENERATION, samples_ns=samples, avg_ns=round(sum(samples) / len(samples)))
    assert sample.reading(NAME, f"{PROMPT}\n{line}\n", repetitions=20_000).samples_ns == tuple(samples)


def test_a_version_before_depth_and_devices_is_read() -> None:
    older = "\n".join(changed(line, n_depth=None, devices=None) for line in (PROMPT, GENERATION))
    assert sample.reading(NAME, older).samples_ns == sample.reading(NAME, REAL).samples_ns


@pytest.mark.parametrize(
    ("stderr", "code", "outcome"),
    [
        ("llama_bench: error: failed to load model '/x/model'", "variant.unreadable", Outcome.FAILED),
        (
            "llama_bench: error: failed to create context with model '/x/model'",
            "variant.unreadable",
            Outcome.FAILED,
        ),
        (
            "error: invalid device: Vulkan0\nerror: invalid parameter for argument: -dev",
            "run.backend_failed",
            Outcome.UNSUPPORTED,
        ),
    ],
)
def test_what_the_tool_ends_with_is_understood(stderr: str, code: str, outcome: Outcome) -> None:
    found = sample.failure(NAME, "[\n", stderr=stderr, code=1)
    assert (found.code, found.outcome) == (code, outcome)


def test_an_option_that_an_older_version_does_not_know_is_the_commands_fault() -> None:
    found = sample.failure(NAME, stderr="error: invalid parameter for argument: -dev", code=1)
    assert found.code == "run.bad_flags"


def test_lines_of_its_log_between_the_records_change_nothing() -> None:
    noisy = f"load_tensors: x\n{PROMPT}\nset_n_threads: n_threads = 1\n{GENERATION}\n"
    assert sample.reading(NAME, noisy).samples_ns == sample.reading(NAME, REAL).samples_ns


def test_the_last_line_of_an_output_that_was_cut_is_not_read() -> None:
    planned = sample.plan(NAME)
    cut = replace(sample.evidence_of(planned, REAL.rstrip("\n")), stdout_dropped_bytes=1)
    assert isinstance(get_harness(NAME).parse(planned, cut), RunFailure)


def test_its_times_are_not_those_of_one_inference() -> None:
    scopes = {name: get_harness(name).clock_scope for name in harness_names()}
    of_tokens = [name for name, scope in scopes.items() if scope is scopes[NAME]]
    assert of_tokens == ["litert_lm_advanced_main", NAME, "llama_main", "llm_bench"]
    # A token is no generation.
    assert scopes["model_benchmark"] is ClockScope.DECODING_STEP
