"""ExecuTorch's runners, litert-benchmark, benchncnn and MNN's benchmark: plans, and what outputs mean."""

from dataclasses import replace

import pytest

from farm.core.models.variant import VariantFile
from farm.core.runs.measurement import Outcome
from farm.harness.registry import get_harness
from tests.core.matrices.expansion.test_expansion_inputs import expanded, file_of
from tests.support.harness import tool_samples as sample

RUNNER, LITERT, NCNN, MNN = "executor_runner", "litert-benchmark", "benchncnn", "mnn_benchmark"


def test_the_portable_runner_and_qualcomms_have_flags_of_their_own() -> None:
    assert sample.words(RUNNER, "xnnpack", num_executions=8) == [
        "--model_path=${file_model}",
        "--num_executions=8",
        "--cpu_threads=1",
    ]
    assert sample.words(RUNNER, "qnn", iteration=9, warm_up=2) == [
        "--model_path=${file_model}",
        "--iteration=9",
        "--warm_up=2",
    ]
    assert sample.words(RUNNER, "neuropilot", num_executions=9, cpu_threads=4, warm_up=2) == [
        "--model_path=${file_model}",
        "--iteration=9",
    ]
    assert sample.words(RUNNER, "enn", num_executions=9, iteration=7, warm_up=2) == [
        "--model=${file_model}",
        "--num_executions=9",
        "--warm_up=2",
    ]


def test_mediateks_runner_is_asked_for_iterations_and_says_what_all_of_them_took() -> None:
    said = "I 00:00:01.1 executorch:mtk_executor_runner.cpp:9] 30 inference took 96.0 ms, avg 3.2 ms\n"
    found = sample.reading(RUNNER, said, backend="neuropilot", iteration=30)
    assert found.mean_ns == pytest.approx(3.2e6)
    assert (found.expected_samples, found.summed_samples) == (30, 30)


def test_samsungs_runner_of_before_it_could_repeat_says_what_one_execution_took() -> None:
    said = "I 00:00:00.3 executorch:enn_executor_runner.cpp:9] End with elapsed time(ms): 6.250000\n"
    found = sample.reading(RUNNER, said, backend="enn")
    assert (found.mean_ns, found.summed_samples) == (6.25e6, 1)


def test_a_time_of_nothing_is_told_by_what_was_said_of_it() -> None:
    row = "[ - ] a.mnn    max =    0.000 ms  min =    0.000 ms  avg =    0.000 ms\n"
    assert sample.failure(MNN, f"Invalid MNN model\n{row}").code == "variant.unreadable"
    assert sample.failure(MNN, row).code == "run.output_unreadable"


def test_the_mean_of_one_execution_is_the_total_over_their_count() -> None:
    found = sample.reading(RUNNER, sample.output("executor_runner"), backend="xnnpack", num_executions=40)
    assert found.mean_ns == pytest.approx(15.312e6)
    assert (found.expected_samples, found.summed_samples) == (40, 40)
    assert (found.actual_backend, found.accelerator) == ("xnnpack", "cpu")


def test_our_runner_also_prints_how_long_loading_took() -> None:
    loaded = "I 00:00:00.004 executorch:executor_runner.cpp:9] Model loaded in 3.250000 ms.\n"
    found = sample.reading(
        RUNNER, loaded + sample.output("executor_runner"), backend="xnnpack", num_executions=40
    )
    assert sample.metrics(found) == {"load_time": 3.25}
    plain = sample.reading(RUNNER, sample.output("executor_runner"), backend="xnnpack", num_executions=40)
    assert sample.metrics(plain) == {}


def test_sets_of_inputs_of_qualcomms_runner_are_taken_together() -> None:
    found = sample.reading(RUNNER, sample.output("qnn_runner"), backend="qnn", iteration=60)
    assert found.mean_ns == pytest.approx(2.03e6)
    assert found.summed_samples == 60


def test_an_older_runner_that_times_nothing_is_told_apart_from_another_program() -> None:
    said = sample.failure(RUNNER, "I 00:00:01.000000 executorch:runner.cpp:1] Model executed successfully.\n")
    assert "older" in said.message
    assert "older" not in sample.failure(RUNNER, "hello\n").message


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (
            "E 00:00:00.001 executorch:method.cpp:66] Backend VulkanBackend is not registered.",
            "run.backend_missing",
        ),
        (
            "E 00:00:00.001 executorch:runtime.cpp:9] Missing operator: [3] aten::foo.out",
            "variant.missing_operator",
        ),
        (
            "E 00:00:00.001 executorch:program.cpp:91] Program identifier 'ET99' != expected 'ET12'",
            "variant.too_new",
        ),
    ],
)
def test_what_a_runner_cannot_run_is_classified(said: str, code: str) -> None:
    assert sample.failure(RUNNER, stderr=said, code=134).code == code


