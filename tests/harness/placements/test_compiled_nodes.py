"""Parts of a model that were compiled into one node each: what such nodes count for, and what they do not."""

import pytest

from farm.core.runs.placement import Accelerator, Placement, placement_text, resolve_actual_backend
from farm.harness.onnxruntime.placement import ort_placement
from farm.harness.tflite.placement import tflite_placement

CPU, NPU = Accelerator.CPU, Accelerator.NPU
REPLACING = "INFO: Replacing {} out of {} node(s) with delegate ({}) node, yielding 3 partitions{}.\n"
PARTITIONED = (
    "INFO: [compiler_plugin.cc:741] Partitioned subgraph<{}>, selected {} ops, from a total of {} ops."
    " resulted in {} partitions.\n"
)
NO_DISPATCH = "ERROR: [dispatch_delegate.cc:131] Failed to create a dispatch delegate kernel: no runtime\n"
CAPABILITY = (
    "2026-05-15 18:38:37.6 [I:onnxruntime:, x.cc:81 GetCapability] number of partitions supported by {}: {}"
    " number of nodes in the graph: {} number of nodes supported by {}: {}\n"
)
PLACED = (
    "2026-05-15 18:38:37.6 [V:onnxruntime:, session_state.cc:1345 VerifyEachNodeIsAssignedToAnEp]"
    "  Node(s) placed on [{}]. Number of nodes: {}\n"
)


def replacing(nodes: int, total: int, delegate: str, behind: str = "") -> str:
    return REPLACING.format(nodes, total, delegate, behind)


def capability(provider: str, partitions: int, total: int, nodes: int) -> str:
    return CAPABILITY.format(provider, partitions, total, provider, nodes)


def tflite(text: str) -> Placement:
    found = tflite_placement(text)
    assert found is not None
    return found


def ort(text: str) -> Placement:
    found = ort_placement(text)
    assert found is not None
    return found


def test_an_npus_calls_are_counted_by_the_nodes_that_were_compiled_into_them() -> None:
    text = PARTITIONED.format(0, 411, 412, 2) + replacing(2, 3, "DispatchDelegate", " for subgraph 0 (main)")
    found = tflite(text)
    assert placement_text(found) == "npu 411/412, cpu 1"
    assert [share.partitions for share in found.shares] == [2, None]
    assert "selected 411 ops" in found.shares[0].line


def test_calls_of_what_was_compiled_elsewhere_are_no_count_of_nodes() -> None:
    text = replacing(1, 4, "DispatchDelegate") + replacing(3, 4, "TfLiteXNNPackDelegate")
    found = tflite(text)
    assert {share.by: (share.nodes, share.partitions) for share in found.shares} == {
        "Dispatch": (None, 1),
        "XNNPACK": (3, 3),
    }
    ran = resolve_actual_backend(found, "npu")
    assert (ran.backend, ran.accelerator, found.total_nodes) == ("npu", NPU, None)


def test_a_call_that_is_the_whole_graph_is_all_of_it() -> None:
    assert placement_text(tflite(replacing(1, 1, "DispatchDelegate"))) == "npu 1/1"


def test_a_dispatch_that_failed_behind_its_replacing_has_taken_nothing() -> None:
    text = replacing(1, 1, "DispatchDelegate") + NO_DISPATCH
    for rest in ("", replacing(31, 31, "TfLiteXNNPackDelegate")):
        found = tflite(text + rest)
        assert (
            resolve_actual_backend(found, "npu").backend,
            resolve_actual_backend(found, "npu").accelerator,
        ) == ("cpu", CPU)
        assert any("dispatch delegate kernel" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (replacing(20, 29, "Vx Delegate", " for the whole graph"), "unknown 20/29, cpu 9"),
        (replacing(20, 29, "Teflon Delegate"), "unknown 20/29, cpu 9"),
        (replacing(250, 253, "LITERT_CL"), "gpu 250/253, cpu 3"),
        (replacing(60, 65, "TfLiteCoreMlDelegate"), "unknown 60/65, cpu 5"),
        ("Replacing 51 out of 51 node(s) with delegate (TfLiteHexagonDelegate) node\n", "dsp 51/51"),
        ("First 63 operations will run on the GPU, and the remaining 14 on the CPU.\n", "gpu 63/77, cpu 14"),
        ("Applied GPU delegate, and the model graph will be completely executed w/ the delegate.\n", "gpu"),
        ("Applied NNAPI delegate.\n", "unknown"),
        ("GPU acceleration is unsupported on this platform.\n", "cpu"),
    ],
)
def test_further_delegates_and_wordings(text: str, words: str) -> None:
    assert placement_text(tflite(text)) == words


