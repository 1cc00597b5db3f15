"""Outputs with a number that is not the run's: cut off, of two runs, of another column, of a run killed."""

from dataclasses import replace

import pytest

from farm.core.errors import Blame
from farm.core.runs.measurement import Reading, RunFailure
from farm.harness.registry import get_harness
from tests.support.harness import tool_samples as sample

TFLITE = """count=3 first=9000 curr=8800 min=8800 max=9000 avg=8900 std=100

Running benchmark for at least 50 iterations and at least 1 seconds but terminate if exceeding 150 seconds.
{loop}

Inference timings in us: Init: 4100, First inference: 9000, Warmup (avg): 8900, Inference (avg): {mean}
"""
LOOP = "count=60 first=8700 curr=8650 min=8600 max=8800 avg=8675.25 std=30"
ORT_NEWEST = """Session creation time cost: 0.041 s
First inference time cost: 9 ms
Total inference time cost: 0.0164 s
Total inference requests: 2
Average inference time cost total: 8.200000 ms
net,0.0011,0.0081,171122432,11,0
net,0.0012,0.0083,171122432,11,1
"""


def test_a_mean_that_the_loop_before_it_does_not_bear_out_is_refused() -> None:
    assert sample.reading("benchmark_model", TFLITE.format(loop=LOOP, mean="8675.25")).mean_ns == 8_675_250
    cut = sample.failure("benchmark_model", TFLITE.format(loop=LOOP, mean="867"))
    assert cut.code == "run.output_unreadable"


@pytest.mark.parametrize("asked", [50, 61])
def test_runs_that_all_took_the_same_are_counted(asked: int) -> None:
    text = TFLITE.format(loop="count=60 curr=8675(all same)", mean="8675")
    found = sample.reading("benchmark_model", text, num_runs=asked)
    assert (found.summed_samples, found.expected_samples) == (60, asked)


def test_a_warm_up_of_no_run_is_not_mistaken_for_the_main_loop() -> None:
    _, _, rest = TFLITE.format(loop=LOOP, mean="8675.25").partition("\n")
    assert sample.reading("benchmark_model", f"count=0\n{rest}").summed_samples == 60


def test_a_line_that_the_limit_of_output_cut_is_not_read() -> None:
    planned = sample.plan("onnxruntime_perf_test")
    whole = sample.evidence_of(planned, "Total inference requests: 9\nAverage inference time cost: 18.5")
    adapter = get_harness("onnxruntime_perf_test")
    assert isinstance(adapter.parse(planned, whole), Reading)
    assert isinstance(adapter.parse(planned, replace(whole, stdout_dropped_bytes=3)), RunFailure)


def test_the_newest_perf_test_has_a_column_of_what_handing_over_took_which_is_no_inference() -> None:
    found = sample.reading("onnxruntime_perf_test", ORT_NEWEST, repeated_times=2)
    assert found.samples_ns == (8_100_000, 8_300_000)
    alone = sample.reading("onnxruntime_perf_test", ORT_NEWEST.partition("net,")[0], repeated_times=2)
    assert alone.mean_ns == pytest.approx(8.2e6)


@pytest.mark.parametrize(
    ("name", "line", "other"),
    [
        (
            "executor_runner",
            "Model executed successfully 50 time(s) in 100.5 ms.",
            "Model executed successfully 50 time(s) in 300.5 ms.",
        ),
        ("litert-benchmark", "Inference (avg):   3.10 ms (50 runs)", "Inference (avg):   9.10 ms (50 runs)"),
    ],
)
def test_two_runs_in_one_output_are_not_averaged(name: str, line: str, other: str) -> None:
    once = sample.reading(name, f"{line}\n{line}\n")
    assert once.summed_samples == 50
    assert sample.failure(name, f"{line}\n{other}\n").code == "run.output_unreadable"


@pytest.mark.parametrize("mean", ["25", "25.", "25.1"])
def test_ncnn_prints_two_decimals_so_a_mean_with_fewer_was_cut(mean: str) -> None:
    text = f"loop_count = 20\nnet  min =   24.54  max =   25.75  avg =   {mean}"
    assert sample.failure("benchncnn", text).code == "run.output_unreadable"


