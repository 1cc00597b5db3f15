"""What must not be taken for proof: what was given back, done again by the CPU, or was other hardware."""

import pytest

from farm.core.base.ids import AttemptId
from farm.core.runs.placement import Accelerator, Placement, Share, placement_text, resolve_actual_backend
from farm.core.runs.plan import EarlierPlacement, RunPlan
from farm.harness.base.log_lines import own_lines
from farm.harness.base.placement_probe import actual_backend_of_plan
from farm.harness.executorch.placement import executorch_placement
from farm.harness.nnapi.placement import nnapi_placement
from farm.harness.onnxruntime.placement import ort_placement
from farm.harness.tflite.placement import tflite_placement

CPU, UNKNOWN = Accelerator.CPU, Accelerator.UNKNOWN
#: How a shell, or simpleperf, was told to run it.
STARTED = (
    "$ simpleperf stat -e cpu-cycles ./onnxruntime_perf_test -e qnn -I m.onnx\nusing QNNExecutionProvider\n"
)
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
    found = resolve_actual_backend(tflite_placement(text), backend)
    return found.backend, found.accelerator


def test_two_models_of_one_log_are_added_up_and_one_that_is_told_twice_counts_once() -> None:
    first, second = replacing(60, 61, "TfLiteGpuDelegateV2"), replacing(5, 40, "TfLiteGpuDelegateV2")
    assert ran(first + second, "gpu") == ("gpu", Accelerator.GPU)
    found = tflite_placement(first + second + first)
    assert found is not None
    assert placement_text(found) == "gpu 65/101, cpu 36"


def test_nodes_that_were_returned_when_a_delegate_failed_are_the_cpus() -> None:
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


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("cpuFallbackFull", CPU),
        ("cpuFallbackPartial", UNKNOWN),
        ("CompilationBuilder::finish with CPU fallback", CPU),
    ],
)
def test_a_driver_that_failed_while_it_compiled_or_executed_is_not_what_ran(
    said: str, kind: Accelerator
) -> None:
    placed = logged("qti-dsp", "qti-dsp")
    assert resolve_actual_backend(nnapi_placement(placed), "nnapi").accelerator is Accelerator.DSP
    fell_back = f"06-02 10:00:02.100  811  830 I ExecutionBuilder: {said}\n"
    found = resolve_actual_backend(nnapi_placement(placed + fell_back), "nnapi")
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
    assert resolve_actual_backend(Placement(shares=shares), "nnapi").backend == "cpu"
    assert resolve_actual_backend(Placement(shares=shares[:1] + shares[2:]), "nnapi").backend == "nnapi"


def test_a_log_of_one_process_stays_as_short_as_it_was() -> None:
    line = logged("qti-dsp")
    folded = line.partition(" I ")[0] + " I chatty  : uid=2000 /data/local/tmp/bench identical 90000 lines\n"
    log = (line + folded) * 50
    own = own_lines(log + logged("qti-gpu").replace("811", "812"), 811)
    assert len(own) <= len(log)
    found = nnapi_placement(own)
    assert found is not None
    assert [(share.by, share.nodes) for share in found.shares] == [("qti-dsp", 50 * 90_001)]


@pytest.mark.parametrize(
    ("nodes", "partitions", "backend", "words"),
    [(60, 1, "gpu", "gpu 60"), (60, 9, "gpu", "gpu 60, cpu"), (2, 13, "cpu", "cpu 6, gpu 2")],
)
def test_partitions_without_a_total_leave_the_cpu_a_part(
    nodes: int, partitions: int, backend: str, words: str
) -> None:
    taken = f"Replacing {nodes} node(s) with delegate (TfLiteGpuDelegateV2) node"
    text = f"{taken}, yielding {partitions} partitions.\n"
    found = tflite_placement(text)
    assert found is not None
    assert (placement_text(found), resolve_actual_backend(found, "gpu").backend) == (words, backend)


def test_a_driver_that_returned_an_error_is_not_proven_by_its_name() -> None:
    taken = "NNAPI accelerator name: [qti-dsp]\n" + replacing(61, 61, "TfLiteNnapiDelegate")
    assert ran(taken, "nnapi") == ("nnapi", Accelerator.DSP)
    error = "ERROR: NN API returned error ANEURALNETWORKS_OP_FAILED at line 77 while running computation.\n"
    assert ran(taken + error, "nnapi") == ("nnapi", UNKNOWN)


def test_another_programs_option_is_no_provider_that_was_taken() -> None:
    found = ort_placement(STARTED)
    assert found is not None
    assert resolve_actual_backend(found, "qnn").accelerator is UNKNOWN


XNNPACK_CREATED = "INFO: Created TensorFlow Lite XNNPACK delegate for CPU.\n"
QNN_STARTED = "[INFO] [Qnn ExecuTorch]: Initialize Qnn backend parameters for Qnn executorch backend type 2\n"
QNN_SAID = (
    "Number of partitions supported by QNN EP: 1, number of nodes in the graph: 40, "
    "number of nodes supported by QNN: 40\n"
)
HTP_LIBRARY = "loaded /data/local/tmp/libQnnHtp.so\n"


