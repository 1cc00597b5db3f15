"""ONNX Runtime's profile: operators, providers, and what it says beside the log."""

import base64
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.runs.evidence import Evidence, ExitRecord, PassEvidence
from farm.core.runs.measurement import Reading
from farm.core.runs.placement import Accelerator, Placement, Share
from farm.harness.onnxruntime.placement import ort_placement
from farm.harness.onnxruntime.profile import FILES, ort_profile, profile_placement, with_profile
from farm.harness.registry import get_harness
from tests.support.harness import tool_samples as sample

NAME = "onnxruntime_perf_test"
CPU, XNNPACK = "CPUExecutionProvider", "XnnpackExecutionProvider"
#: Loads a network that is made here, logs where its nodes go, runs it three times with a profile.
RUN = """
import os, sys
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import numpy, onnx, onnxruntime
from onnx import TensorProto, helper
def tensor(name): return helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4])
nodes = [
    helper.make_node("MatMul", ["x", "x"], ["a"], name="first"),
    helper.make_node("MatMul", ["a", "x"], ["b"], name="second"),
    helper.make_node("Softmax", ["b"], ["y"], name="last"),
]
graph = helper.make_graph(nodes, "net", [tensor("x")], [tensor("y")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
options = onnxruntime.SessionOptions()
options.enable_profiling, options.profile_file_prefix, options.log_severity_level = True, sys.argv[1], 0
session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
for _ in range(3):
    session.run(None, {"x": numpy.ones((4, 4), numpy.float32)})
print(session.end_profiling())
"""


def run_event(ts: int, dur: int = 100) -> dict[str, object]:
    return {"cat": "Session", "name": "model_run", "ts": ts, "dur": dur, "args": {}}


def node_event(name: str, operator: str, ts: int, dur: int, provider: str = CPU) -> dict[str, object]:
    arguments = {"op_name": operator, "provider": provider}
    return {"cat": "Node", "name": f"{name}_kernel_time", "ts": ts, "dur": dur, "args": arguments}


#: The first inference takes ten times as long; then two of the same kind.
EVENTS = [
    *(node_event("a", "Conv", 10, 500, XNNPACK), node_event("b", "Gemm", 520, 50), run_event(5, 600)),
    *(node_event("a", "Conv", 710, 40, XNNPACK), node_event("b", "Gemm", 760, 5), run_event(705)),
    *(node_event("a", "Conv", 910, 60, XNNPACK), node_event("b", "Gemm", 980, 7), run_event(905)),
    {"cat": "Node", "name": "a_fence_before", "ts": 1, "dur": 9, "args": {"op_name": "Conv"}},
]
PROFILE = json.dumps(EVENTS).encode()


def evidence(profile: bytes, log: str = "") -> Evidence:
    name = "onnxruntime_profile_2026-11-29_03-42-04_209.json"
    block = f"\nbenchfarm_file {name}\n{base64.encodebytes(profile).decode()}"
    ended = ExitRecord(code=0, duration_s=1.0)
    return Evidence(
        fence=1,
        exit=ended,
        stdout=sample.output("ort_newer"),
        passes=(
            PassEvidence(name="placement", exit=ended, stdout=log),
            PassEvidence(name="result_files", exit=ended, stdout=f"{block}benchfarm_file_end\n"),
        ),
    )


def reading(backend: str, profile: bytes, log: str = "") -> Reading:
    planned = sample.plan(NAME, backend, profile=True)
    found = get_harness(NAME).parse(planned, evidence(profile, log))
    assert isinstance(found, Reading)
    return found


def test_a_profile_is_made_in_a_pass_of_its_own_and_never_in_the_run() -> None:
    planned = sample.plan(NAME, "xnnpack", profile=True)
    assert "-p" not in planned.argv
    placement, profiled = planned.passes
    assert (placement.name, profiled.name) == ("placement", "result_files")
    words = list(profiled.argv)
    assert words[words.index("-p") + 1] == "${work}/onnxruntime_profile"
    assert FILES in words[2]
    assert not sample.plan(NAME).passes


def test_times_are_of_one_inference_and_leave_the_first_one_out() -> None:
    profile = ort_profile(PROFILE)
    assert profile is not None
    assert [(each.operator, each.count, each.ms) for each in profile.operators] == [
        ("Conv", 1, 0.05),
        ("Gemm", 1, 0.006),
    ]
    assert profile.nodes_by_provider == {XNNPACK: {"Conv": 1}, CPU: {"Gemm": 1}}


