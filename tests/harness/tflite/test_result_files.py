"""benchmark_model's protobufs, from a pass of their own: what they add, and that its text says the same."""

import base64
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.runs.evidence import Evidence, ExitRecord, PassEvidence
from farm.core.runs.measurement import Reading
from farm.core.runs.placement import Accelerator, nodes_by_accelerator
from farm.harness.base.tool_harness import RESULT_FILES
from farm.harness.registry import get_harness
from farm.harness.tflite.benchmark_result import benchmark_result
from farm.harness.tflite.model_runtime_info import recorded_nodes
from farm.harness.tflite.output import tflite_output
from farm.harness.tflite.placement import tflite_placement
from tests.harness.external.samples import float_field, message_field, varint, varint_field
from tests.support.harness import tool_samples as sample

NAME = "benchmark_model"
IN_2020 = sample.output("benchmark_model_2020")
#: A pass of ten runs, as the tool prints it and as it writes it.
PASS_TEXT = (
    "INFO: count=10 first=11250 curr=11000 min=10500 max=12750 avg=11125 std=625"
    " p5=10625 median=11000 p95=12500\n"
    "INFO: Inference timings in us: Init: 9250, First inference: 13500, Warmup (avg): 12000,"
    " Inference (avg): 11125\n"
    "INFO: Memory footprint delta from the start of the tool (MB): init=2.5 overall=4.25\n"
    "INFO: Overall peak memory footprint (MB) via periodic monitoring: 13.5\n"
)
LATENCY_MS = {1: 11.125, 2: 10.5, 3: 12.75, 4: 0.625, 5: 11.0, 6: 10.625, 7: 12.5, 8: 9.25, 9: 13.5, 10: 12.0}
RESULT = (
    message_field(1, b"net")
    + message_field(2, b"".join(float_field(number, value) for number, value in LATENCY_MS.items()))
    + message_field(3, varint_field(1, 2560) + varint_field(2, 4352) + float_field(3, 13.5))
    + message_field(4, varint_field(2, 10) + varint_field(3, 3))
)


def node(
    number: int, *, delegate: str = "", replaces: range = range(0), taken_by: int | None = None
) -> bytes:
    content = varint_field(1, number) + message_field(2, delegate.encode() or b"CONV_2D")
    if delegate:
        packed = b"".join(map(varint, replaces))
        content += message_field(8, message_field(1, delegate.encode()) + message_field(2, packed))
    if taken_by is not None:
        content += varint_field(9, taken_by)
    return message_field(3, content)


def graph(*nodes: bytes, number: int = 0, kind: int = 1) -> bytes:
    edge = message_field(2, varint_field(1, 7) + message_field(2, b"weights"))
    return message_field(2, varint_field(1, number) + edge + b"".join(nodes) + varint_field(5, kind))


def partly_delegated(delegate: str, nodes: int, total: int, *, partitions: int = 1) -> bytes:
    """A graph of which a delegate took the first nodes."""
    own = [node(number, taken_by=total if number < nodes else None) for number in range(total)]
    size = nodes // partitions
    parts = [range(at * size, nodes if at == partitions - 1 else (at + 1) * size) for at in range(partitions)]
    return graph(*own, *(node(total + at, delegate=delegate, replaces=part) for at, part in enumerate(parts)))


def replacing(delegate: str, nodes: int, total: int, *, partitions: int = 1) -> str:
    return (
        f"INFO: Replacing {nodes} out of {total} node(s) with delegate ({delegate}) node,"
        f" yielding {partitions} partitions for subgraph 0.\n"
    )


def block(name: str, content: bytes) -> str:
    return f"\nbenchfarm_file {name}\n{base64.encodebytes(content).decode()}benchfarm_file_end\n"


