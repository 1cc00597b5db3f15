"""Wordings of tools that few versions or one maker's build have, each with values of ours."""

import pytest

from farm.core.runs.placement import Accelerator, placement_text, resolve_actual_backend
from farm.harness.onnxruntime.placement import ort_placement
from farm.harness.tflite.output import operator_times, tflite_output
from farm.harness.tflite.placement import tflite_placement
from tests.support.harness import tool_samples as sample

SUMMARY = (
    "Inference timings in us: Init: 4100, First inference: 7300, Warmup (avg): 7150, Inference (avg): 7082.5"
)
LOOPS = """count=6 first=7300 curr=7100 min=7050 max=7300 avg=7150 std=80

count=64 first=7090 curr=7060 min=7020 max=7190 avg=7082.5 std=30
"""
FIRST_TOOL = """Initialized session in 0.0041s
Running benchmark for 1 iterations:
count=1 min=9147 max=9147 avg=9147 std=0
Running benchmark for 50 iterations:
count=50 min=8011 max=8311 avg=8066.4 std=52
Average inference timings in us: 8066 , Warmup: 9147,{end}
"""
TENSORFLOWS = """count=1 curr=33500
count=400 first=27100 curr=21900 min=20900 max=29800 avg=23601.1 std=1660
count=380 first=27200 curr=23100 min=21300 max=37100 avg=24724.8 std=1940
Average inference timings in us: Warmup: 33500, no stats: {mean}, with stats: 24724
"""
PROFILE = """Profiling Info for Benchmark Initialization:
============================== Summary by node type ==============================
AllocateTensors, 1, 1.356, 100.000%, 100.000%, 0.000, 1
Operator-wise Profiling Info for Regular Benchmark Runs:
============================== Summary by node type ==============================
[node type], [count], [avg ms], [avg %], [cdf %], [mem KB], [times called]
TfLiteXNNPackDelegate, 2, 9.125, 91.250%, 91.250%, 0.000, 2
Fully Connected (NC, QS8), 1, 0.875, 8.750%, 100.000%, 0.000, 1
Timings (microseconds): count=50 first=10100 curr=10010 min=9900 max=10200 avg=10000 std=60
Delegate internal:
============================== Summary by node type ==============================
Convolution (NHWC, F32) IGEMM, 35, 8.750, 100.000%, 100.000%, 0.000, 35
"""
CONTEXT = """[V:onnxruntime:, qnn.cc:1 PartitionCtxModel] Node supported: [1] index: [1] name: [net] \
Operator type: [EPContext] index: [1]
[I:onnxruntime:, qnn.cc:2 GetCapability] Number of partitions supported by QNN EP: 1, \
number of nodes in the graph: 3, number of nodes supported by QNN: 1
[V:onnxruntime:, session_state.cc:1 VerifyEachNodeIsAssignedToAnEp] Node(s) placed on \
[QNNExecutionProvider]. Number of nodes: 1
[V:onnxruntime:, session_state.cc:1 VerifyEachNodeIsAssignedToAnEp] Node(s) placed on \
[CPUExecutionProvider]. Number of nodes: 2
"""


def test_the_app_of_2019_ends_its_line_with_its_memory() -> None:
    text = (
        "06-02 10:00:01.500  8110  8130 E tflite  : Average inference timings in us: Warmup: 9147.1,"
        " Init: 4108, Inference: 8066.25Overall max resident set size = 24.7 MB, total malloc-ed"
    )
    assert sample.reading("benchmark_model", text).mean_ns == pytest.approx(8_066_250)
    assert sample.failure("benchmark_model", text.replace("Overall", "7 Overall")).line


@pytest.mark.parametrize("end", ["", " "])
def test_the_first_tool_says_its_mean_first(end: str) -> None:
    found = sample.reading("benchmark_model", FIRST_TOOL.format(end=end))
    assert (found.mean_ns, found.summed_samples) == (pytest.approx(8_066_000), 50)
    assert sample.metrics(found)["warmup"] == 9147