MNN_ON_OPENCL = """Forward type: OpenCL thread=4 precision=2
--------> Benchmarking... loop = 20, warmup = 5
{said}
[ - ] model.mnn    max =    0.371 ms  min =    0.112 ms  avg =    0.150 ms
"""


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("Build program failed, err:-11 !", "run.backend_failed"),
        ("CL ERROR CODE : -45, info:getKernel", "run.backend_failed"),
        ("CL ERROR CODE : -36", "run.backend_failed"),
        # Of 2020.
        ("ERROR CODE : -54 ", "run.backend_failed"),
        ("CL ERROR CODE : -4, info:clCreateBuffer", "run.out_of_memory"),
    ],
)
def test_mnn_that_lost_a_kernel_goes_on_and_times_nothing(said: str, code: str) -> None:
    text = MNN_ON_OPENCL.format(said=said)
    assert sample.failure("mnn_benchmark", text, backend="opencl").code == code


def test_mnn_that_tries_sizes_of_work_groups_has_lost_none_of_its_work() -> None:
    said = (
        "CL ERROR CODE : -54, info:conv_2d_1x1\nlws tune res conv_2d_1x1\nCL ERROR CODE : -58, info:clEvent"
    )
    found = sample.reading("mnn_benchmark", MNN_ON_OPENCL.format(said=said), backend="opencl")
    assert found.mean_ns == 150_000


def test_mnn_without_a_platform_is_timed_on_the_cpu() -> None:
    said = "CL ERROR CODE : -1001, info:getPlatform\nCan't Find type=3 backend, use 0 instead"
    found = sample.reading("mnn_benchmark", MNN_ON_OPENCL.format(said=said), backend="opencl")
    assert (found.actual_backend, found.accelerator, found.mean_ns) == ("cpu", "cpu", 150_000)


@pytest.mark.parametrize(
    "said", ["vkCreateComputePipelines failed -1000012000", "vkAllocateMemory failed -2"]
)
def test_ncnn_whose_gpu_fails_anywhere_gives_no_number(said: str) -> None:
    text = f"gpu_device = 0\n{said}\nnet  min =    0.12  max =    0.20  avg =    0.15\n"
    assert sample.failure("benchncnn", text, backend="vulkan").outcome.value == "unsupported"


def test_ncnn_that_is_refused_what_it_only_asked_for_goes_on_without() -> None:
    said = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR failed -3"
    times = "net  min =    0.12  max =    0.20  avg =    0.15"
    text = f"[0 Mali-G57]  queueC=0[2]\ngpu_device = 0\n{said}\n{times}\n"
    assert sample.reading("benchncnn", text, backend="vulkan").mean_ns == 150_000


def test_mnn_without_a_runtime_for_what_it_was_told_is_the_cpu() -> None:
    text = "Create Runtime Failed because no creator for 3\n" + sample.output("mnn_interleaved")
    assert sample.reading("mnn_benchmark", text, backend="opencl").actual_backend == "cpu"


@pytest.mark.parametrize(
    "said", ["open /sys/class/kgsl: Permission denied", "INFO: Can not open OpenCL library on this device"]
)
def test_what_programs_say_and_go_on_does_not_hide_what_ended_them(said: str) -> None:
    killed = sample.failure("benchmark_model", stderr=f"{said}\nKilled\n", code=137)
    assert (killed.code, killed.blame) == ("run.killed", Blame.DEVICE)
    assert sample.failure("benchmark_model", stderr=f"{said}\n", code=139).code == "run.crashed"
    refused = sample.failure(
        "benchmark_model", stderr=f"{said}\nERROR: Failed to apply GPU delegate.\n", code=1
    )
    assert refused.code == "run.delegate_refused"
    assert sample.failure("benchmark_model", stderr=f"{said}\n", code=1).code not in (
        "run.failed",
        "run.delegate_refused",
    )


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("Model provided is schema version 9 not equal to supported version 3.", "variant.too_new"),
        ("[ERROR] [Qnn ExecuTorch]: Failed to create device_handle for Backend ID 6", "run.backend_failed"),
        ('dlopen failed: library "libQnnHtp.so" not found', "run.backend_failed"),
    ],
)
def test_newer_words_for_what_cannot_run_are_known(said: str, code: str) -> None:
    assert sample.failure("executor_runner", stderr=said, code=1).code == code
