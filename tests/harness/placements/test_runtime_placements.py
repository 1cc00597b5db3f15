"""Placements that ONNX Runtime, ExecuTorch, QNN and Arm NN print."""

import pytest

from farm.core.runs.placement import Accelerator, placement_text, resolve_actual_backend
from farm.harness.executorch.placement import executorch_placement
from farm.harness.nnapi.armnn import armnn_placement
from farm.harness.onnxruntime.placement import ort_placement

CPU, GPU, NPU, UNKNOWN = Accelerator.CPU, Accelerator.GPU, Accelerator.NPU, Accelerator.UNKNOWN
DSP = Accelerator.DSP
ON_ONE_LINE = (
    "NnapiExecutionProvider::GetCapability, number of partitions supported by NNAPI: {}"
    " number of nodes in the graph: {} number of nodes supported by NNAPI: {}\n"
)


@pytest.mark.parametrize("between", [" ", "\n", "\r\n", "\n            ", ", ", "\nI/onnxruntime: "])
def test_what_a_provider_can_take_is_read_on_one_line_or_wrapped(between: str) -> None:
    text = (
        f"number of partitions supported by NNAPI: 3{between}number of nodes in the graph: 120"
        f"{between}number of nodes supported by NNAPI: 100\n"
    )
    found = ort_placement(text)
    assert found is not None
    assert {share.by: (share.nodes, share.partitions) for share in found.shares} == {
        "NNAPIExecutionProvider": (100, 3),
        "CPUExecutionProvider": (20, None),
    }
    assert found.total_nodes == 120
    assert resolve_actual_backend(found, "nnapi").accelerator is UNKNOWN


def test_a_provider_that_can_take_nothing_is_a_fall_back() -> None:
    ran = resolve_actual_backend(ort_placement(ON_ONE_LINE.format(0, 120, 0)), "nnapi")
    assert (ran.backend, ran.accelerator) == ("cpu", CPU)


def test_the_last_of_two_answers_stands() -> None:
    found = ort_placement(ON_ONE_LINE.format(1, 130, 90) + ON_ONE_LINE.format(1, 120, 120))
    assert found is not None
    assert [share.nodes for share in found.shares] == [120]


def test_nnapi_log_in_the_same_text_names_the_driver() -> None:
    text = ON_ONE_LINE.format(1, 4, 4) + (
        "I ExecutionPlan: ModelBuilder::findBestDeviceForEachOperation(ADD) = 0 (google-edgetpu)\n" * 4
    )
    assert resolve_actual_backend(ort_placement(text), "nnapi").accelerator is NPU


@pytest.mark.parametrize(
    ("text", "backend", "ran", "kind"),
    [
        ("[V] All nodes placed on [CPUExecutionProvider]. Number of nodes: 97\n", "qnn", "cpu", CPU),
        ("All nodes have been placed on [CPUExecutionProvider].\n", "xnnpack", "cpu", CPU),
        (
            "[V] All nodes placed on [XnnpackExecutionProvider]. Number of nodes: 9\n",
            "xnnpack",
            "xnnpack",
            CPU,
        ),
        (
            "[V]  Node(s) placed on [WebGpuExecutionProvider]. Number of nodes: 60\n"
            "[V]   Conv (a)\n[V]  Node(s) placed on [CPUExecutionProvider]. Number of nodes: 2\n",
            "webgpu",
            "webgpu",
            GPU,
        ),
        (
            "loading libQnnHtp.so\nNumber of partitions supported by QNN EP: 1,"
            " number of nodes in the graph: 98, number of nodes supported by QNN: 98\n",
            "qnn",
            "qnn",
            NPU,
        ),
        (
            "Specified provider 'NnapiExecutionProvider' is not in available provider names.\n",
            "nnapi",
            "cpu",
            CPU,
        ),
        ("session providers: ['CPUExecutionProvider']\n", "nnapi", "cpu", CPU),
        ("using QNNExecutionProvider\nTotal inference requests: 8\n", "qnn", "qnn", UNKNOWN),
    ],
)
def test_providers_of_onnx_runtime(text: str, backend: str, ran: str, kind: Accelerator) -> None:
    found = resolve_actual_backend(ort_placement(text), backend)
    assert (found.backend, found.accelerator) == (ran, kind)


