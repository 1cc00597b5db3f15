"""What phones and runtimes log without being asked to, and rarer words of what they cannot run."""

import pytest

from farm.core.runs.measurement import Outcome
from farm.core.runs.placement import Accelerator, placement_text, resolve_actual_backend
from farm.harness.failures.classification import classify
from farm.harness.failures.patterns import RUNTIME_PATTERNS
from farm.harness.nnapi.placement import nnapi_placement
from farm.harness.onnxruntime.placement import ort_placement
from farm.harness.tflite.placement import tflite_placement
from tests.support.harness import run_samples
from tests.support.harness import tool_samples as sample

UNSUPPORTED, FAILED = Outcome.UNSUPPORTED, Outcome.FAILED
NNAPI_TOOK = "Replacing {} out of {} node(s) with delegate (TfLiteNnapiDelegate) node, yielding 3 partitions."
FINISHED = "ExecutionPlan::SimpleBody::finish: compilation finished successfully on "
CL_TOOK = (
    "Replacing {} out of {} node(s) with delegate (LITERT_CL) node, yielding 2 partitions for subgraph {}."
)
XNNPACK_TOOK = (
    "Replacing {} out of {} node(s) with delegate (TfLiteXNNPackDelegate) node, yielding 1 partitions"
)
QNN_TOOK = (
    "Number of partitions supported by QNN EP: 2, number of nodes in the graph: 40, "
    "number of nodes supported by QNN: 37\n"
)
QNN_SAID = "QnnLogging] QnnDsp <W> the first of many things that it has to say\n"


def _words(*lines: str) -> str | None:
    placement = tflite_placement("\n".join(lines))
    return None if placement is None else placement_text(placement)


def test_newer_androids_name_the_driver_that_took_the_nodes_of_nnapi() -> None:
    finished = f"I ExecutionPlan: {FINISHED}google-edgetpu"
    placement = tflite_placement("\n".join((NNAPI_TOOK.format(60, 64), finished, finished)))
    assert placement is not None
    assert placement_text(placement) == "npu 60/64, cpu 4"
    assert (placement.shares[0].by, placement.shares[0].partitions) == ("google-edgetpu", 3)


def test_nnapis_own_kernels_are_named_as_well() -> None:
    placement = tflite_placement(f"{NNAPI_TOOK.format(64, 64)}\n{FINISHED}nnapi-reference")
    assert placement is not None
    assert placement_text(placement) == "cpu 64/64"
    assert resolve_actual_backend(placement, "nnapi").accelerator is Accelerator.CPU


def test_a_driver_is_named_where_the_cpu_has_most_nodes() -> None:
    assert _words(NNAPI_TOOK.format(20, 64), f"{FINISHED}google-edgetpu") == "cpu 44/64, npu 20"


def test_the_drivers_of_two_processes_are_of_no_one() -> None:
    lines = [
        f"11-02 10:00:00.000  {pid}  {pid} I ExecutionPlan: {FINISHED}google-edgetpu" for pid in (71, 72)
    ]
    placement = nnapi_placement("\n".join(lines))
    assert placement is not None
    assert placement.shares == ()
    mine = nnapi_placement("\n".join(lines), pid=71)
    assert mine is not None
    assert [share.accelerator for share in mine.shares] == [Accelerator.NPU]


def test_onnx_runtimes_nnapi_is_named_by_the_phones_log() -> None:
    placement = ort_placement(
        QNN_TOOK.replace("QNN EP", "NNAPI").replace("QNN", "NNAPI") + f"{FINISHED}mtk-neuron\n"
    )
    assert placement is not None
    assert placement_text(placement) == "npu 37/40, cpu 3"


def test_what_litert_says_twice_of_its_gpu_is_counted_once() -> None:
    assert (
        _words(
            "310 operations will run on the GPU, and the remaining 2 operations will run on the CPU.",
            CL_TOOK.format(310, 312, 0),
            CL_TOOK.format(900, 900, 1),
        )
        == "gpu 1210/1212, cpu 2"
    )


