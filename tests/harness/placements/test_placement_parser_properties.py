"""Whatever a tool or a log says of placement, no parser raises, and no more nodes run than there are."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from farm.core.runs.placement import Placement, nodes_by_accelerator, placement_text, resolve_actual_backend
from farm.harness.base.log_lines import log_lines
from farm.harness.executorch.placement import executorch_placement
from farm.harness.nnapi.armnn import armnn_placement
from farm.harness.nnapi.placement import nnapi_placement
from farm.harness.onnxruntime.placement import ort_placement
from farm.harness.tflite.placement import tflite_placement
from farm.harness.torch.placement import pytorch_vulkan_placement

PARSERS = [
    *[tflite_placement, nnapi_placement, ort_placement, executorch_placement, armnn_placement],
    pytorch_vulkan_placement,
]
SAMPLES = [
    "INFO: TfLiteHexagonDelegate delegate: 90 nodes delegated out of 100 nodes with 3 partitions.\n",
    "VERBOSE: Replacing 8 node(s) with delegate (TfLiteXNNPackDelegate) node, yielding 5 partitions.\n",
    "Replacing 8 out of 9 node(s) with delegate (TfLiteNnapiDelegate) node, yielding 1 partitions"
    " for subgraph 0.\n",
    "Explicitly applied GPU delegate, and the model graph will be partially executed by the delegate"
    " w/ 1 delegate kernels.\n",
    "Though NNAPI delegate is explicitly applied, the model graph will not be executed by the delegate\n",
    "Could not create Hexagon delegate: no\n",
    "97 operations will run on the GPU, and the remaining 200 operations will run on the CPU.\n",
    "NNAPI accelerator name: [qti-dsp]\n",
    "External delegate options: [backend_type:gpu;]\n",
    "08-11 07:01:02.000  70  71 I ExecutionPlan: "
    "ModelBuilder::findBestDeviceForEachOperation(ADD:1) = 0 (qti-dsp)\n",
    "08-11 07:01:02.000  70  71 I chatty  : uid=2000(shell) a identical 4 lines\n",
    "I ExecutionPlan: ModelBuilder::partitionTheWork: only one best device: 0 = google-edgetpu\n",
    "number of partitions supported by NNAPI: 2 number of nodes in the graph: 10",
    " number of nodes supported by NNAPI: 11\n",
    " Node(s) placed on [CPUExecutionProvider]. Number of nodes: 3\n",
    "All nodes placed on [QNNExecutionProvider]\n",
    "[INFO] [Qnn ExecuTorch]: Initialize Qnn backend parameters for Qnn executorch backend type 2\n",
    "delegate calls: 3 of 2\n",
    "backend: XnnpackBackend\n",
    "Info: ArmNN v33.1.0\n",
    "-c GpuAcc,CpuAcc\n",
    "AdrenoVK-0: QUALCOMM build\n",
]
SCRAPS = st.sampled_from([*SAMPLES, "\r\n", "\r", "\0", "\ufeff", "[", "(", "9" * 40, "²", "-1", "$ echo "])
TEXTS = st.one_of(st.text(), st.lists(st.one_of(SCRAPS, st.text(max_size=8)), max_size=12).map("".join))


@pytest.mark.parametrize("parse", PARSERS)
@given(text=TEXTS, asked=st.sampled_from(["cpu", "nnapi", "xnnpack", "gpu", ""]))
@example(text="", asked="")
def test_no_text_makes_a_parser_raise(
    parse: Callable[[str], Placement | None], text: str, asked: str
) -> None:
    found = parse(text)
    ran = resolve_actual_backend(found, asked)
    assert ran.proof
    if found is not None:
        assert found.shares or found.warnings
        assert placement_text(found)
        assert all(nodes is None or nodes > 0 for nodes in nodes_by_accelerator(found).values())
        assert all(share.line for share in found.shares)


@pytest.mark.parametrize("parse", PARSERS)
@given(cut=st.integers(0, 2000), end=st.sampled_from(["\n", "\r\n"]), echoed=st.booleans())
def test_a_text_that_is_cut_anywhere_is_read_as_far_as_it_goes(
    parse: Callable[[str], Placement | None], cut: int, end: str, echoed: bool
) -> None:
    text = ("$ ./benchmark_model --use_nnapi=true\n" if echoed else "") + "".join(SAMPLES)
    parse(text.replace("\n", end)[:cut])
    parse(text.encode("utf-16").decode("utf-16")[cut:])


@given(text=TEXTS)
@example(text="")
def test_every_line_is_quoted_in_one(text: str) -> None:
    assert all(line.quoted and "\n" not in line.quoted and line.times >= 1 for line in log_lines(text))


@given(count=st.integers(0, 400), total=st.integers(0, 400))
def test_a_backend_ran_when_most_nodes_did_not_come_back_to_the_cpu(count: int, total: int) -> None:
    total = max(count, total)
    text = (
        f"TfLiteHexagonDelegate delegate: {count} nodes delegated out of {total} nodes with 1 partitions.\n"
    )
    found = tflite_placement(text)
    assert found is not None
    ran = resolve_actual_backend(found, "hexagon")
    assert (ran.backend == "hexagon") is (count > 0 and 2 * count >= total)
