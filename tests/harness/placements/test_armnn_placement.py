"""Which backend Arm NN had: what was asked for, unless it says that it did not take that."""

import pytest

from farm.core.runs.placement import Accelerator
from farm.harness.nnapi.armnn import armnn_placement

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