def test_the_loop_that_tensorflows_own_tool_profiles_is_not_its_mean() -> None:
    found = sample.reading("benchmark_model", TENSORFLOWS.format(mean=23601))
    assert (found.mean_ns, found.summed_samples) == (pytest.approx(23_601_000), 400)
    assert sample.failure("benchmark_model", TENSORFLOWS.format(mean=24724)).code == "run.output_unreadable"
    three = TENSORFLOWS.format(mean=23601).replace(", with stats: 24724", "")
    assert sample.failure("benchmark_model", three).code == "run.output_unreadable"


@pytest.mark.parametrize("prefix", ["", "12 ", "| ", "out.txt-", "[phone 3] ", "Mar 02 11:20:31 phone "])
def test_runs_are_counted_behind_what_is_no_known_prefix(prefix: str) -> None:
    text = "\n".join(f"{prefix} {line}" for line in (LOOPS + SUMMARY).splitlines())
    found = sample.reading("benchmark_model", text)
    assert (found.mean_ns, found.summed_samples) == (pytest.approx(7_082_500), 64)


@pytest.mark.parametrize("prefix", ["12 ", "| ", "[phone 3] ", "Mar 02 11:20:31 phone "])
def test_what_onnxruntime_says_is_read_behind_what_is_no_known_prefix(prefix: str) -> None:
    text = "\n".join(f"{prefix}{line}" for line in sample.output("ort_newer").splitlines())
    found = sample.reading("onnxruntime_perf_test", text)
    assert (found.mean_ns, found.summed_samples) == (pytest.approx(6_250_000), 4)
    assert "load_time" in sample.metrics(found)


@pytest.mark.parametrize(
    "line",
    [
        "Timings (microseconds): count=64 first=9090 curr=9060 min=9020 max=9190 avg=9082.5 std=30",
        "INFO: Memory (bytes): count=0",
        "cache: count=7",
        "INFO: 3 caches count=7",
        "INFO: cpu w/ 4 threads (xnnpack): count=50 first=9192 curr=8624 min=8059 max=9952 avg=8220.2 std=73",
        "recount=64 first=9090 curr=9060 min=9020 max=9190 avg=9082.5 std=30",
    ],
)
def test_a_count_of_something_else_is_no_loop(line: str) -> None:
    found = tflite_output(f"{line}\n{LOOPS}{line}\n{SUMMARY}\n{line}\n")
    assert (found.mean_us, found.contradicts) == (7082.5, False)
    assert found.main is not None
    assert found.main.count == 64


def test_a_profile_apart_by_commas_is_read_and_a_delegates_inside_is_not_counted_twice() -> None:
    assert [(each.operator, each.count, each.ms) for each in operator_times(PROFILE)] == [
        ("TfLiteXNNPackDelegate", 2, 9.125),
        ("Fully Connected (NC, QS8)", 1, 0.875),
    ]


def test_a_profile_of_2019_has_no_heading() -> None:
    text = """============================== Summary by node type ==============================
\t             [Node type]\t  [count]\t  [avg ms]\t    [avg %]\t    [cdf %]\t  [mem KB]\t[times called]
\t                DELEGATE\t        1\t    21.250\t    91.250%\t    91.250%\t     0.000\t        1
"""
    assert [(each.operator, each.count) for each in operator_times(text)] == [("DELEGATE", 1)]


def test_memory_behind_the_table_of_the_native_tool_is_told() -> None:
    memory = """INFO: [benchmark_litert_model.h:111] Init footprint:       54.25 MB
INFO: [benchmark_litert_model.h:113] Overall footprint:    73.50 MB
INFO: [benchmark_litert_model.h:118] Peak memory:          81.75 MB
"""
    told = sample.metrics(sample.reading("benchmark_model", sample.output("litert_native") + memory))
    assert (told["memory_init"], told["memory_overall"], told["memory_peak"]) == (54.25, 73.5, 81.75)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("INFO: Hexagon delegate: 71 nodes delegated out of 74 nodes.", "dsp 71/74, cpu 3"),
        (
            "INFO: CoreML delegate: 61 nodes delegated out of 66 nodes, with 2 partitions.",
            "unknown 61/66, cpu 5",
        ),
        ("Number of subgraphs:2 , 41 nodes delegated out of 44 nodes", "unknown 41/44, cpu 3"),
        (
            " Preliminary number of subgraphs:3 , 107 nodes delegated out of 110 nodes",
            "unknown 107/110, cpu 3",
        ),
        ("INFO: EthosuDelegate: 1 nodes delegated out of 1 nodes with 1 partitions.", "npu 1/1"),
        (
            "INFO: Vx Delegate delegate: 30 nodes delegated out of 31 nodes with 1 partitions.",
            "unknown 30/31, cpu 1",
        ),
        (
            "INFO: [Qnn Delegate] QNN delegate: 47 nodes delegated out of 48 nodes with 1 partitions.",
            "unknown 47/48, cpu 1",
        ),
    ],
)
def test_makers_words_for_what_their_delegates_took_are_read(line: str, words: str) -> None:
    found = tflite_placement(f"EXTERNAL delegate created.\n{line}\n")
    assert found is not None
    assert placement_text(found) == words