@pytest.mark.parametrize(
    ("said", "named"), [("STABLE_DELEGATE", "google_edgetpu"), ("COREML", "CoreMlDelegate")]
)
def test_a_delegate_by_the_tools_name_and_by_its_own_is_one(said: str, named: str) -> None:
    text = (
        replacing(7, 7, named)
        + f"Explicitly applied {said} delegate, and the model graph will be completely "
    )
    assert len(tflite(f"{text}executed by the delegate.\n").shares) == 1


@pytest.mark.parametrize("provider", ["QNNExecutionProvider", "NnapiExecutionProvider"])
def test_a_compiled_partition_beside_the_cpus_nodes_is_no_fall_back(provider: str) -> None:
    found = ort(PLACED.format(provider, 1) + PLACED.format("CPUExecutionProvider", 2))
    assert {share.by: (share.nodes, share.partitions) for share in found.shares} == {
        provider: (None, 1),
        "CPUExecutionProvider": (2, None),
    }
    assert resolve_actual_backend(found, "qnn").backend == "qnn"


def test_nodes_of_a_provider_that_compiles_nothing_are_counted() -> None:
    text = PLACED.format("WebGpuExecutionProvider", 40) + PLACED.format("CPUExecutionProvider", 60)
    assert placement_text(ort(text)) == "cpu 60/100, gpu 40"
    assert resolve_actual_backend(ort(text), "webgpu").backend == "cpu"


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([(2, 100, 90), (2, 104, 94)], "unknown 94/104, cpu 10"),
        ([(2, 100, 90), (0, 12, 0)], "unknown 90/100, cpu 10"),
        ([(3, 100, 30), (0, 73, 0)], "cpu 70/100, unknown 30"),
        ([(1, 5, 3), (1, 100, 90)], "unknown 90/100, cpu 10"),
        ([(1, 740, 400), (0, 1, 0)], "unknown 400/740, cpu 340"),
        ([(1, 130, 90), (1, 120, 120)], "unknown 120/120"),
    ],
    ids=["layout", "what is left", "what is left of most", "a body first", "a loop alone", "all at last"],
)
def test_of_several_answers_the_one_for_the_whole_model_stands(
    answers: list[tuple[int, int, int]], words: str
) -> None:
    text = "".join(capability("NNAPI", *answer) for answer in answers)
    assert placement_text(ort(text)) == words


@pytest.mark.parametrize(
    "said",
    [
        "[E] QNN SetupBackend failed Failed to create device. Error: 14001\n",
        "[I:onnxruntime:, q.cc:1152 GetCapability] Number of partitions supported by QNN EP: 0\n",
    ],
)
def test_a_qnn_that_could_not_start_left_all_to_the_cpu(said: str) -> None:
    ran = resolve_actual_backend(ort(said), "qnn")
    assert (ran.backend, ran.accelerator) == ("cpu", CPU)
    assert " ".join(said.split()) in ran.proof


def test_nodes_that_were_all_placed_on_the_cpu_outweigh_what_a_provider_could_take() -> None:
    text = capability("NNAPI", 1, 66, 66) + (
        "[V:onnxruntime:, x] All nodes placed on [CPUExecutionProvider]. Number of nodes: 66\n"
    )
    assert resolve_actual_backend(ort(text), "nnapi").backend == "cpu"


def test_a_provider_that_can_take_nothing_does_not_have_the_counts_of_the_next_one() -> None:
    text = "Number of partitions supported by QNN EP: 0\n" + capability("NNAPI", 3, 100, 90)
    assert not [share for share in ort(text).shares if "QNN" in share.by.upper()]
