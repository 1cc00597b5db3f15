"""What TensorFlow Lite, LiteRT and ONNX Runtime say of runs that they do not do, in further words."""

import pytest

from tests.support.harness import tool_samples as sample


@pytest.mark.parametrize(
    ("name", "said", "code"),
    [
        (
            "benchmark_model",
            "ERROR: [litert_dispatch.cc:9] Unsupported dispatch runtime version, found version 0.3.0",
            "run.backend_failed",
        ),
        (
            "benchmark_model",
            'ERROR: Failed to load library ./libneuron.so: dlopen failed: library "libneuron.so" not found',
            "run.backend_failed",
        ),
        (
            "benchmark_model",
            "ERROR: [Qnn Delegate] Failed to identify soc 999\nERROR: Failed to apply EXTERNAL delegate.",
            "run.backend_failed",
        ),
        (
            "onnxruntime_perf_test",
            "model_builder.cc:9 GetTargetDevices The model cannot run using the current set of target"
            " devices, [Name: [driver], Type [4]]",
            "run.nnapi_refuses",
        ),
        (
            "onnxruntime_perf_test",
            "Node 'Conv' OpType:Conv with domain:com.ms.internal.nhwc was inserted using the NHWC format as"
            " requested by QNNExecutionProvider, but was not selected by that EP.",
            "run.delegate_refused",
        ),
        (
            "onnxruntime_perf_test",
            "Exception during initialization: op_builder_helpers.cc:9 AddNnapiSplit count [0] does not",
            "run.delegate_refused",
        ),
        (
            "onnxruntime_perf_test",
            "[E:onnxruntime:, qnn_model.cc:9 FinalizeGraphs] Failed to finalize QNN graph. Error code: 1002",
            "run.delegate_refused",
        ),
        (
            "onnxruntime_perf_test",
            "Non-zero status code returned while running QNN_7_0 node. Name:'QNN_7_0' Status Message: 6031",
            "run.delegate_refused",
        ),
        (
            "onnxruntime_perf_test",
            "Non-zero status code returned while running Reshape node. Name:'r' Status Message: shapes",
            "variant.node_refused",
        ),
        (
            "onnxruntime_perf_test",
            "Non-zero status code returned while running Conv node. Name:'c' Status Message: bfc_arena.cc:9"
            " Failed to allocate memory for requested buffer of size 90",
            "run.out_of_memory",
        ),
        (
            "onnxruntime_perf_test",
            "[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model. Type Error",
            "variant.unreadable",
        ),
        ("onnxruntime_perf_test", "Run failed:Invalid rank for input: x Got: 3", "variant.no_input"),
        (
            "onnxruntime_perf_test",
            "Failed to create device. Error: QNN_DEVICE_ERROR_INVALID_CONFIG",
            "run.backend_failed",
        ),
        (
            "onnxruntime_perf_test",
            "This backend is not included in perf test runner.",
            "run.backend_missing",
        ),
    ],
)
def test_further_words_for_what_a_runtime_cannot_run_are_told(name: str, said: str, code: str) -> None:
    found = sample.failure(name, stderr=f"{said}\nBenchmarking failed.\n", code=1)
    assert (found.code, found.line is not None) == (code, True)


def test_what_a_builder_tells_at_length_of_what_it_does_is_no_failure() -> None:
    said = "V   [V:onnxruntime:ort-java, model_builder.cc:9 AddNewOperand] operand name: exception: x\n"
    killed = sample.failure("onnxruntime_perf_test", stderr=f"{said}Killed\n", code=137)
    assert killed.code == "run.killed"


def test_a_flag_with_a_value_that_is_none_is_told_before_the_list_of_all_flags() -> None:
    said = (
        "ERROR: Failed to parse flag 'num_runs' against argv '--num_runs=many'\n"
        "usage: ./benchmark_model <flags>\nFlags:\n\t--input_layer_shape=\tstring\toptional\tshapes;"
        " must match the number of items in --input_layer\n"
    )
    assert sample.failure("benchmark_model", stderr=said, code=1).code == "run.bad_flags"


def test_a_flag_that_getopt_does_not_know_is_named() -> None:
    said = "onnxruntime_perf_test: invalid option -- 'Z'\nperf_test [options...] model_path [result_file]\n"
    found = sample.failure("onnxruntime_perf_test", stderr=said, code=255)
    assert found.code == "run.unknown_flag"
    assert "flag Z" in found.message