def with_files(run: str, backend: str, *, code: int = 0, **files: bytes) -> Reading:
    settings: dict[str, Any] = {"result_file_path": True, "model_runtime_info_output_file": True}
    planned = sample.plan(NAME, backend, **settings)
    text = PASS_TEXT + "".join(block(f"{name}.pb", content) for name, content in files.items())
    ended = ExitRecord(code=code, duration_s=1.0)
    evidence: Evidence = replace(
        sample.evidence_of(planned, run), passes=(PassEvidence(name=RESULT_FILES, exit=ended, stdout=text),)
    )
    reading = get_harness(NAME).parse(planned, evidence)
    assert isinstance(reading, Reading)
    return reading


def test_one_pass_writes_the_files_and_the_measured_run_none() -> None:
    plain = sample.plan(NAME, "gpu")
    planned = sample.plan(NAME, "gpu", result_file_path=True, model_runtime_info_output_file=True)
    assert (planned.argv, plain.passes) == (plain.argv, ())
    [files] = planned.passes
    assert files.name == RESULT_FILES
    assert files.argv[:2] == ("sh", "-c")
    assert "for file in result.pb model_runtime_info.pb;" in files.argv[2]
    assert files.argv[3:5] == ("sh", *planned.argv[:1])
    assert {
        "--num_runs=10",
        "--result_file_path=${work}/result.pb",
        "--model_runtime_info_output_file=${work}/model_runtime_info.pb",
    } <= set(files.argv)
    [nodes_only] = sample.plan(NAME, "gpu", model_runtime_info_output_file=True).passes
    assert not [word for word in nodes_only.argv if "result" in word]


def test_the_protobuf_and_the_text_of_a_run_agree() -> None:
    printed, written = tflite_output(PASS_TEXT), benchmark_result(RESULT)
    assert written is not None
    assert printed.main is not None
    assert (written.runs, written.name) == (printed.main.count, "net")
    text_us = {
        "avg": printed.mean_us,
        "stddev": printed.main.values_us["std"],
        "init": printed.init_us,
        "first_inference": printed.first_us,
        "average_warm_up": printed.warmup_us,
        **{name: printed.main.values_us[name] for name in ("min", "max", "median", "p5", "p95")},
    }
    assert {name: value * 1e3 for name, value in written.latency_ms.items()} == pytest.approx(text_us)
    memory = [written.memory["init_footprint"] / 1024, written.memory["overall_footprint"] / 1024]
    assert [*memory, written.memory["peak_mem"]] == [printed.init_mb, printed.overall_mb, printed.peak_mb]


@pytest.mark.parametrize(
    ("delegate", "nodes", "partitions", "accelerator"),
    [
        ("TfLiteXNNPackDelegate", 64, 1, Accelerator.CPU),
        ("TfLiteXNNPackDelegate", 40, 2, Accelerator.CPU),
        ("TfLiteGpuDelegateV2", 64, 1, Accelerator.GPU),
        ("TfLiteGpuDelegateV2", 60, 3, Accelerator.GPU),
    ],
)
def test_the_nodes_of_the_protobuf_and_of_the_text_agree(
    delegate: str, nodes: int, partitions: int, accelerator: Accelerator
) -> None:
    requested = "xnnpack" if accelerator is Accelerator.CPU else "gpu"
    by_text = tflite_placement(replacing(delegate, nodes, 64, partitions=partitions), requested)
    recorded = recorded_nodes(partly_delegated(delegate, nodes, 64, partitions=partitions))
    assert recorded is not None
    by_file = tflite_placement("", requested, recorded.delegated)
    assert by_text is not None
    assert by_file is not None
    assert by_file.total_nodes == by_text.total_nodes == 64
    assert [replace(share, line="") for share in by_file.shares] == [
        replace(share, line="") for share in by_text.shares
    ]
    assert nodes_by_accelerator(by_file)[accelerator]


