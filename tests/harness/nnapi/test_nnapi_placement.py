"""NNAPI's partitioner in the phone's log: any Android, MediaTek's own, folded lines, other processes."""

import pytest

from farm.core.runs.placement import Accelerator, Placement, placement_text, resolve_actual_backend
from farm.harness.base.accelerators import accelerator_of
from farm.harness.base.log_lines import log_lines
from farm.harness.nnapi.placement import nnapi_accelerators, nnapi_placement
from farm.harness.tflite.placement import tflite_placement

HEAD = "08-11 07:01:02.{:03}  7001  7001 I ExecutionPlan: "
BEST = "ModelBuilder::findBestDeviceForEachOperation({}) = {} ({})\n"


def log(*lines: str) -> str:
    return "".join(HEAD.format(at) + line for at, line in enumerate(lines))


def placed(text: str) -> Placement:
    found = nnapi_placement(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "operation",
    ["CONV_2D", "CONV_2D:17", "OEM_OPERATION", "ADD"],
)
def test_each_operation_is_counted_for_its_driver(operation: str) -> None:
    text = log(
        *[BEST.format(operation, 1, "mtk-neuron_shim")] * 5, BEST.format(operation, 3, "nnapi-reference")
    )
    assert placement_text(placed(text)) == "npu 5/6, cpu 1"


def test_the_cpu_is_named_in_three_ways() -> None:
    text = log(
        BEST.format("ADD", 1, "CPU"),
        BEST.format("WHILE:3", -1, "NNAPI"),
        BEST.format("ADD", 2, "nnapi-reference"),
    )
    assert placement_text(placed(text)) == "cpu 3/3"


def test_lines_that_the_log_folded_count_as_often_as_they_were_written() -> None:
    folded = (
        "08-11 07:01:02.009  7001  7001 I chatty  : uid=2000(shell) /data/local/tmp/bench identical 3 lines\n"
    )
    text = log(BEST.format("MUL", 0, "qti-gpu")) + folded + log(BEST.format("MUL", 0, "qti-gpu"))
    assert placement_text(placed(text)) == "gpu 5/5"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            [
                "ModelBuilder::partitionTheWork: deviceCount = 3, operationCount = 66\n",
                "ModelBuilder::partitionTheWork: only one best device: 0 = google-edgetpu\n",
            ],
            "npu 66/66",
        ),
        (["MtkModelBuilder::partitionTheWorkExt: only one best device: 1 = mtk-dsp\n"], "dsp"),
        (["Step#0: execute on qti-dsp\n", "Step#1: execute on nnapi-reference\n"], "dsp, cpu"),
        (["ExecutionStep#0 for qti-dsp\n", "ExecutionStep#1 for nnapi-reference\n"], "dsp, cpu"),
        (
            [
                "ExecutionStep#0 for hvx submodel: {.operands = [3]}\n",
                "ExecutionStep#1 for CPU submodel: {}\n",
            ],
            "dsp, cpu",
        ),
        (["ExecutionStep::finishSubModel, compilation on qti-gpu\n"], "gpu"),
        (["SIMPLE for google-edgetpu\n"], "npu"),
    ],
)
def test_without_a_line_for_each_operation_the_devices_are_told(lines: list[str], words: str) -> None:
    assert placement_text(placed(log(*lines))) == words


@pytest.mark.parametrize(
    ("numbers", "steps", "words"),
    [
        ([0, 0, 0, 1], ["hvx", "CPU"], "dsp 3/4, cpu 1"),
        ([0, 1, 1, 1], ["hvx", "CPU"], "cpu 3/4, dsp 1"),
        # Of two drivers nobody knows which has which number.
        ([0, 1, 1, 2], ["hvx", "sample", "CPU"], "dsp, cpu"),
    ],
)
def test_android_9_numbers_the_drivers_and_the_cpu_is_the_last(
    numbers: list[int], steps: list[str], words: str
) -> None:
    text = log(
        f"ModelBuilder::partitionTheWork: deviceCount = {len(steps)}, operationCount = {len(numbers)}\n",
        *(f"ModelBuilder::findBestDeviceForEachOperation(ADD) = {number}\n" for number in numbers),
        *(f"ExecutionStep#{at} for {name} submodel: {{}}\n" for at, name in enumerate(steps)),
    )
    assert placement_text(placed(text)) == words


def test_an_execution_that_failed_is_a_warning() -> None:
    text = (
        log(BEST.format("ADD", 0, "qti-dsp"))
        + "08-11 07:01:02.100  7001  7001 I Manager : **Execution failed**\n"
    )
    assert "Execution failed" in placed(text).warnings[0]


def test_steps_are_the_partitions() -> None:
    text = log(
        BEST.format("ADD", 0, "qti-dsp"),
        BEST.format("SIN", 2, "nnapi-reference"),
        "Step#0: execute on qti-dsp\n",
        "Step#1: execute on nnapi-reference\n",
        "Step#2: execute on qti-dsp\n",
    )
    assert {share.by: share.partitions for share in placed(text).shares} == {
        "qti-dsp": 2,
        "nnapi-reference": 1,
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I Manager : Found interface google-edgetpu\n",
        "I Manager : findAvailableDevices\nI Manager : Found interface qti-dsp (version = 1.3)\n",
        "NNAPI accelerators available: [qti-dsp,nnapi-reference]\n",
    ],
)
def test_a_driver_that_is_there_has_nothing_yet(text: str) -> None:
    assert nnapi_placement(text) is None


