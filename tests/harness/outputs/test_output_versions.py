"""Outputs of further ages and through further loggers, and tools that print figures of nothing."""

import pytest

from farm.core.runs.measurement import Outcome
from farm.harness.base.tool_result import iterations_ms
from tests.support.harness import tool_samples as sample

TFLITE = [
    "count=6 first=7300 curr=7100 min=7050 max=7300 avg=7150 std=80",
    "count=64 first=7090 curr=7060 min=7020 max=7190 avg=7082.5 std=30",
    "Inference timings in us: Init: 4100, First inference: 7300, Warmup (avg): 7150, Inference (avg): 7082.5",
]
NCNN = """loop_count = 20
num_threads = 1
powersave = 0
gpu_device = -1
cooling_down = 0
{said}           net.param  min =    0.02  max =    0.03  avg =    0.02
"""
RUNNER = "I 00:00:00.0{:05} executorch:executor_runner.cpp:705] "


def test_the_end_of_2019_names_its_mean_inference() -> None:
    text = "12-01 10:00:00.123  1200  1210 I tflite  : Average inference timings in us: "
    found = sample.reading("benchmark_model", f"{text}Warmup: 9147.1, Init: 4108, Inference: 8066.25\n")
    assert found.mean_ns == pytest.approx(8_066_250)
    assert sample.metrics(found)["warmup"] == 9147.1