def test_litert_prints_its_mean_and_how_many_it_is_of() -> None:
    found = sample.reading(LITERT, sample.output("litert_benchmark"))
    assert found.mean_ns == pytest.approx(6.63e6)
    assert (found.summed_samples, found.clock_step_ns) == (50, 10_000)
    assert sample.metrics(found)["p95"] == 7.01


def test_litert_says_on_what_it_may_run() -> None:
    log = "2026-03-01 10:00:00 INFO benchmark_litert_model: Accelerators:    GPU\n"
    found = sample.reading(LITERT, sample.output("litert_benchmark"), stderr=log, backend="gpu")
    assert (found.actual_backend, found.accelerator) == ("gpu", "gpu")
    both = log.replace("GPU", "GPU | CPU")
    mixed = sample.reading(LITERT, sample.output("litert_benchmark"), stderr=both, backend="gpu")
    assert mixed.accelerator == "unknown"


def test_litert_gives_the_same_by_its_result_file() -> None:
    file = (sample.OUTPUTS / "litert" / "litert_result.json").read_text()
    found = sample.reading(LITERT, f"noise\n{file}")
    assert (found.mean_ns, found.summed_samples) == (pytest.approx(6.63e6), 50)
    assert sample.metrics(found) == sample.metrics(sample.reading(LITERT, sample.output("litert_benchmark")))


def test_litert_commands_have_switches_for_backends() -> None:
    words = sample.words(LITERT, "npu", require_full_delegation=True)
    assert {"--use_npu", "--require_full_delegation"} <= set(words)
    assert words[:2] == ["--model", "${file_model}"]


def test_ncnn_takes_numbers_by_their_places_and_minus_one_for_no_gpu() -> None:
    words = ["20", "1", "0", "-1", "0", "param=${file_model}", "shape=[224,224,3]"]
    assert sample.words(NCNN) == words
    assert sample.words(NCNN, "vulkan", powersave=2)[:5] == ["20", "1", "2", "0", "0"]
    assert sample.words(NCNN, shape="[10,3]")[-1] == "shape=[10,3]"


def test_ncnn_prints_on_stderr_and_names_the_gpu() -> None:
    found = sample.reading(NCNN, stderr=sample.output("ncnn_vulkan"), backend="vulkan")
    assert found.mean_ns == pytest.approx(7.66e6)
    assert (found.summed_samples, found.accelerator) == (20, "gpu")
    assert "Xclipse 940" in found.proof


def test_ncnn_without_a_gpu_falls_back_to_the_cpu_and_the_reading_says_so() -> None:
    text = sample.output("ncnn_vulkan").replace("gpu_device = 0", "gpu_device = -1")
    found = sample.reading(NCNN, stderr=text, backend="vulkan")
    assert (found.actual_backend, found.accelerator) == ("cpu", "cpu")


def test_ncnn_of_before_own_networks_is_refused() -> None:
    line = "           squeezenet  min =   24.54  max =   25.75  avg =   25.16\n"
    assert "older" in sample.failure(NCNN, stderr=sample.output("ncnn_vulkan") + line).message


def test_ncnn_misses_a_layer() -> None:
    failure = sample.failure(NCNN, stderr="layer FooBar not exists or registered\n", code=255)
    assert (failure.code, failure.outcome) == ("variant.missing_operator", Outcome.UNSUPPORTED)


def test_mnn_runs_a_folder_that_has_this_model_alone() -> None:
    planned = sample.plan(MNN, "opencl", loop=8)
    assert planned.argv[1:] == ("${work}/models", "8", "5", "3", "1", "0")
    assert planned.file("model").path == "models/model.mnn"


def test_mnn_would_take_a_further_file_for_a_model() -> None:
    harness = get_harness(MNN)
    alone = sample.variant(harness)
    beside = VariantFile(path="words.bin", digest=alone.digest, size_bytes=1)
    assert harness.unsupported(alone, "cpu") is None
    assert "several files" in (harness.unsupported(replace(alone, files=(beside, beside)), "cpu") or "")


def test_a_matrix_sets_the_precision_in_which_mnn_computes_beside_that_of_its_files() -> None:
    axes = {"model": ("net",), "precision": ("float32",), "format": ("mnn",), "backend": ("cpu",)}
    expansion = expanded(MNN, file_of(MNN), axes={**axes, "precision_mode": (0, 2)})
    commands = [sample.plan(MNN, cell.backend, **cell.settings).argv[1:] for cell in expansion.cells]
    assert commands == [("${work}/models", "20", "5", "0", "1", mode) for mode in ("0", "2")]
    assert all("precision" not in cell.settings for cell in expansion.cells)