def test_a_driver_that_the_manifest_lacks_is_a_warning() -> None:
    text = (
        "08-11 07:01:02.001  7001  7001 I Manager : Found interface armnn\n"
        "08-11 07:01:02.001   410   410 W hwservicemanager: getTransport: Cannot find entry "
        "android.hardware.neuralnetworks@1.0::IDevice/armnn in either framework or device manifest.\n"
    )
    found = placed(text)
    assert found.shares == ()
    assert "manifest" in found.warnings[0]
    assert resolve_actual_backend(found, "nnapi").accelerator is Accelerator.UNKNOWN


def test_of_two_processes_the_one_that_counts_is_taken_and_else_none() -> None:
    ours, theirs = log(BEST.format("ADD", 0, "qti-dsp")), log(BEST.format("ADD", 1, "nnapi-reference"))
    both = ours + theirs.replace(" 7001 ", " 812 ")
    assert nnapi_placement(both, 7001) == nnapi_placement(ours)
    assert placed(both).shares == ()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("SIMPLE for qti-dsp\n", "SIMPLE for nnapi-reference\n"),
        (
            "ModelBuilder::findBestDeviceForEachOperation(ADD) = 0\n",
            "ExecutionStep::finishSubModel, compilation on qti-gpu\n",
        ),
    ],
)
def test_of_two_processes_that_tell_less_none_is_taken_either(ours: str, theirs: str) -> None:
    assert placed(log(ours) + log(theirs).replace(" 7001 ", " 812 ")).shares == ()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("qti-dsp", "dsp"),
        ("qti-gpu", "gpu"),
        ("qti-hta", "npu"),
        ("qti-default", "unknown"),
        ("google-edgetpu", "npu"),
        ("mtk-mdla", "npu"),
        ("mtk-mdla_shim", "npu"),
        ("mtk-neuron", "npu"),
        ("mtk-dsp_shim", "dsp"),
        ("mtk-gpu", "gpu"),
        ("enn", "npu"),
        ("eden", "npu"),
        ("eden-drv", "npu"),
        ("ipuadaptor", "npu"),
        ("paintbox", "npu"),
        ("nnapi-reference", "cpu"),
        ("nnapi-sample_all", "cpu"),
        ("sample-driver-float-fast", "cpu"),
        ("liteadaptor", "unknown"),
        ("armnn", "unknown"),
        ("NnapiExecutionProvider", "unknown"),
        ("QNNExecutionProvider", "unknown"),
        ("VulkanBackend", "gpu"),
        ("XnnpackBackend", "cpu"),
        ("CPUExecutionProvider", "cpu"),
        ("libedgetpu_client.google.so", "npu"),
        ("", "unknown"),
    ],
)
def test_names_tell_the_hardware_where_they_do(name: str, kind: str) -> None:
    assert accelerator_of(name) == kind


def test_what_models_may_be_put_on_is_named_once_each() -> None:
    text = (
        "08-01 10:00:01.101  711  733 I Manager : Found interface acme-npu\r\n"
        "08-01 10:00:01.104  711  733 I Manager : Found interface acme-isp (version = 1.3)\r\n"
        "INFO: NNAPI accelerators available: [acme-gpu,acme-npu,nnapi-reference]\n"
        "I tflite  : NNAPI accelerators available: [acme-gpu,acme-npu,nnapi-reference]\n"
    )
    assert nnapi_accelerators(log_lines(text)) == ("acme-gpu", "acme-npu", "nnapi-reference", "acme-isp")


@pytest.mark.parametrize(
    "text",
    [
        "NNAPI accelerators available: [acme-npu,acme",
        "NNAPI accelerators available: []\n",
        "NNAPI accelerators available: [acme npu]\n",
        "Found no interface\n",
    ],
)
def test_a_list_that_is_cut_or_empty_names_none(text: str) -> None:
    assert nnapi_accelerators(log_lines(text)) == ()


def test_what_was_offered_stands_beside_what_took_the_model_and_proves_nothing() -> None:
    text = (
        "INFO: NNAPI accelerators available: [acme-npu,nnapi-reference]\n"
        "INFO: Replacing 20 node(s) with delegate (TfLiteNnapiDelegate) node, yielding 1 partitions.\n"
    )
    found = tflite_placement(text)
    assert found is not None
    assert found.offered == ("acme-npu", "nnapi-reference")
    assert {share.accelerator for share in found.shares} == {Accelerator.UNKNOWN}
    assert placed(log(BEST.format("ADD", 1, "acme-npu"), "Found interface acme-npu\n")).offered == (
        "acme-npu",
    )


def test_a_list_of_accelerators_that_is_cut_takes_no_time() -> None:
    names = ",".join(
        f"{vendor}-{part}" for vendor in ("qti", "mtk", "acme") for part in ("gpu", "dsp", "hta")
    )
    line = "NNAPI accelerators available: ["
    assert nnapi_accelerators(log_lines(f"{line}{names}]\n")) == tuple(names.split(","))
    # With the pattern that this replaced, each of these would have taken longer than the machine lasts.
    assert nnapi_accelerators(log_lines(f"{line}{names}\n{line}{names * 40}\n{line}{names},,]\n")) == ()