@pytest.mark.parametrize(
    "prefix",
    [
        "11-24 09:35:11.099: I/tflite(3388): ",
        "13:52:45.328 20824-20847 tflite                  org.example.bench          I  ",
        "13:52:45.328  I  ",
        "03-04 10:11:12.123 +0800  shell  1200  1210 I tflite  : ",
        "         1658183303.208  1200  1210 I tflite  : ",
        "INFO: [benchmark_litert_model.cc:112] ",
        "I0000 00:00:1658183303.208241    8218 benchmark_model.cc:78] ",
        "I0813 17:35:52.069112 12345 benchmark_model.cc:78] ",
        "2021-11-27 08:56:45.691915: I tensorflow/lite/tools/benchmark/benchmark_model.cc:324] ",
        "\x1b[32m",
        "\x1b[0;93m03-02 11:20:31.101  4120  4133 I tflite  : \x1b[1m",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\x1b[0m\n"])
def test_runs_are_counted_behind_every_loggers_prefix(prefix: str, end: str) -> None:
    found = sample.reading("benchmark_model", "".join(f"{prefix}{line}{end}" for line in TFLITE))
    assert (found.mean_ns, found.summed_samples) == (pytest.approx(7_082_500), 64)


def test_the_native_tool_of_litert_ends_with_a_table() -> None:
    found = sample.reading("benchmark_model", sample.output("litert_native"), backend="gpu")
    assert (found.mean_ns, found.summed_samples) == (pytest.approx(11_620_000), 87)
    assert (found.accelerator, found.clock_step_ns) == ("gpu", 10_000)
    metrics = sample.metrics(found)
    assert (metrics["load_time"], metrics["std"]) == (412.7, 0.31)


def test_the_loops_before_that_table_say_more_than_it() -> None:
    text = sample.output("litert_native") + "\n".join(TFLITE[:2]) + "\n"
    assert sample.reading("benchmark_model", text, backend="gpu").mean_ns == pytest.approx(7_082_500)


@pytest.mark.parametrize(
    ("lines", "count", "mean_ms"),
    [
        (["50 inferences took 100.5 ms, avg 2.01 ms"], 50, 2.01),
        (
            ["50 inference took 100.5 ms, avg 2.01 ms", "Total 1 inference took 100.5 ms, avg 100.5 ms"],
            50,
            2.01,
        ),
        (["50 inference took 100.5 ms, avg 2.01 ms", "1 inference took 100.5 ms, avg 100.5 ms"], 50, 2.01),
        (["1 inference took 2.0 ms, avg 2.0 ms"] * 3 + ["3 inference took 6.0 ms, avg 2.0 ms"], 3, 2.0),
        (["30 inference took 60.0 ms, avg 2.0 ms", "30 inference took 66.0 ms, avg 2.2 ms"], 60, 2.1),
    ],
    ids=["no input", "total since 2025", "total before", "sets of one", "two sets"],
)
def test_qualcomms_runner_counts_each_inference_once(lines: list[str], count: int, mean_ms: float) -> None:
    prefix = "I 00:00:00.871914 executorch:qnn_executor_runner.cpp:362] "
    text = "".join(f"{prefix}{line}\n" for line in lines)
    for printed in (text, text + text):
        found = sample.reading("executor_runner", printed, backend="qnn")
        assert (found.summed_samples, found.mean_ns) == (count, pytest.approx(mean_ms * 1e6))


OF_SET = "executorch:qnn_executor_runner.cpp:362] 30 inference took 60.0 ms, avg 2.0 ms\n"


@pytest.mark.parametrize("again", ["", "I 00:00:00.871914 {0}I 00:00:01.402117 {0}", "I ETLogging: {1}" * 2])
def test_sets_that_took_the_same_are_told_apart_by_when_they_ended(again: str) -> None:
    text = f"I 00:00:00.871914 {OF_SET}I 00:00:01.402117 {OF_SET}"
    text += again.format(OF_SET, OF_SET.partition("] ")[2])
    found = sample.reading("executor_runner", text, backend="qnn")
    assert (found.summed_samples, found.mean_ns) == (60, pytest.approx(2e6))


def test_two_sets_of_which_one_is_the_sum_of_all_others_are_two_where_the_total_says_so() -> None:
    lines = ["1 inferences took 3.0 ms, avg 3.0 ms", "1 inferences took 3.001 ms, avg 3.001 ms"]
    text = "\n".join([*lines, "Total 2 inferences took 6.001 ms, avg 3.0005 ms"])
    found = sample.reading("executor_runner", text, backend="qnn")
    assert (found.summed_samples, found.mean_ns) == (2, pytest.approx(3.0005e6))


@pytest.mark.parametrize(
    ("total", "count"), [("Total 2 inference took 120.0 ms, avg 60.0 ms\n", 60), ("", 30)]
)
def test_sets_without_the_time_they_ended_are_as_many_as_the_total_says(total: str, count: int) -> None:
    line = OF_SET.partition("] ")[2]
    assert sample.reading("executor_runner", line * 2 + total, backend="qnn").summed_samples == count


def test_executor_runners_that_tell_each_iteration_give_samples() -> None:
    lines = [RUNNER.format(at) + f"Iteration {at} of 3: {2 + at / 10} ms\n" for at in (1, 2, 3)]
    end = RUNNER.format(4) + "Model executed successfully 3 time(s) in 6.600000 ms.\n"
    found = sample.reading("executor_runner", "".join([*lines, end]), num_executions=3)
    assert found.samples_ns == (2_100_000, 2_200_000, 2_300_000)
    assert (found.mean_ns, found.expected_samples) == (None, 3)


def test_iterations_of_which_one_is_missing_leave_the_mean() -> None:
    lines = [f"Iteration {at} of 3: {2 + at / 10} ms\n" for at in (1, 3)]
    end = "Model executed successfully 3 time(s) in 6.600000 ms.\n"
    found = sample.reading("executor_runner", "".join([*lines, end]))
    assert (found.samples_ns, found.mean_ns) == ((), pytest.approx(2_200_000))
    assert iterations_ms("Iteration 1 of 2: 5 ms\nIteration 2 of 3: 5 ms\n") == []


def test_iterations_that_do_not_add_up_to_their_total_are_refused() -> None:
    text = "Iteration 1 of 1: 2.5 ms\nModel executed successfully 1 time(s) in 9.5 ms.\n"
    assert sample.failure("executor_runner", text).code == "run.output_unreadable"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("layer GridMix not exists or registered\n", "variant.missing_operator"),
        ("fopen net.param failed\nnetwork graph not ready\n", "variant.unreadable"),
        ("fopen net.param failed\n", "variant.unreadable"),
        ("find_blob_index_by_name in0 failed\n", "run.output_unreadable"),
        ("vkQueueSubmit failed -4\n", "run.backend_failed"),
    ],
)
def test_a_benchncnn_that_lost_its_network_has_timed_nothing(said: str, code: str) -> None:
    assert sample.reading("benchncnn", stderr=NCNN.format(said="")).mean_ns == pytest.approx(20_000)
    assert sample.failure("benchncnn", stderr=NCNN.format(said=said)).code == code


def test_mnn_that_finds_no_opencl_runs_on_the_cpu() -> None:
    text = "OpenCL init error , callback ... \n" + sample.output("mnn_interleaved")
    found = sample.reading("mnn_benchmark", text, backend="opencl")
    assert (found.actual_backend, found.accelerator) == ("cpu", "cpu")
    assert "OpenCL init error" in found.proof


def test_two_sessions_of_onnxruntime_are_not_one_run() -> None:
    once = sample.output("ort_newer")
    again = once.replace("time cost: 0.0402 s", "time cost: 0.0511 s").partition("Average")[0]
    assert sample.reading("onnxruntime_perf_test", once).summed_samples == 4
    assert sample.failure("onnxruntime_perf_test", once + again).code == "run.output_unreadable"


@pytest.mark.parametrize(
    ("name", "said", "code", "outcome"),
    [
        (
            "benchmark_model",
            "ERROR: Node number 57 (TfLiteHexagonDelegate) failed to invoke.",
            "run.delegate_refused",
            Outcome.UNSUPPORTED,
        ),
        (
            "benchmark_model",
            "ERROR: Regular TensorFlow ops are not supported by this interpreter. Make sure you link the"
            " Flex delegate before inference.\nERROR: Node number 3 (FlexErf) failed to prepare.",
            "variant.missing_operator",
            Outcome.UNSUPPORTED,
        ),
        (
            "benchmark_model",
            "Could not find the specified NNAPI accelerator: qti-npu. Must be one of: {nnapi-reference}.",
            "run.backend_failed",
            Outcome.UNSUPPORTED,
        ),
        (
            "litert-benchmark",
            "E litert  : [dispatch_delegate.cc:129] Failed to create a dispatch delegate kernel: No usable",
            "run.backend_failed",
            Outcome.UNSUPPORTED,
        ),
        (
            "executor_runner",
            "E 00:00:00.1 executorch:method.cpp:114] Init failed for backend VulkanBackend: 0x22",
            "run.backend_failed",
            Outcome.UNSUPPORTED,
        ),
        (
            "executor_runner",
            "E 00:00:00.1 executorch:file_data_loader.cpp:90] Failed to open net.pte: No such file",
            "variant.unreadable",
            Outcome.FAILED,
        ),
        (
            "onnxruntime_perf_test",
            "This session contains graph nodes that are assigned to the default CPU EP, but fallback to CPU"
            " EP has been explicitly disabled by the user.",
            "run.not_fully_delegated",
            Outcome.UNSUPPORTED,
        ),
        (
            "onnxruntime_perf_test",
            'Deserialize tensor w failed.open file "net.onnx.data" failed: No such file or directory',
            "variant.unreadable",
            Outcome.FAILED,
        ),
        ("onnxruntime_perf_test", "Run failed:Missing Input: mask", "variant.no_input", Outcome.FAILED),
        (
            "executor_runner",
            "QnnDsp <E> Transport layer setup failed: 14001",
            "run.backend_failed",
            Outcome.UNSUPPORTED,
        ),
    ],
)
def test_what_a_runtime_cannot_run_is_told(name: str, said: str, code: str, outcome: Outcome) -> None:
    found = sample.failure(name, stderr=f"{said}\n", code=1)
    assert (found.code, found.outcome) == (code, outcome)
    assert found.line