def test_nodes_of_the_protobuf_prove_what_the_text_does_not_show() -> None:
    assert with_files(IN_2020, "gpu").accelerator == "unknown"
    reading = with_files(IN_2020, "gpu", model_runtime_info=partly_delegated("TfLiteGpuDelegateV2", 60, 64))
    assert (reading.actual_backend, reading.accelerator) == ("gpu", "gpu")
    assert "model_runtime_info_output_file: 60 of 64 nodes of subgraph 0 by GPU" in reading.proof
    assert reading.placement is not None
    assert nodes_by_accelerator(reading.placement) == {Accelerator.GPU: 60, Accelerator.CPU: 4}


def test_a_model_without_a_delegates_node_is_the_cpus() -> None:
    reading = with_files(IN_2020, "gpu", model_runtime_info=graph(*map(node, range(64))))
    assert (reading.actual_backend, reading.accelerator) == ("cpu", "cpu")
    assert "64 nodes: none by a delegate" in reading.proof


def test_a_pass_that_was_placed_otherwise_than_the_run_proves_nothing_of_it() -> None:
    run = replacing("TfLiteGpuDelegateV2", 30, 64) + IN_2020
    reading = with_files(run, "gpu", model_runtime_info=partly_delegated("TfLiteGpuDelegateV2", 64, 64))
    assert reading.placement is not None
    assert nodes_by_accelerator(reading.placement) == {Accelerator.CPU: 34, Accelerator.GPU: 30}
    assert any("placed otherwise" in warning for warning in reading.placement.warnings)


@pytest.mark.parametrize("content", [b"", b"\xff" * 20, RESULT, message_field(2, b"\x18")])
def test_without_a_file_that_is_one_the_text_stays(content: bytes) -> None:
    run = replacing("TfLiteGpuDelegateV2", 64, 64) + IN_2020
    assert with_files(run, "gpu", model_runtime_info=content) == with_files(run, "gpu")
    failed = with_files(run, "gpu", code=1, result=RESULT, model_runtime_info=partly_delegated("X", 1, 2))
    assert failed == with_files(run, "gpu")


def test_start_up_and_memory_are_the_passes_only_where_the_run_did_not_print_them() -> None:
    older = "count=50 first=9 curr=9 min=700 max=1200 avg=1000 std=90\n"
    plain, filled = with_files(older, "cpu"), with_files(older, "cpu", result=RESULT)
    added = {"load_time": 9250, "memory_init": 2.5, "memory_overall": 4.25, "memory_peak": 13.5}
    assert sample.metrics(filled) == sample.metrics(plain) | added
    # Its times are another loop's.
    assert (filled.mean_ns, filled.median_ns) == (plain.mean_ns, plain.median_ns)
    whole = sample.metrics(with_files(IN_2020, "cpu", result=RESULT))
    assert whole["load_time"] == sample.metrics(with_files(IN_2020, "cpu"))["load_time"] != 9250


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 1e30])
def test_what_is_no_number_of_a_run_is_left_out(value: float) -> None:
    damaged = message_field(2, float_field(1, 1.0) + float_field(8, value))
    damaged += message_field(3, float_field(3, value))
    older = "count=50 first=9 curr=9 min=700 max=1200 avg=1000 std=90\n"
    assert with_files(older, "cpu", result=damaged) == with_files(older, "cpu")


def test_graphs_of_a_delegates_own_runtime_are_not_the_models() -> None:
    own = graph(*map(node, range(9)), number=1, kind=2)
    alone = recorded_nodes(partly_delegated("TfLiteGpuDelegateV2", 60, 64))
    assert recorded_nodes(partly_delegated("TfLiteGpuDelegateV2", 60, 64) + own) == alone


@given(content=st.binary(max_size=200))
def test_no_bytes_make_a_reader_raise(content: bytes) -> None:
    for data in (content, graph(message_field(3, content)), message_field(2, message_field(3, content))):
        recorded_nodes(data)
        benchmark_result(data)
    whole = partly_delegated("TfLiteGpuDelegateV2", 6, 9)
    recorded_nodes(whole[: len(content)] + content)