def test_mnn_is_read_between_the_lines_of_its_runtime() -> None:
    found = sample.reading(MNN, sample.output("mnn_interleaved"), backend="opencl")
    assert found.mean_ns == pytest.approx(9.25e6)
    assert found.summed_samples == 20
    assert (sample.metrics(found)["min"], sample.metrics(found)["max"]) == (9.012, 9.871)


def test_mnn_that_repeats_what_it_was_told_proves_nothing_of_a_gpu() -> None:
    found = sample.reading(MNN, sample.output("mnn_interleaved"), backend="opencl")
    assert (found.actual_backend, found.accelerator) == ("opencl", "unknown")
    assert "what it was told" in found.proof


def test_mnn_that_took_another_backend_instead_is_the_cpu() -> None:
    text = "Can't Find type=3 backend, use 0 instead\n" + sample.output("mnn_interleaved")
    assert sample.reading(MNN, text, backend="opencl").actual_backend == "cpu"


def test_mnn_of_2019_has_stars_and_no_blank_before_the_unit() -> None:
    text = (
        "MNN benchmark\nForward type: **CPU** thread=4** precision=2\n--------> Benchmarking... loop = 10\n"
        "[ - ] net.mnn                     max =   61.139ms  min =   40.400ms  avg =   44.489ms\n"
    )
    found = sample.reading(MNN, text)
    assert (found.mean_ns, found.summed_samples, found.accelerator) == (pytest.approx(44.489e6), 10, "cpu")


def test_mnn_with_several_models_is_refused() -> None:
    line = "[ - ] other.mnn    max =    9.871 ms  min =    9.012 ms  avg =    9.250 ms\n"
    assert "2 models" in sample.failure(MNN, sample.output("mnn_interleaved") + line).message


NCNN_ROW = "  net.ncnn.param  min =    1.20  max =    1.45  avg =    1.31\n"
#: Of our runners; the tools of ncnn and MNN print the row alone.
ITERATIONS = "".join(
    f"Iteration {at} of 4: {ms} ms\n" for at, ms in enumerate(("1.201", "1.3002", "1.45", "1.28"), 1)
)


def test_our_runner_of_ncnn_prints_each_inference() -> None:
    found = sample.reading(NCNN, stderr=ITERATIONS + NCNN_ROW, loop_count=4)
    assert found.samples_ns == (1_201_000, 1_300_200, 1_450_000, 1_280_000)
    assert (found.mean_ns, found.expected_samples, found.clock_step_ns) == (None, 4, 1)
    assert sample.metrics(found) == {"min": 1.2, "max": 1.45}


def test_without_all_inferences_of_ncnn_the_value_is_the_mean_of_its_row() -> None:
    lines = ITERATIONS.splitlines(keepends=True)
    found = sample.reading(NCNN, stderr="".join(lines[1:]) + NCNN_ROW, loop_count=4)
    assert (found.samples_ns, found.mean_ns) == ((), 1.31e6)


def test_inferences_of_ncnn_that_are_not_those_of_its_row_are_refused() -> None:
    text = ITERATIONS.replace("1.45 ms", "1.50 ms") + NCNN_ROW
    assert sample.failure(NCNN, stderr=text, loop_count=4).code == "run.output_unreadable"


MNN_ROW = "[ - ] net.mnn                     max =    1.450 ms  min =    1.201 ms  avg =    1.308 ms\n"
MNN_HEAD = "MNN benchmark\nForward type: CPU thread=1 precision=0\n--------> Benchmarking... loop = 4\n"


def test_our_runner_of_mnn_prints_each_inference() -> None:
    found = sample.reading(MNN, MNN_HEAD + ITERATIONS + MNN_ROW, loop=4)
    assert found.samples_ns == (1_201_000, 1_300_200, 1_450_000, 1_280_000)
    assert (found.mean_ns, found.expected_samples, found.accelerator) == (None, 4, "cpu")
    assert "load_time" not in sample.metrics(found)
    with_load = sample.reading(MNN, f"Model loaded in 2.500000 ms.\n{MNN_HEAD}{ITERATIONS}{MNN_ROW}", loop=4)
    assert sample.metrics(with_load)["load_time"] == 2.5


def test_inferences_of_mnn_that_are_not_those_of_its_row_are_refused() -> None:
    text = MNN_HEAD + ITERATIONS.replace("1.45 ms", "1.50 ms") + MNN_ROW
    assert sample.failure(MNN, text, loop=4).code == "run.output_unreadable"