@pytest.mark.parametrize(
    "failed",
    [
        "[ERROR] [Qnn ExecuTorch]: Can't create context from binary. Error 5005.\n",
        "[ERROR] [Qnn ExecuTorch]: Context could not be restored\n",
        "[ERROR] [Qnn ExecuTorch]: Fail to execute graph\n",
        "I 00:00:00.2 executorch:QnnManager.cpp:309] failed to restore the context from its cache\n",
    ],
)
def test_an_accelerator_that_failed_after_it_was_planned_did_not_run(failed: str) -> None:
    for parse, planned, backend in (
        (executorch_placement, QNN_STARTED, "qnn"),
        (ort_placement, QNN_SAID + HTP_LIBRARY, "qnn"),
        (tflite_placement, replacing(61, 61, "TfLiteQnnDelegate") + HTP_LIBRARY, "qnn"),
    ):
        assert resolve_actual_backend(parse(planned), backend).accelerator is Accelerator.NPU
        found = resolve_actual_backend(parse(planned + failed), backend)
        assert found.accelerator is UNKNOWN
        assert failed.split("]: ")[-1].strip() in found.proof


def test_operations_of_a_driver_whose_execution_failed_are_not_proven() -> None:
    found = nnapi_placement(logged("qti-dsp") + "E ExecutionBuilder: **Execution failed** (status 4)\n")
    assert found is not None
    assert resolve_actual_backend(found, "nnapi").accelerator is UNKNOWN


def test_an_earlier_proof_does_not_stand_in_for_an_accelerator_that_failed() -> None:
    share = Share(accelerator=Accelerator.NPU, by="QNN", line="QNN took all")
    shown = EarlierPlacement(attempt_id=AttemptId(7), placement=Placement(shares=(share,)))
    plan = RunPlan(harness="x", backend="qnn", files=(), argv=(), timeout_s=1.0, shown=shown)
    failed = executorch_placement(f"{QNN_STARTED}Can't create context from binary. Error 5005.\n")
    assert actual_backend_of_plan(plan, None)[0].accelerator is Accelerator.NPU
    assert actual_backend_of_plan(plan, failed)[0].accelerator is UNKNOWN


@pytest.mark.parametrize("backend", ["npu", "gpu", "nnapi", "qnn", "external"])
def test_that_xnnpack_was_created_beside_another_delegate_does_not_mean_the_cpu_ran(backend: str) -> None:
    assert resolve_actual_backend(tflite_placement(XNNPACK_CREATED, backend), backend).accelerator is UNKNOWN


@pytest.mark.parametrize(
    "dispatch",
    [
        "INFO: [dispatch_api.cc:71] Loading shared library: /data/local/tmp/libLiteRtDispatch_Qualcomm.so\n",
        "INFO: Initializing Dispatch API\n",
        "External delegate path : [/data/local/tmp/libQnnTFLiteDelegate.so]\n",
    ],
)
def test_nor_where_only_the_output_says_that_another_was_used(dispatch: str) -> None:
    assert ran(dispatch + XNNPACK_CREATED, "npu") == ("npu", UNKNOWN)
    assert ran(XNNPACK_CREATED, "xnnpack") == ("xnnpack", CPU)


def test_xnnpacks_part_leaves_open_who_did_the_rest_where_another_was_asked_for() -> None:
    part, whole = (replacing(nodes, 64, "TfLiteXNNPackDelegate") for nodes in (60, 64))
    assert resolve_actual_backend(tflite_placement(part, "gpu"), "gpu").accelerator is UNKNOWN
    assert ran(f"Use gpu : [1]\n{part}", "gpu") == ("gpu", UNKNOWN)
    assert resolve_actual_backend(tflite_placement(whole, "gpu"), "gpu").backend == "cpu"
    assert resolve_actual_backend(tflite_placement(part, "xnnpack"), "xnnpack").accelerator is CPU


@pytest.mark.parametrize("backend", ["nnapi", "qnn"])
def test_nodes_of_a_gpus_delegate_are_no_part_of_nnapi_or_qnn(backend: str) -> None:
    text = replacing(60, 61, "TfLiteGpuDelegateV2")
    assert resolve_actual_backend(tflite_placement(text, "gpu"), "gpu").accelerator is Accelerator.GPU
    assert resolve_actual_backend(tflite_placement(text, backend), backend).accelerator is UNKNOWN


def test_qnns_own_nodes_are_proven_by_any_of_its_names() -> None:
    library = "External delegate options : [backend_type:htp]\n"
    for name in ("TfLiteQnnDelegate", "EXTERNAL"):
        text = library + replacing(60, 61, name)
        assert resolve_actual_backend(tflite_placement(text, "qnn"), "qnn").accelerator is Accelerator.NPU


def test_one_of_the_two_ways_to_a_gpu_may_fail() -> None:
    text = replacing(61, 61, "TfLiteGpuDelegateV2") + "ERROR: Failed to create EGL context\n"
    assert ran(text, "gpu") == ("gpu", Accelerator.GPU)