def test_core_ml_says_its_partitions_behind_a_comma() -> None:
    found = tflite_placement("CoreML delegate: 61 nodes delegated out of 66 nodes, with 2 partitions.\n")
    assert found is not None
    assert [share.partitions for share in found.shares] == [2, None]


def test_what_two_lines_say_of_one_delegate_is_counted_once() -> None:
    text = (
        "INFO: Vx Delegate delegate: 31 nodes delegated out of 31 nodes with 1 partitions.\n"
        "VERBOSE: Replacing 31 out of 31 node(s) with delegate (Vx Delegate) node, yielding 1 partitions"
        " for the whole graph.\n"
    )
    found = tflite_placement(text)
    assert found is not None
    assert [(share.by, share.nodes) for share in found.shares] == [("Vx", 31)]


def test_a_network_that_nxps_compiler_made_one_node_of_is_no_fall_back() -> None:
    text = "NeutronDelegate: 1 nodes delegated out of 3 nodes with 1 partitions\n"
    ran = resolve_actual_backend(tflite_placement(text), "external")
    assert (ran.backend, ran.accelerator) == ("external", Accelerator.NPU)
    many = tflite_placement(text.replace("1 nodes", "9 nodes").replace("of 3", "of 31"))
    assert resolve_actual_backend(many, "external").backend == "cpu"


def test_a_command_that_names_the_cpu_is_no_doubt_about_it() -> None:
    text = f"phone:/ $ ./onnxruntime_perf_test -e cpu -r 4 -I net.onnx\n{sample.output('ort_newer')}"
    found = sample.reading("onnxruntime_perf_test", text)
    assert (found.actual_backend, found.accelerator) == ("cpu", "cpu")
    other = sample.reading("onnxruntime_perf_test", text.replace("-e cpu", "-e nnapi"), backend="nnapi")
    assert (other.actual_backend, other.accelerator) == ("nnapi", "unknown")


def test_a_context_of_qnn_is_one_node_of_its_file_and_no_fall_back() -> None:
    found = ort_placement(CONTEXT)
    assert found is not None
    assert [(share.by, share.nodes, share.partitions) for share in found.shares] == [
        ("QNNExecutionProvider", None, 1),
        ("CPUExecutionProvider", 2, None),
    ]
    assert resolve_actual_backend(found, "qnn").backend == "qnn"
    alone = ort_placement(CONTEXT.partition("\n")[2])
    assert alone is not None
    assert resolve_actual_backend(alone, "qnn").backend == "cpu"


def test_a_summary_of_several_options_is_no_measurement_of_one() -> None:
    text = """==============Summary of All Runs w/ Different Performance Options==============
INFO:           cpu w/ 4 threads: count=50 first=4893 curr=3267 min=3091 max=7476 avg=3904.9 std=180
INFO:                gpu-default: count=50 first=9303 curr=8209 min=6501 max=9306 avg=7705.5 std=70
"""
    assert sample.failure("benchmark_model", text).code == "run.output_unreadable"


@pytest.mark.parametrize(
    "warned",
    ["nnapi error: unable to open library libneuralnetworks.so", "WARNING: no cache. Falling back to none."],
)
def test_a_run_on_the_cpu_stays_so_whatever_it_warns_of(warned: str) -> None:
    text = f"Use nnapi : [0]\n{warned}\n{LOOPS}{SUMMARY}\n"
    found = sample.reading("benchmark_model", text, backend="cpu")
    assert (found.accelerator, found.actual_backend, found.placement) == ("cpu", "cpu", None)
