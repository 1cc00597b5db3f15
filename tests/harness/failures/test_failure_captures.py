"""Why runs gave no numbers, from what phones and adb printed."""

import pytest

from farm.core.errors import Blame
from farm.core.runs.measurement import Outcome
from farm.harness.failures.classification import classify
from farm.harness.failures.patterns import RUNTIME_PATTERNS
from tests.support.harness import tool_samples as sample
from tests.support.harness.run_samples import evidence

TORCH, TFLITE, STATE = "speed_benchmark_torch/", "benchmark_model/", "device-state/"
F, U, I = Outcome.FAILED, Outcome.UNSUPPORTED, Outcome.INCONCLUSIVE  # noqa: E741
CASES = [
    (f"{TORCH}err_bad_cast_abort_assertion.txt", "run.crashed", F, Blame.VARIANT, "std::bad_cast"),
    (
        f"{TORCH}err_cannot_link_needed_by_main_executable.txt",
        "run.cannot_link",
        F,
        Blame.VARIANT,
        "libc++_shared",
    ),
    (
        f"{TORCH}err_cant_execute_permission_denied_sdcard.txt",
        "run.not_executable",
        I,
        Blame.DEVICE,
        "/sdcard",
    ),
    (
        f"{TORCH}err_missing_ops_lite_interpreter_1.9.txt",
        "variant.missing_operator",
        U,
        Blame.VARIANT,
        "roi_align",
    ),
    (
        f"{TORCH}err_model_central_directory_native_terminate.txt",
        "variant.unreadable",
        F,
        Blame.VARIANT,
        "central",
    ),
    (f"{TORCH}err_nnapi_model_load_nonetype.txt", "variant.too_new", U, Blame.VARIANT, "NoneType"),
    (f"{TORCH}err_not_executable_64bit_elf.txt", "run.wrong_abi", U, Blame.VARIANT, "64-bit ELF"),
    (
        f"{TORCH}err_vulkan_device_unsupported_unpickler_1.10.txt",
        "run.backend_missing",
        U,
        Blame.VARIANT,
        "VULKAN",
    ),
    (f"{TORCH}sbt_err_segfault_optimized_model_pixel3a.txt", "run.crashed", F, Blame.VARIANT, "Segmentation"),
    (
        f"{TORCH}sbt_err_vulkan_missing_op_linker_warning.txt",
        "variant.missing_operator",
        U,
        Blame.VARIANT,
        "aten::as_strided",
    ),
    (
        f"{TFLITE}benchmark_model_2.4_nnapi_qtidefault_opfailed_mi11.txt",
        "run.nnapi_refuses",
        U,
        Blame.VARIANT,
        "ANEURALNETWORKS_OP_FAILED at line 3779",
    ),
    (
        f"{TFLITE}litert_benchmark_model_int8_batchmatmul_prepare_fail.txt",
        "variant.node_refused",
        U,
        Blame.VARIANT,
        "BATCH_MATMUL",
    ),
    (
        "accelerator/tflite_external_delegate_edgetpu_segfault.txt",
        "run.crashed",
        F,
        Blame.VARIANT,
        "Segmentation",
    ),
    (f"{STATE}adb_err_push_no_space_windows.txt", "device.storage_full", I, Blame.DEVICE, "No space left"),
    (f"{STATE}adb_install_not_enough_space_a11.txt", "device.storage_full", I, Blame.DEVICE, "enough space"),
    (f"{STATE}adb_err_insufficient_permissions.txt", "host.usb_denied", I, Blame.HOST, "insufficient"),
    (f"{STATE}adb_sideload_device_offline.txt", "device.offline", I, Blame.DEVICE, "offline"),
]


@pytest.mark.parametrize(("name", "code", "outcome", "blame", "words"), CASES)
@pytest.mark.parametrize(
    "prefix", ["", "E/AndroidRuntime( 77): ", "07-02 11:20:31.402  8123  8140 E app  : "]
)
def test_what_a_phone_printed_is_a_kind_of_failure_with_the_line_that_shows_it(
    name: str, code: str, outcome: Outcome, blame: Blame, words: str, prefix: str
) -> None:
    lines = sample.captured(name).splitlines()
    text = "\r\n".join(f"{prefix}{line}" for line in lines)
    failure = classify(evidence(stderr=text, code=1), patterns=RUNTIME_PATTERNS)
    assert failure is not None
    assert (failure.code, failure.outcome, failure.blame) == (code, outcome, blame)
    assert failure.line is not None
    assert words.lower() in failure.line.lower()


@pytest.mark.parametrize(("name", "code", "outcome", "blame", "words"), CASES)
def test_it_is_seen_on_stdout_as_well(
    name: str, code: str, outcome: Outcome, blame: Blame, words: str
) -> None:
    failure = classify(evidence(sample.captured(name), code=1), patterns=RUNTIME_PATTERNS)
    assert failure is not None
    assert (failure.code, failure.outcome, failure.blame) == (code, outcome, blame)
    assert words.lower() in str(failure.line).lower()