def test_a_library_that_was_not_found_does_not_hide_what_ended_the_run() -> None:
    said = 'INFO: dlopen failed: library "libOpenCL.so" not found\n'
    assert (
        sample.failure("benchmark_model", stderr=f"{said}Segmentation fault\n", code=139).code
        == "run.crashed"
    )
    refused = sample.failure(
        "benchmark_model", stderr=f"{said}ERROR: Failed to apply GPU delegate.\n", code=1
    )
    assert refused.code == "run.delegate_refused"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (
            "armnn::InvalidArgumentException: TfLiteArmnnDelegate: No known backend specified.",
            "run.backend_missing",
        ),
        (
            "Could not initialize the CL runtime. Error description: clGetPlatformIDs. CL error code: -1001",
            "run.backend_failed",
        ),
        ("what():  Failed to assign a backend to each layer", "run.delegate_refused"),
        ("TfLiteArmnnDelegate: Unable to add Outputs to the network!", "run.delegate_refused"),
        ("TfLiteArmnnOpaqueDelegate: Network could not be loaded!", "run.delegate_refused"),
        ("TfLiteArmnnDelegate: Exception (map::at) caught from LoadNetwork.", "run.delegate_refused"),
    ],
)
def test_what_arm_nn_throws_says_more_than_that_the_process_was_aborted(said: str, code: str) -> None:
    said = f"terminating due to uncaught exception: {said}\nAborted\n"
    assert sample.failure("benchmark_model", stderr=said, code=134).code == code


@pytest.mark.parametrize(
    "said",
    [
        "INFO: Unable to load external delegate from : ./libarmnnDelegate.so\n",
        "ERROR: Failed to build program executable - Build program failure(97:0) : error : conversion\n",
        "Error 0x80000416: remote_handle64_open failed for file:///libQnnHtpV75Skel.so\n",
        "Error 0x27: remote_handle_open_domain failed for domain 3, file:///libQnnHtpV79Skel.so\n",
        "Error 0x72: apps_dev_init: untrusted app trying to offload to signed remote process\n",
    ],
)
def test_a_driver_that_did_not_do_it_decides_only_where_nothing_else_does(said: str) -> None:
    assert sample.failure("benchmark_model", stderr=said, code=1).code == "run.backend_failed"
    assert sample.failure("benchmark_model", stderr=said, code=139).code == "run.crashed"


@pytest.mark.parametrize("words", ["Aborted", "  what():  vector::_M_range_check", "RuntimeError: no input"])
def test_the_programs_own_last_words_stand_above_what_was_said_on_the_way(words: str) -> None:
    said = f'dlopen failed: library "libOpenCL.so" not found\n{words}\n'
    found = sample.failure("benchmark_model", stderr=said, code=1)
    assert found.code in {"run.crashed", "run.failed"}
    assert found.line == words.strip()


def test_last_words_that_say_what_failed_are_of_that_kind() -> None:
    said = 'RuntimeError: dlopen failed: library "libbar.so" not found\n'
    assert sample.failure("litert-benchmark", stderr=said, code=1).code == "run.backend_failed"


def test_a_flag_that_a_tool_of_the_shell_does_not_know_is_not_the_programs() -> None:
    for tool in ("taskset", "/system/bin/grep"):
        said = f"{tool}: invalid option -- 'Z'\n"
        assert sample.failure("onnxruntime_perf_test", stderr=said, code=1).code == "run.failed"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (
            "[ERROR] [Qnn ExecuTorch]: Request feature arch with value 81 unsupported\n"
            "E executorch:method.cpp:1] Init failed for backend QnnBackend: 0x1",
            "run.delegate_refused",
        ),
        (
            "E executorch:QnnManager.cpp:3] Fail to configure Qnn context\n"
            "E executorch:method.cpp:1] Init failed for backend QnnBackend: 0x1",
            "run.delegate_refused",
        ),
        ("E executorch:method.cpp:1] Init failed for backend CoreMLBackend: 0x23", "run.backend_failed"),
        (
            "Exception raised from wait at backends/vulkan/runtime/vk_api/Fence.cpp:6: (fence_status !="
            " VK_ERROR_DEVICE_LOST) is false! Vulkan Fence: Device lost while waiting for fence!",
            "run.backend_failed",
        ),
        (
            "NeuronApi error: unable to open library libneuron_adapter.so\n"
            "Failed to apply NeuronDelegate delegate.",
            "run.backend_failed",
        ),
        (
            'avc: denied { open } for path="/dev/npu" scontext=u:r:shell:s0 permissive=0',
            "run.permission_denied",
        ),
        ('avc: denied { open } for path="/dev/npu" scontext=u:r:su:s0 permissive=1', "run.failed"),
        ("mkdir: '/data/x': Read-only file system", "run.permission_denied"),
    ],
)
def test_what_backends_and_the_phone_refuse_is_told(said: str, code: str) -> None:
    assert sample.failure("executor_runner", stderr=f"{said}\n", code=1).code == code