def test_a_single_inference_is_all_there_is() -> None:
    profile = ort_profile(json.dumps(EVENTS[:3]).encode())
    assert profile is not None
    assert [each.ms for each in profile.operators] == [0.5, 0.05]


def test_operators_become_metrics_and_providers_the_proof() -> None:
    found = reading("xnnpack", PROFILE)
    assert sample.metrics(found)["op Conv x1"] == pytest.approx(0.05)
    assert found.actual_backend == "xnnpack"
    assert f"profile: 1 of 2 nodes by {XNNPACK}: Conv x1" in found.proof


def test_nodes_that_all_ran_on_the_cpu_are_a_fallback_whatever_was_planned() -> None:
    only_cpu = json.dumps([event for event in EVENTS if "Conv" not in str(event)]).encode()
    log = (
        f"Node(s) placed on [QNNExecutionProvider]. Number of nodes: 3\n"
        f"Node(s) placed on [{CPU}]. Number of nodes: 1\n"
    )
    found = reading("qnn", only_cpu, log)
    assert (found.actual_backend, found.accelerator) == ("cpu", Accelerator.CPU)
    assert found.placement is not None
    assert "the log shows other providers" in found.placement.warnings[0]


def test_where_both_agree_the_logs_counts_stay_and_both_lines_are_the_proof() -> None:
    shares = (Share(accelerator=Accelerator.CPU, by=XNNPACK, nodes=7, line="log x"),)
    rest = Share(accelerator=Accelerator.CPU, by=CPU, nodes=2, line="log c")
    both = with_profile(Placement(shares=(*shares, rest), total_nodes=9), ort_profile(PROFILE), "")
    assert both is not None
    assert [(share.nodes, share.line.partition(" of ")[0]) for share in both.shares] == [
        (7, "log x; profile: 1"),
        (2, "log c; profile: 1"),
    ]
    assert both.warnings == ()


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{}", b"[]", b"[1, null]", b"[" * 200_000, b'{"a":' * 200_000, PROFILE[:-20], b"\xff\xfe"),
        json.dumps([node_event("a", "Conv", 1, -1)]).encode(),
        b'[{"cat":"Node","name":"a_kernel_time","ts":1,"dur":NaN,"args":{"op_name":"C","provider":"P"}}]',
        b'[{"cat":"Node","name":"a_kernel_time","ts":1,"dur":1e999,"args":{"op_name":"C","provider":"P"}}]',
    ],
    ids=lambda data: str(data[:20]),
)
def test_what_is_no_profile_yields_none(data: bytes) -> None:
    assert ort_profile(data) is None


VALUES = st.one_of(
    st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=5), st.just({"op_name": "Conv"})
)
KEYS = st.sampled_from(["cat", "name", "ts", "dur", "args"])
GARBLED = st.builds(lambda event, key, value: {**event, key: value}, st.sampled_from(EVENTS), KEYS, VALUES)


@given(events=st.lists(st.one_of(GARBLED, st.sampled_from(EVENTS), VALUES), max_size=4))
def test_no_event_raises_and_every_time_is_finite(events: list[object]) -> None:
    profile = ort_profile(json.dumps(events).encode())
    if profile is not None:
        assert all(0 <= each.ms < 1e12 and each.count > 0 for each in profile.operators)
        placement = profile_placement(profile)
        assert placement.total_nodes == sum(share.nodes or 0 for share in placement.shares)


@pytest.mark.skipif(
    find_spec("onnxruntime") is None or find_spec("onnx") is None, reason="onnxruntime is not installed"
)
def test_a_real_profile_shows_the_nodes_that_the_log_shows(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN, str(tmp_path / "profile")],
        capture_output=True,
        text=True,
        check=True,
    )
    profile = ort_profile(Path(ran.stdout.split()[-1]).read_bytes())
    logged = ort_placement(ran.stderr)
    assert profile is not None
    assert logged is not None
    profiled = profile_placement(profile)
    assert profiled.total_nodes == logged.total_nodes
    assert [(share.by, share.nodes, share.accelerator) for share in profiled.shares] == [
        (share.by, share.nodes, share.accelerator) for share in logged.shares
    ]
    assert {each.operator: each.count for each in profile.operators} == {"MatMul": 2, "Softmax": 1}
    both = with_profile(logged, profile, ran.stderr)
    assert both is not None
    assert both.warnings == logged.warnings
