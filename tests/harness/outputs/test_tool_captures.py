"""What tools printed on phones, read by the adapters; the facts are those that the captures' index has."""

import pytest

from farm.core.runs.measurement import Reading, RunFailure
from farm.harness.engines.mnn import mnn_output
from farm.harness.engines.ncnn import ncnn_output
from farm.harness.executorch.executor_runner import SUCCESS
from farm.harness.executorch.placement import inspector_table_rows
from farm.harness.registry import get_harness, harness_names
from farm.harness.tflite.output import operator_times, tflite_output
from tests.support.harness import tool_samples as sample

TFLITE = "benchmark_model/"
OTHER = "other-tools/"


@pytest.mark.parametrize(
    ("name", "mean_us", "count", "further"),
    [
        (
            "benchmark_apk_logcat_brief_xnnpack_539_of_548",
            145528,
            25,
            {"load_time": 92318, "p95": 187533, "memory_overall": 73.4102},
        ),
        ("benchmark_model_2.2_cpu_linker_warning_sci_avg", 1.01013e6, 50, {"warmup": 1289876}),
        (
            "benchmark_model_2019_avg_inference_timings_full",
            66767.6,
            15,
            {"warmup": 76605.9, "load_time": 9933},
        ),
        ("benchmark_model_2020_gpu_opencl_full_delegation", 119375, 50, {"first": 130565}),
        ("litert_benchmark_model_int4_24_runs_termux", 42394.8, 24, {"median": 42419}),
        (
            "litert_benchmark_model_xnnpack_1000_runs_termux",
            63743.2,
            1000,
            {"p5": 49620, "median": 51891, "p95": 68628, "memory_overall": 55.4961},
        ),
        (
            "tflite_2.20_benchmark_model_cpu_am62",
            1.24027e6,
            50,
            {"median": 1239807, "memory_overall": 109.832},
        ),
        ("tflite_2.20_benchmark_model_xnnpack_am62", 899641, 50, {}),
    ],
)
def test_benchmark_model_is_read_at_every_age(
    name: str, mean_us: float, count: int, further: dict[str, float]
) -> None:
    found = sample.reading("benchmark_model", sample.captured(f"{TFLITE}{name}.txt"), num_runs=5)
    assert found.mean_ns == pytest.approx(mean_us * 1e3)
    assert found.summed_samples == count
    told = sample.metrics(found)
    assert {key: told[key] for key in further} == further


@pytest.mark.parametrize(
    ("name", "backend", "accelerator"),
    [
        ("benchmark_model_2020_gpu_opencl_full_delegation", "gpu", "gpu"),
        ("tflite_2.20_benchmark_model_xnnpack_am62", "xnnpack", "cpu"),
        ("tflite_2.20_benchmark_model_cpu_am62", "cpu", "cpu"),
        ("litert_benchmark_model_xnnpack_1000_runs_termux", "xnnpack", "cpu"),
    ],
)
def test_benchmark_model_shows_where_it_ran(name: str, backend: str, accelerator: str) -> None:
    text = sample.captured(f"{TFLITE}{name}.txt")
    found = sample.reading("benchmark_model", text, backend=backend)
    assert (found.actual_backend, found.accelerator) == (backend, accelerator)


@pytest.mark.parametrize(
    ("name", "warmup_us"),
    [
        (f"{TFLITE}benchmark_model_hexagon_not_created_cpu_fallback.txt", 83420.5),
        (f"{TFLITE}benchmark_model_2019_avg_inference_timings_nnapi_lib_missing.txt", 37625.7),
        ("ios/tflite_ios_benchmark_app_fp32_cpu.txt", 191261),
    ],
)
def test_a_capture_that_ends_in_the_warm_up_has_that_and_no_result(name: str, warmup_us: float) -> None:
    found = tflite_output(sample.captured(name))
    assert (found.mean_us, found.warmup_us) == (None, warmup_us)


def test_operators_of_a_profile_are_those_of_the_runs() -> None:
    text = sample.captured(f"{TFLITE}benchmark_model_2.4_nnapi_qtigpu_opprofile_mi11.txt")
    assert [(each.operator, each.count, each.ms) for each in operator_times(text)] == [
        ("TfLiteNnapiDelegate", 3, 149.483),
        ("STRIDED_SLICE", 6, 8.347),
        ("RESIZE_NEAREST_NEIGHBOR", 2, 0.879),
    ]


