"""The load time of each tool, also of those that print none: by its own number, its log, or its lines."""

from dataclasses import replace

import pytest

from farm.core.base.setting_values import AdapterFlag
from farm.core.runs.evidence import Evidence, ExitRecord, PassEvidence
from farm.core.runs.measurement import Reading
from farm.core.runs.plan import RunPlan
from farm.harness.registry import get_harness, harness_names
from tests.support.harness import run_samples
from tests.support.harness import tool_samples as sample

TORCH, LLAMA, GENAI, NCNN = "speed_benchmark_torch", "llama-bench", "model_benchmark", "benchncnn"
OWN = "Model loaded in 12.500000 ms\n"
#: Of the tool as it is on phones, with what the device's shell writes before its lines.
TORCH_LINES = (
    "1795992822.750055 benchfarm_started\n1795992822.760055 WARNING: linker: unused DT entry\n"
    "1795992822.932555 Starting benchmark.\n1795992822.932755 Running warmup runs.\n"
    "1795992822.932855 Main runs.\n"
)
#: As `llama-bench --progress` prints it in 2025 and 2026.
LLAMA_LINES = (
    "1795992822.000000 benchfarm_started\n1795992822.010000 llama-bench: benchmark 1/1: starting\n"
    "1795992822.410000 llama-bench: benchmark 1/1: {}\n"
    "1795992822.450000 llama-bench: benchmark 1/1: prompt run 1/1\n"
)


def load_ms(plan: RunPlan, evidence: Evidence) -> float | None:
    found = get_harness(plan.harness).parse(plan, evidence)
    assert isinstance(found, Reading), found
    times = [metric for metric in found.metrics if metric.name == "load_time"]
    assert all(metric.unit == "ms" for metric in times)
    return times[0].value if times else None


def with_pass(evidence: Evidence, stdout: str, code: int = 0) -> Evidence:
    ended = ExitRecord(code=code, duration_s=1.0)
    return replace(evidence, passes=(PassEvidence(name="load_time", exit=ended, stdout=stdout),))


def torch_run(stderr: str = "") -> Evidence:
    stdout = run_samples.printed([900, 904], run_samples.in_microseconds(902.5))
    return run_samples.evidence(stdout, stderr=stderr)


def test_every_harness_can_have_a_load_time() -> None:
    assert [name for name in harness_names() if "load_time" not in get_harness(name).metrics] == []


@pytest.mark.parametrize("name", [TORCH, LLAMA])
def test_the_loading_of_a_tool_that_prints_no_time_is_timed_only_when_that_is_asked_for(name: str) -> None:
    harness = get_harness(name)
    assert isinstance(harness.flags["loading_time"], AdapterFlag)
    plans = [
        run_samples.plan(loading_time=asked) if name == TORCH else sample.plan(name, loading_time=asked)
        for asked in (False, True)
    ]
    assert [[each.name for each in plan.passes] for plan in plans] == [[], ["load_time"]]
    # The run itself is the same.
    assert plans[0].argv == plans[1].argv
    assert not [word for word in plans[1].passes[0].argv if "loading_time" in word]


def test_that_of_speed_benchmark_torch_is_from_its_start_to_its_first_line() -> None:
    plan = run_samples.plan(iter=2, loading_time=True)
    words = plan.passes[0].argv
    assert {"--iter=1", "--warmup=0"} <= set(words)
    assert "--report_pep=true" not in words
    assert load_ms(plan, with_pass(torch_run(), TORCH_LINES)) == 182.5
    assert load_ms(plan, with_pass(torch_run(), TORCH_LINES, code=1)) is None
    assert load_ms(plan, torch_run()) is None


def test_the_time_that_our_own_program_prints_comes_before_that() -> None:
    plan = run_samples.plan(iter=2, loading_time=True)
    assert load_ms(plan, with_pass(torch_run(OWN), TORCH_LINES)) == 12.5
    assert load_ms(run_samples.plan(iter=2), torch_run(OWN)) == 12.5


@pytest.mark.parametrize("behind", ["warmup prompt run", "prompt run 1/1", "depth run 1/1"])
def test_that_of_llama_bench_is_between_two_lines_of_its_progress(behind: str) -> None:
    plan = sample.plan(LLAMA, n_prompt=64, n_gen=16, repetitions=3, loading_time=True)
    assert plan.passes[0].argv[-1] == "--progress"
    evidence = sample.evidence_of(plan, sample.output("llama_bench"))
    told = replace(plan, settings={**plan.settings, **settings_of_output()})
    assert load_ms(told, with_pass(evidence, LLAMA_LINES.format(behind))) == 400
    assert load_ms(told, with_pass(evidence, "error: invalid parameter for argument: --progress\n")) is None


def settings_of_output() -> dict[str, int]:
    return {"n_prompt": 512, "n_gen": 128, "repetitions": 5}


def test_that_of_executor_runner_is_by_the_clock_of_its_log_where_it_prints_no_number() -> None:
    plan = sample.plan("executor_runner", "xnnpack", num_executions=1)
    # As in a public log of 2025; one of 2026 has `Model loaded in ... ms`.
    log = (
        "I 00:00:00.003987 executorch:executor_runner.cpp:166] Model file add.pte is loaded.\n"
        "I 00:00:00.004058 executorch:executor_runner.cpp:175] Using method forward\n"
        "I 00:00:00.004429 executorch:executor_runner.cpp:226] Setting up planned buffer 0, size 48.\n"
        "I 00:00:00.005262 executorch:executor_runner.cpp:251] Method loaded.\n"
        "I 00:00:00.006576 executorch:executor_runner.cpp:284] "
        "Model executed successfully 1 time(s) in 0.691078 ms.\n"
    )
    assert load_ms(plan, sample.evidence_of(plan, log)) == pytest.approx(5.262)
    newer = log.replace("Method loaded.", "Model loaded in 4463.268273 ms.")
    assert load_ms(plan, sample.evidence_of(plan, newer)) == 4463.268273


def test_that_of_genai_is_what_our_program_prints_of_a_new_process() -> None:
    logs = sample.OUTPUTS / "onnxruntime_genai"
    cold = sample.plan(GENAI, regime="cold", prompt_length=512, generation_length=6)
    text = (logs / f"{GENAI}_cold.log").read_text()
    assert load_ms(cold, sample.evidence_of(cold, OWN + text)) == 12.5
    assert load_ms(cold, sample.evidence_of(cold, text)) is None
    warm = sample.plan(GENAI, prompt="w5 w6 w77", generation_length=6, repetitions=3)
    text = (logs / f"{GENAI}_warm.log").read_text()
    assert load_ms(warm, sample.evidence_of(warm, OWN + text)) is None


def test_that_of_ncnn_is_what_our_runner_prints() -> None:
    plan = sample.plan(NCNN, loop_count=4)
    row = (
        "loop_count = 4\ngpu_device = -1\n"
        "             net.param  min =    1.00  max =    1.20  avg =    1.10\n"
    )
    assert load_ms(plan, sample.evidence_of(plan, OWN + row)) == 12.5
    assert load_ms(plan, sample.evidence_of(plan, row)) is None
