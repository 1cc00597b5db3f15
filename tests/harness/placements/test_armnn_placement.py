"""Which backend Arm NN had: what was asked for, unless it says that it did not take that."""

import pytest

from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import Reading
from farm.core.runs.placement import Accelerator, placement_text, resolve_actual_backend
from farm.core.runs.plan import RunPlan
from farm.harness.nnapi.armnn import armnn_placement
from farm.harness.registry import get_harness
from farm.harness.tflite.placement import tflite_placement

BANNER = "Info: ArmNN v34.1.0\n"
LAYER = "Warning: WARNING: Layer of type Softmax is not supported on requested backend {} (reason: x), "
NEXT = LAYER + "falling back to the next backend.\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("./ExecuteNetwork -m net.tflite -c GpuAcc -c CpuAcc\n", ["GpuAcc"]),
        ('--external_delegate_options="backends:GpuAcc,CpuAcc;logging-severity:info"\n', ["GpuAcc"]),
        ("./bench -c GpuAcc,CpuRef\n" + NEXT.format("GpuAcc"), ["GpuAcc", "CpuRef"]),
        # Names among what is said against them.
        ("INFO: TfLiteArmnnDelegate: Requested unknown backend GpuAcc\n", ["Arm NN"]),
        (
            "backends:GpuAcc,CpuAcc;x\nINFO: TfLiteArmnnDelegate: Requested unknown backend GpuAcc\n",
            ["CpuAcc"],
        ),
        ("Armnn Error: Some backend IDs are invalid: GpuAcc\n", ["Arm NN"]),
        (
            "./bench -c GpuAcc\nWarning: ERROR: None of the preferred backends [GpuAcc ] are supported."
            " Current platform provides [CpuAcc CpuRef ]\n",
            ["Arm NN"],
        ),
        (
            "./bench -c GpuAcc\nWarning: ERROR: Layer of type Softmax is not supported on any preferred"
            " backend [GpuAcc ]\n",
            ["Arm NN"],
        ),
        (NEXT.format("GpuAcc"), ["Arm NN"]),
    ],
)
@pytest.mark.parametrize("banner", [BANNER, "ArmNN v20200500\n"])
def test_the_first_that_was_asked_for_and_is_there_has_the_model(
    banner: str, text: str, names: list[str]
) -> None:
    found = armnn_placement(banner + text)
    assert found is not None
    assert [share.by for share in found.shares] == names


@pytest.mark.parametrize(
    "said",
    [
        "INFO: TfLiteArmnnDelegate: Requested unknown backend GpuAcc",
        "W  CONV2D: not supported by armnn: Backend is not capable of supporting dynamic weights",
        "Warning: ERROR: None of the preferred backends [GpuAcc ] are supported.",
    ],
)
def test_what_speaks_against_it_is_a_warning_and_no_hardware(said: str) -> None:
    found = armnn_placement(f"{said}\nTfLiteArmnnDelegate: Created TfLite ArmNN delegate.\n")
    assert found is not None
    assert found.warnings == (" ".join(said.split()),)
    assert Accelerator.GPU not in {share.accelerator for share in found.shares}


OPTIONS = "External delegate path : [libarmnnDelegate.so]\nExternal delegate options : [backends:{};]\n"
TAKEN = "INFO: Replacing {} node(s) with delegate (TfLiteArmNnDelegate) node, yielding 1 partitions.\n"
SUMMARY = (
    "Inference timings in us: Init: 568, First inference: 1853, Warmup (avg): 1446, Inference (avg): 1441\n"
)


def delegated(backends: str, nodes: str = "30 out of 31") -> str:
    return BANNER + OPTIONS.format(backends) + TAKEN.format(nodes)


@pytest.mark.parametrize(
    ("text", "words", "kind"),
    [
        (delegated("GpuAcc,CpuAcc"), "gpu 30/31, cpu 1", Accelerator.GPU),
        (delegated("CpuAcc,CpuRef"), "cpu 31/31", Accelerator.CPU),
        (delegated("GpuAcc,CpuAcc") + NEXT.format("GpuAcc"), "gpu, cpu", Accelerator.GPU),
        # Most nodes were never Arm NN's.
        (
            delegated("GpuAcc,CpuAcc", "3 out of 31") + NEXT.format("GpuAcc"),
            "cpu 28/31, unknown 3",
            Accelerator.CPU,
        ),
        (
            delegated("GpuAcc") + "INFO: TfLiteArmnnDelegate: Requested unknown backend GpuAcc\n",
            "unknown 30/31, cpu 1",
            Accelerator.UNKNOWN,
        ),
        # Without Arm NN's own log nothing says which of several backends had the nodes.
        (delegated("GpuAcc,CpuAcc").removeprefix(BANNER), "unknown 30/31, cpu 1", Accelerator.UNKNOWN),
    ],
)
def test_the_nodes_of_the_tflite_delegate_are_its_backends(text: str, words: str, kind: Accelerator) -> None:
    placement = tflite_placement(text)
    assert placement is not None
    assert placement_text(placement) == words
    assert resolve_actual_backend(placement, "external").accelerator is kind


def test_a_driver_of_nnapi_has_the_backends_of_arm_nn() -> None:
    text = (
        BANNER + "NNAPI accelerator name: [armnn]\noptions: [backends:GpuAcc,CpuAcc;]\n"
        "Replacing 31 out of 31 node(s) with delegate (TfLiteNnapiDelegate) node, yielding 1 partitions.\n"
    )
    placement = tflite_placement(text)
    assert placement is not None
    assert [(share.by, share.accelerator) for share in placement.shares] == [("GpuAcc", Accelerator.GPU)]


def test_a_delegate_that_was_only_created_has_no_backend() -> None:
    placement = tflite_placement(BANNER + OPTIONS.format("GpuAcc,CpuAcc") + "EXTERNAL delegate created.\n")
    assert placement is not None
    assert [share.accelerator for share in placement.shares] == [Accelerator.UNKNOWN]


def test_a_run_of_benchmark_model_is_proven_by_arm_nns_log() -> None:
    plan = RunPlan(
        harness="benchmark_model", backend="external", files=(), argv=("benchmark_model",), timeout_s=60.0
    )
    evidence = Evidence(
        fence=1, exit=ExitRecord(code=0, duration_s=1.0), stdout=delegated("GpuAcc,CpuAcc") + SUMMARY
    )
    reading = get_harness("benchmark_model").parse(plan, evidence)
    assert isinstance(reading, Reading)
    assert (reading.actual_backend, reading.accelerator) == ("external", "gpu")