@pytest.mark.parametrize(
    ("name", "mean_ms", "count", "p99_ms"),
    [
        ("ort_perf_test_arm_neoverse_cpu_100", 1.85739, 100, 1.90312),
        ("ort_perf_test_old_format_1000_iterations", 58.8053, 1000, 61.9517),
        ("ort_perf_test_spacemit_k1_ep_yolov8n", 82.3382, 10, 83.8817),
        ("ort_perf_test_ti_acl_ep_mobilenetv3", 17.735, 8, 23.2702),
    ],
)
def test_onnxruntime_averages_in_ms_and_percentiles_in_s(
    name: str, mean_ms: float, count: int, p99_ms: float
) -> None:
    found = sample.reading("onnxruntime_perf_test", sample.captured(f"{OTHER}{name}.txt"))
    assert found.mean_ns == pytest.approx(mean_ms * 1e6)
    assert found.summed_samples == count
    assert sample.metrics(found)["p99"] == pytest.approx(p99_ms)


def test_two_runs_of_onnxruntime_are_each_read_alone() -> None:
    text = sample.captured(f"{OTHER}ort_perf_test_android_acl_ep_squeezenet.txt")
    acl, cpu = text.split("\n# ")
    assert sample.reading("onnxruntime_perf_test", acl, backend="acl").mean_ns == pytest.approx(144.871e6)
    assert sample.metrics(sample.reading("onnxruntime_perf_test", acl))["cpu"] == 68
    # It was cut before its average: the total and the count give it.
    assert sample.reading("onnxruntime_perf_test", cpu).mean_ns == pytest.approx(84.3236e6)


def test_ncnn_prints_a_line_for_each_network_and_names_the_gpu() -> None:
    found = ncnn_output(sample.captured(f"{OTHER}benchncnn_kirin970_vulkan_malig72.txt"))
    mean_by_name = {network.name: network.mean_ms for network in found.networks}
    assert (len(found.networks), mean_by_name["squeezenet"], mean_by_name["vgg16"]) == (20, 25.16, 739.99)
    assert (found.settings["loop_count"], found.device_by_number[0]) == (4, "Mali-G72")


@pytest.mark.parametrize(
    ("name", "mean_ms", "loop", "forward"),
    [
        ("mnn_benchmark_2019-2_huawei_p10_cpu", 24.489, 10, "CPU"),
        ("mnn_benchmark_2019-2_huawei_p10_vulkan", 46.321, 10, "Vulkan"),
        ("mnn_benchmark_2020-3_mate30pro_kirin990", 5.192, 50, "CPU"),
    ],
)
def test_mnn_prints_a_line_for_each_model_between_others(
    name: str, mean_ms: float, loop: int, forward: str
) -> None:
    found = mnn_output(sample.captured(f"{OTHER}{name}.txt"))
    mean_by_name = {model.name: model.mean_ms for model in found.models}
    assert mean_by_name["MobileNetV2_224.mnn"] == mean_ms
    assert (found.loop, found.forward) == (loop, forward)


def test_executorch_times_its_executions() -> None:
    text = sample.captured(f"{OTHER}executorch_executor_runner_xnnpack_mv2.txt")
    found = sample.reading("executor_runner", text, backend="xnnpack", num_executions=1)
    assert (found.mean_ns, found.summed_samples) == (pytest.approx(15.013292e6), 1)


@pytest.mark.parametrize(
    "name",
    [
        f"{OTHER}executorch_qnn_executor_runner_x86_emulator.txt",
        "ios/executorch_mps_executor_runner_macos.txt",
    ],
)
def test_executorchs_older_runners_say_only_that_it_went_well(name: str) -> None:
    text = sample.captured(name)
    assert SUCCESS in text
    assert "older" in sample.failure("executor_runner", text, backend="qnn").message


def test_executorchs_inspector_has_a_row_for_each_event() -> None:
    rows = inspector_table_rows(sample.captured(f"{OTHER}executorch_inspector_table.txt"))
    by_event = {row.event: row for row in rows}
    assert len(rows) == 5
    assert not by_event["native_call_convolution.out"].delegated


@pytest.mark.parametrize("path", sorted(sample.CAPTURES.glob("**/*.*")), ids=lambda path: path.name)
def test_every_capture_is_answered_by_every_adapter(path: object) -> None:
    text = sample.captured(str(path))
    for name in harness_names():
        if name != "speed_benchmark_torch":
            for code in (0, 1):
                planned = sample.plan(name)
                found = get_harness(name).parse(planned, sample.evidence_of(planned, text, code=code))
                assert isinstance(found, Reading | RunFailure)