def test_a_gpu_that_gets_none_of_all_operations_took_nothing() -> None:
    assert _words("No operations will run on the GPU, and all 9 operations will run on the CPU.") == "cpu 9/9"


def test_what_xnnpack_took_of_a_graph_without_a_number_is_no_total() -> None:
    assert _words(XNNPACK_TOOK.format(70, 70), CL_TOOK.format(30, 44, 0)) == "gpu 30/44, cpu 14"


def test_counts_that_are_more_than_the_whole_leave_no_count_for_the_cpu() -> None:
    placement = tflite_placement(f"{NNAPI_TOOK.format(50, 60)}\n{CL_TOOK.format(40, 60, 0)}")
    assert placement is not None
    assert placement.total_nodes is None
    assert all((share.nodes or 0) >= 0 for share in placement.shares)


@pytest.mark.parametrize(
    "said", ["Initialized OpenCL-based API.", "Initializing WebGPU-based API from graph."]
)
def test_a_gpus_api_that_was_set_up_shows_a_gpu_that_no_one_counted(said: str) -> None:
    assert _words(f"INFO: {said}") == "gpu"


def test_an_api_adds_nothing_to_what_was_counted() -> None:
    assert (
        _words(CL_TOOK.format(30, 44, 0), "Initializing OpenCL-based API from graph.") == "gpu 30/44, cpu 14"
    )


@pytest.mark.parametrize(
    "said",
    [
        "INFO: Created 0 GPU delegate kernels.",
        "ERROR: Failed to create a::b::DelegateKernelLiteRt: INVALID_ARGUMENT: no such layout",
    ],
)
def test_a_gpu_without_kernels_took_nothing(said: str) -> None:
    words = _words(CL_TOOK.format(30, 44, 0), "Initializing OpenCL-based API from graph.", said)
    assert words is not None
    assert "gpu" not in words


def test_the_last_word_on_a_gpus_kernels_counts() -> None:
    none, some = "Created 0 GPU delegate kernels.", "Created 1 GPU delegate kernels."
    assert _words(CL_TOOK.format(30, 44, 0), none, some) == "gpu 30/44, cpu 14"


def test_webgpu_in_software_is_the_cpu() -> None:
    adapter = "Selected adapter: Some Device, vendor=someone, backend=Vulkan, adapterType={}"
    took = CL_TOOK.format(31, 31, 0).replace("_CL", "_WEBGPU")
    assert _words(adapter.format("CPU / Software"), took) == "cpu 31/31"
    assert _words(adapter.format("Integrated GPU"), took) == "gpu 31/31"


def test_a_dispatch_whose_backend_did_not_start_took_nothing() -> None:
    took = CL_TOOK.format(1, 3, 0).replace("LITERT_CL", "DispatchDelegate")
    assert "npu" in (_words(took) or "")
    assert "npu" not in (_words(took, "[dispatch_api.cc:9] Failed to initialize QNN backend") or "")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("", "unknown 37/40, cpu 3"),
        ("loading libQnnHtp.so", "npu 37/40, cpu 3"),
        ("loading libQnnHtpV75Stub.so", "npu 37/40, cpu 3"),
        ("loading libQnnHtpPrepare.so", "npu 37/40, cpu 3"),
        ("loading libQnnDsp.so", "dsp 37/40, cpu 3"),
        ("backend_path: C:\\qnn\\QnnGpu.dll", "gpu 37/40, cpu 3"),
        ("loading libQnnGpu.so, then libQnnHtp.so", "unknown 37/40, cpu 3"),
    ],
)
def test_the_name_that_qnn_logs_under_is_no_hardware(said: str, words: str) -> None:
    placement = ort_placement(f"{QNN_TOOK}{QNN_SAID}{said}\n")
    assert placement is not None
    assert placement_text(placement) == words


