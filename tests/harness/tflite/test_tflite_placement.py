"""Delegates of TFLite and LiteRT: every wording, through every log, and what each is no proof of."""

import pytest

from farm.core.runs.placement import Accelerator, Placement, placement_text, resolve_actual_backend
from farm.harness.tflite.placement import tflite_placement

NPU, GPU, DSP, CPU = Accelerator.NPU, Accelerator.GPU, Accelerator.DSP, Accelerator.CPU
UNKNOWN = Accelerator.UNKNOWN
#: What logs put before a line.
PREFIXES = [
    "",
    "INFO: ",
    "VERBOSE: ",
    "I tflite  : ",
    "03-02 11:20:31.101  4120  4133 I tflite  : ",
    "2026-03-02 11:20:31.101  4120-4133  tflite                  pid-4120                             I  ",
    "2026-03-02 11:20:31.101 4120-4133/org.example.bench I/tflite: ",
    "I/tflite  ( 4120): ",
]


def placed(text: str) -> Placement:
    found = tflite_placement(text)
    assert found is not None
    return found


def counts(text: str) -> dict[str, int | None]:
    return {share.by: share.nodes for share in placed(text).shares}


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "Replacing 58 node(s) with delegate (TfLiteGpuDelegateV2) node, yielding 1 partitions.",
            "gpu 58",
        ),
        (
            "Replacing 58 out of 64 node(s) with delegate (TfLiteHexagonDelegate) node, "
            "yielding 3 partitions for subgraph 0.",
            "dsp 58/64, cpu 6",
        ),
        (
            "TfLiteHexagonDelegate delegate: 58 nodes delegated out of 64 nodes with 2 partitions.",
            "dsp 58/64, cpu 6",
        ),
        (
            "Explicitly applied GPU delegate, and the model graph will be completely executed "
            "by the delegate.",
            "gpu",
        ),
        (
            "Explicitly applied GPU delegate, and the model graph will be partially executed "
            "by the delegate w/ 2 delegate kernels.",
            "gpu, cpu",
        ),
        (
            "12 operations will run on the GPU, and the remaining 4 operations will run on the CPU.",
            "gpu 12/16, cpu 4",
        ),
        (
            "First 12 operations will run on the GPU, and the remaining 4 operations will run on the CPU.",
            "gpu 12/16, cpu 4",
        ),
        ("Created 2 GPU delegate kernels.", "gpu"),
    ],
)
def test_a_line_that_tells_of_nodes_is_read_behind_every_prefix(prefix: str, line: str, words: str) -> None:
    found = placed(f"{prefix}Initialized TensorFlow Lite runtime.\n{prefix}{line}\n")
    assert placement_text(found) == words
    assert line.split()[0] in found.shares[0].line


@pytest.mark.parametrize(
    "line",
    [
        "Though NNAPI delegate is explicitly applied, the model graph will not be executed by the delegate",
        "TfLiteQnnDelegate delegate: 0 nodes delegated out of 44 nodes with 0 partitions.",
        "Could not create Hexagon delegate: platform may not support delegate",
        "Failed to apply NNAPI delegate.",
        "INFO: Hexagon Delegate is not supported.",
        "Unable to load external delegate from : ./libphone_delegate.so (dlopen failed: not found)",
        "ERROR: Restored original execution plan after delegate application failure.",
    ],
)
def test_a_delegate_that_was_made_and_took_nothing_is_a_fall_back(line: str) -> None:
    found = placed(f"INFO: Use NNAPI: [1]\nNNAPI delegate created.\n{line}\n")
    ran = resolve_actual_backend(found, "nnapi")
    assert (ran.backend, ran.accelerator) == ("cpu", CPU)
    assert line[-20:] in ran.proof


@pytest.mark.parametrize(
    "text",
    [
        "NNAPI accelerators available: [qti-default,qti-dsp,qti-gpu,google-edgetpu,nnapi-reference]\n",
        "Use NNAPI: [1]\nLoaded model /data/local/tmp/m.tflite\n",
        "nothing of the kind\n",
        "",
    ],
)
def test_lists_and_flags_prove_nothing(text: str) -> None:
    assert tflite_placement(text) is None


def test_a_delegate_that_was_created_is_not_proven_by_that() -> None:
    ran = resolve_actual_backend(
        placed("INFO: Created TensorFlow Lite delegate for NNAPI.\nNNAPI delegate created.\n"), "nnapi"
    )
    assert (ran.backend, ran.accelerator) == ("nnapi", UNKNOWN)


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("google-edgetpu", NPU),
        ("qti-dsp", DSP),
        ("qti-gpu", GPU),
        ("qti-hta", NPU),
        ("mtk-mdla_shim", NPU),
        ("enn", NPU),
        ("nnapi-reference", CPU),
        ("qti-default", UNKNOWN),
        ("somebodys-driver", UNKNOWN),
    ],
)
def test_the_driver_that_was_named_has_the_nodes_of_nnapi(asked: str, kind: Accelerator) -> None:
    text = (
        f"NNAPI accelerator name: [{asked}]\n"
        f"NNAPI accelerators available: [google-edgetpu,{asked},nnapi-reference]\n"
        "Replacing 31 out of 31 node(s) with delegate (TfLiteNnapiDelegate) node, yielding 1 partitions.\n"
    )
    (share,) = placed(text).shares
    assert (share.by, share.accelerator, share.nodes) == (asked, kind, 31)


