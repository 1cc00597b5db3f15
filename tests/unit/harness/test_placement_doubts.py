"""What must not be taken for proof: what was given back, done again by the CPU, or was other hardware."""

import pytest

from farm.core.placement import Accelerator, Placement, Share, actual
from farm.harness.placements.nnapi import nnapi_placement
from farm.harness.placements.tflite import tflite_placement

CPU, UNKNOWN = Accelerator.CPU, Accelerator.UNKNOWN
IDLE = "Though {} delegate is explicitly applied, the model graph will not be executed by the delegate.\n"
RESTORED = "ERROR: Restored original execution plan after delegate application failure.\n"


def replacing(nodes: int, total: int, delegate: str) -> str:
    return (
        f"INFO: Replacing {nodes} out of {total} node(s) with delegate ({delegate}) node, "
        "yielding 3 partitions for subgraph 0.\n"
    )


def logged(*drivers: str) -> str:
    return "".join(
        "06-02 10:00:01.500  811  811 I ExecutionPlan: "
        f"ModelBuilder::findBestDeviceForEachOperation(CONV_2D:{at}) = 1 ({name})\n"
        for at, name in enumerate(drivers)
    )


def ran(text: str, backend: str) -> tuple[str, Accelerator]:
    found = actual(tflite_placement(text), backend)
    return found.backend, found.accelerator


def test_nodes_that_were_given_back_when_a_delegate_failed_are_the_cpus() -> None:
    taken = replacing(60, 61, "TfLiteGpuDelegateV2")
    assert ran(taken, "gpu") == ("gpu", Accelerator.GPU)
    assert ran(taken + RESTORED, "gpu") == ("cpu", CPU)
    assert ran(taken + RESTORED + replacing(61, 61, "TfLiteXNNPackDelegate"), "gpu") == ("cpu", CPU)


def test_a_delegate_that_comes_after_one_that_failed_has_what_it_took() -> None:
    text = replacing(60, 61, "TfLiteNnapiDelegate") + RESTORED + replacing(55, 61, "TfLiteGpuDelegateV2")
    assert ran(text, "gpu") == ("gpu", Accelerator.GPU)


@pytest.mark.parametrize(
    ("name", "delegate"), [("GPU", "TfLiteGpuDelegateV2"), ("EXTERNAL", "TfLiteQnnDelegate")]
)
def test_a_delegate_that_is_not_executed_after_all_has_nothing(name: str, delegate: str) -> None:
    assert ran(replacing(60, 61, delegate) + IDLE.format(name), "gpu") == ("cpu", CPU)


def test_that_nothing_was_left_for_xnnpack_says_nothing_against_the_gpu() -> None:
    assert ran(replacing(61, 61, "TfLiteGpuDelegateV2") + IDLE.format("XNNPACK"), "gpu") == (
        "gpu",
        Accelerator.GPU,
    )


def test_few_nodes_on_two_drivers_do_not_hide_the_many_on_the_cpu() -> None:
    text = replacing(3, 31, "TfLiteNnapiDelegate")
    assert ran(text + logged("qti-dsp", "qti-gpu", "qti-gpu"), "nnapi") == ("cpu", CPU)


def test_operations_that_went_to_nnapis_own_cpu_outweigh_those_of_a_driver() -> None:
    text = replacing(30, 31, "TfLiteNnapiDelegate") + logged(*["qti-dsp"] * 3, *["nnapi-reference"] * 28)
    assert ran(text, "nnapi") == ("cpu", CPU)


@pytest.mark.parametrize(("said", "kind"), [("cpuFallbackFull", CPU), ("cpuFallbackPartial", UNKNOWN)])
def test_a_driver_that_failed_while_it_executed_is_not_what_ran(said: str, kind: Accelerator) -> None:
    placed = logged("qti-dsp", "qti-dsp")
    assert actual(nnapi_placement(placed), "nnapi").accelerator is Accelerator.DSP
    fell_back = f"06-02 10:00:02.100  811  830 I ExecutionBuilder: {said}\n"
    found = actual(nnapi_placement(placed + fell_back), "nnapi")
    assert found.accelerator is kind
    assert said in found.proof


@pytest.mark.parametrize(
    ("asked", "delegate", "backend"),
    [
        ("gpu", "TfLiteHexagonDelegate", "dsp"),
        ("npu", "TfLiteGpuDelegateV2", "gpu"),
        ("hexagon", "TfLiteGpuDelegateV2", "gpu"),
        ("external", "TfLiteGpuDelegateV2", "external"),
    ],
)
def test_other_hardware_than_the_backend_names_is_a_fall_back(
    asked: str, delegate: str, backend: str
) -> None:
    assert ran(replacing(60, 61, delegate), asked)[0] == backend


def test_the_first_of_several_backends_that_were_asked_for_is_no_proof() -> None:
    head = "External delegate path : [libarmnnDelegate.so]\nExternal delegate options : [backends:GpuAcc{}]\n"
    taken = "INFO: Replacing 31 node(s) with delegate (TfLiteArmNnDelegate) node, yielding 1 partitions.\n"
    assert ran(head.format("") + taken, "external")[1] is Accelerator.GPU
    assert ran(head.format(",CpuAcc") + taken, "external")[1] is UNKNOWN


def test_a_part_of_the_cpus_that_is_not_counted_makes_it_no_less() -> None:
    shares = (
        Share(accelerator=Accelerator.NPU, by="enn", nodes=4, line="npu"),
        Share(accelerator=CPU, by="nnapi-reference", nodes=5, line="cpu"),
        Share(accelerator=CPU, by="kernels", line="rest"),
    )
    assert actual(Placement(shares=shares), "nnapi").backend == "cpu"
    assert actual(Placement(shares=shares[:1] + shares[2:]), "nnapi").backend == "nnapi"