def test_placed_nodes_of_qnn_are_of_the_library_that_was_loaded() -> None:
    lines = [
        "VerifyEachNodeIsAssignedToAnEp] Node(s) placed on [QNNExecutionProvider]. Number of nodes: 2",
        "VerifyEachNodeIsAssignedToAnEp] Node(s) placed on [CPUExecutionProvider]. Number of nodes: 3",
        "loading libQnnGpu.so",
    ]
    placement = ort_placement("\n".join(lines))
    assert placement is not None
    assert [share.accelerator for share in placement.shares] == [Accelerator.GPU, Accelerator.CPU]


def test_a_line_of_counts_may_be_wrapped_anywhere() -> None:
    placement = ort_placement(f"{QNN_TOOK}libQnnHtp.so".replace("supported by", "supported\n    by"))
    assert placement is not None
    assert placement_text(placement) == "npu 37/40, cpu 3"


@pytest.mark.parametrize(
    ("said", "expected", "outcome"),
    [
        ("x.cc ResultCode: ANEURALNETWORKS_BAD_DATA", "run.nnapi_refuses", UNSUPPORTED),
        ("Op builtin_code out of range: 190. ", "variant.missing_operator", UNSUPPORTED),
        ("[d.cc:9] Failed to initialize QNN backend", "run.backend_failed", UNSUPPORTED),
        ("QNN_COMMON_ERROR_PLATFORM_NOT_SUPPORTED: no", "run.backend_failed", UNSUPPORTED),
        ("b: error: the following arguments are required: --model", "run.bad_flags", FAILED),
        ("Some execution provider is not enabled in this build.", "run.backend_missing", UNSUPPORTED),
        ("ONNX format model is not supported in this build.", "variant.format_missing", UNSUPPORTED),
        ("The ORT format model version [4] is not supported in this build", "variant.unreadable", FAILED),
        ("The ORT format model version [7] is not supported in this build", "variant.too_new", UNSUPPORTED),
        (
            "QNN SetupBackend failed: no device\nfallback to CPU EP has been explicitly disabled",
            "run.backend_failed",
            UNSUPPORTED,
        ),
        ("what(): Failed to get a WebGPU adapter: none.", "run.backend_failed", UNSUPPORTED),
        ("what(): model_builder.cc:9 operator() count [0] is odd", "run.delegate_refused", UNSUPPORTED),
        ("create session: op_builder_helpers.cc:9 Add odd", "run.delegate_refused", UNSUPPORTED),
        (
            'filesystem error: in file_size: No such file or directory ["/data/local/tmp/a.data"]',
            "variant.unreadable",
            FAILED,
        ),
        ("what():  Invalid Feed Input Name:a", "variant.no_input", FAILED),
        ("FAIL: a.tflite: Failed to compile model", "run.delegate_refused", UNSUPPORTED),
        ("RuntimeError: Failed to create CompiledModel: 9", "run.delegate_refused", UNSUPPORTED),
        ("Failed to compile model\nout of memory", "run.out_of_memory", UNSUPPORTED),
    ],
)
def test_rarer_words_of_what_cannot_run(said: str, expected: str, outcome: Outcome) -> None:
    found = classify(run_samples.evidence(code=1, stderr=said), patterns=RUNTIME_PATTERNS)
    assert found is not None
    assert (found.code, found.outcome) == (expected, outcome)


def test_a_run_on_a_gpu_in_software_is_told_as_the_cpus() -> None:
    adapter = "Selected adapter: Some Device, vendor=someone, backend=Vulkan, adapterType=CPU / Software\n"
    took = CL_TOOK.format(31, 31, 0).replace("_CL", "_WEBGPU")
    read = sample.reading(
        "litert-benchmark", f"{adapter}{took}\nInference (avg): 12.40 ms (50 runs)\n", backend="gpu"
    )
    assert read.accelerator == Accelerator.CPU