def test_what_nnapi_took_without_any_driver_is_the_cpus() -> None:
    line = "Explicitly applied NNAPI delegate, and the model graph will be completely executed.\n"
    alone = placed(f"INFO: NNAPI accelerators available: [nnapi-reference]\n{line}")
    assert resolve_actual_backend(alone, "nnapi").backend == "cpu"
    another = placed(f"INFO: NNAPI accelerators available: [enn,nnapi-reference]\n{line}")
    assert resolve_actual_backend(another, "nnapi").accelerator is UNKNOWN


@pytest.mark.parametrize(
    ("loaded", "kind"),
    [
        ("libQnnHtp.so libQnnHtpV75Stub.so", NPU),
        ("libQnnGpu.so", GPU),
        ("libQnnHtp.so libQnnGpu.so", UNKNOWN),
        ("libQnnSystem.so", UNKNOWN),
    ],
)
def test_qnns_hardware_goes_by_the_one_library_that_it_names(loaded: str, kind: Accelerator) -> None:
    text = f"loading {loaded}\nQNN delegate: 40 nodes delegated out of 40 nodes with 1 partitions.\n"
    (share,) = placed(text).shares
    assert (share.accelerator, share.nodes) == (kind, 40)


def test_without_a_name_the_runtime_own_log_says_which_driver_it_was() -> None:
    text = "Replacing 2 out of 3 node(s) with delegate (TfLiteNnapiDelegate) node, yielding 1 partitions.\n"
    assert resolve_actual_backend(placed(text), "nnapi").accelerator is UNKNOWN
    log = "I ExecutionPlan: ModelBuilder::findBestDeviceForEachOperation(CONV_2D) = 0 (google-edgetpu)\n" * 2
    ran = resolve_actual_backend(placed(text + log), "nnapi")
    assert ran.accelerator is NPU
    assert "findBestDevice" in ran.proof


def test_xnnpack_is_the_cpu_and_takes_what_another_delegate_leaves() -> None:
    text = (
        "INFO: TfLiteHexagonDelegate delegate: 90 nodes delegated out of 100 nodes with 3 partitions.\n"
        "VERBOSE: Replacing 8 node(s) with delegate (TfLiteXNNPackDelegate) node, yielding 5 partitions.\n"
    )
    assert counts(text) == {"Hexagon": 90, "XNNPACK": 8, "TFLite's kernels": 2}
    assert placement_text(placed(text)) == "dsp 90/100, cpu 10"


def test_subgraphs_are_added_up() -> None:
    line = (
        "Replacing {} out of {} node(s) with delegate (TfLiteXNNPackDelegate) node, "
        "yielding 1 partitions for subgraph {}.\n"
    )
    found = placed(line.format(10, 12, 0) + line.format(5, 5, 1))
    assert placement_text(found) == "cpu 17/17"


def test_a_line_that_comes_twice_counts_once() -> None:
    line = (
        "Replacing 10 out of 12 node(s) with delegate (TfLiteGpuDelegateV2) node, "
        "yielding 2 partitions for subgraph 0.\n"
    )
    assert placement_text(placed(line + line)) == "gpu 10/12, cpu 2"


def test_opengl_in_the_place_of_opencl_is_the_gpu_with_a_warning() -> None:
    text = (
        "ERROR: Can not open OpenCL library on this device - dlopen failed: library not found\n"
        "ERROR: Falling back to OpenGL\nINFO: Initialized OpenGL-based API.\n"
        "INFO: Created 1 GPU delegate kernels.\n"
    )
    found = placed(text)
    assert resolve_actual_backend(found, "gpu").accelerator is GPU
    assert any("Falling back to OpenGL" in warning for warning in found.warnings)


def test_an_external_delegate_goes_by_its_own_name_and_its_options() -> None:
    text = (
        "External delegate path: [/data/local/tmp/libQnnTFLiteDelegate.so]\n"
        "External delegate options: [backend_type:{};]\nEXTERNAL delegate created.\n"
        "TfLiteQnnDelegate delegate: 40 nodes delegated out of 40 nodes with 1 partitions.\n"
        "Explicitly applied EXTERNAL delegate, "
        "and the model graph will be completely executed by the delegate.\n"
    )
    for option, kind in (("htp", NPU), ("gpu", GPU), ("dsp", DSP)):
        (share,) = placed(text.format(option)).shares
        assert (share.by, share.accelerator) == ("QNN", kind)


def test_nnapi_without_its_library_is_the_cpu_where_it_was_asked_for() -> None:
    missing = "nnapi error: unable to open library libneuralnetworks.so\n"
    assert resolve_actual_backend(placed("Use nnapi : [1]\n" + missing), "nnapi").backend == "cpu"
    assert tflite_placement("Use nnapi : [0]\n" + missing) is None