@pytest.mark.parametrize(
    ("text", "backend", "kind"),
    [
        ("Method forward uses backend VulkanBackend\n", "vulkan", GPU),
        ("delegates: XnnpackBackend\n", "xnnpack", CPU),
        (
            "[INFO] [Qnn ExecuTorch]: Initialize Qnn backend parameters for Qnn executorch backend type 2\n",
            "qnn",
            NPU,
        ),
        (
            "[INFO] [Qnn ExecuTorch]: Initialize Qnn backend parameters for Qnn executorch backend type 6\n",
            "qnn",
            NPU,
        ),
        (
            "[INFO] [Qnn ExecuTorch]: Initialize Qnn backend parameters for Qnn executorch backend type 3\n",
            "qnn",
            DSP,
        ),
        (
            "[INFO] [Qnn ExecuTorch]: Initialize Qnn backend parameters for Qnn executorch backend type 4\n",
            "qnn",
            UNKNOWN,
        ),
        (
            "[INFO] [Qnn ExecuTorch]: Initialize Qnn backend parameters for Qnn executorch backend type 2\n"
            "[ERROR] [Qnn ExecuTorch]:  <E> Transport layer setup failed: 14001\n",
            "qnn",
            UNKNOWN,
        ),
        (
            "07-02 11:20:31.402 812 840 I [Qnn ExecuTorch]: Initialize Qnn backend parameters for Qnn"
            " executorch backend type 2\n"
            "07-02 11:20:31.402 812 840 E QnnDsp  :  <E> Failed to load skel, error: 4000\n",
            "qnn",
            UNKNOWN,
        ),
        ("Supported backends: VulkanBackend\nRegistered backend VulkanBackend\n", "vulkan", UNKNOWN),
        ("[INFO] [Qnn ExecuTorch]: Destroy Qnn backend\n", "qnn", UNKNOWN),
        ("Backend VulkanBackend is not registered.\n", "vulkan", UNKNOWN),
    ],
)
def test_backends_of_executorch(text: str, backend: str, kind: Accelerator) -> None:
    found = resolve_actual_backend(executorch_placement(text), backend)
    assert (found.backend, found.accelerator) == (backend, kind)


def test_calls_that_are_counted_leave_the_rest_to_the_portable_kernels() -> None:
    found = executorch_placement("backend: XnnpackBackend\ndelegate calls: 3 of 5\n")
    assert found is not None
    assert {share.by: share.nodes for share in found.shares} == {"XnnpackBackend": 3, "portable": 2}
    none = resolve_actual_backend(executorch_placement("delegate calls: 0\n"), "xnnpack")
    assert none.backend == "cpu"


def test_an_inspector_table_counts_what_was_delegated() -> None:
    text = (
        "event_block_name  event_name                      avg (ms)  op_types    is_delegated_op\n"
        "Execute           native_call_add.out             0.95      ['add']     False\n"
        "Execute           DELEGATE_CALL                   0.10      []          True\n"
        "Default           Method::init                    0.03      []          False\n"
    )
    found = executorch_placement(text)
    assert found is not None
    assert {share.by: share.nodes for share in found.shares} == {"portable": 1, "delegate": 1}


@pytest.mark.parametrize(
    ("text", "words", "warned"),
    [
        ("Info: ArmNN v33.1.0\nInfo: Execution time: 6.05 ms.\n", "unknown", False),
        ("$ ExecuteNetwork -m a.tflite -c GpuAcc\nInfo: ArmNN v33.2.0\n", "gpu", False),
        ("Info: ArmNN v32.0.0\noptions: [backends:CpuAcc;]\n", "cpu", False),
        (
            "Info: ArmNN v33.2.0\nbackends: GpuAcc,CpuAcc\nWARNING: Layer of type Mean is not supported"
            " on requested backend GpuAcc for input data type Float32 (reason: axis),"
            " falling back to the next backend.\n",
            "gpu, cpu",
            True,
        ),
        (
            "$ ExecuteNetwork -m a.tflite -c GpuAcc CpuRef\nArmNN v19.02\nLayer of type Pad is not supported"
            " on requested backend GpuAcc (reason: padding), falling back to CpuRef backend.\n",
            "gpu, cpu",
            True,
        ),
    ],
)
def test_backends_of_arm_nn(text: str, words: str, warned: bool) -> None:
    found = armnn_placement(text)
    assert found is not None
    assert placement_text(found) == words
    assert bool(found.warnings) is warned
