"""Why a run gave no numbers, from texts of the kind that phones print."""

from dataclasses import replace

import pytest

from farm.core.base.ids import digest_of
from farm.core.errors import Blame, ControlImpossible
from farm.core.runs.evidence import Evidence, RunError
from farm.core.runs.measurement import Outcome
from farm.harness.failures.classification import classify
from farm.harness.failures.patterns import RUNTIME_PATTERNS
from tests.support.harness import run_samples as sample

LINKER = 'CANNOT LINK EXECUTABLE "./sbt": library "libvendor.so" not found: needed by main executable'
THROWN = "terminate called after throwing an instance of 'c10::Error'\n  what():  {}\n"


def test_trouble_of_the_agent_keeps_its_code_and_blame() -> None:
    error = RunError(
        code="device.offline", blame=Blame.DEVICE, transient=True, message="gone", hint="plug it in"
    )
    failure = classify(Evidence(fence=7, error=error))
    assert failure is not None
    assert (failure.code, failure.outcome, failure.blame) == (
        "device.offline",
        Outcome.INCONCLUSIVE,
        Blame.DEVICE,
    )
    assert (failure.message, failure.hint) == ("gone", "plug it in")


def test_what_a_phone_can_never_be_set_to_is_unsupported_there() -> None:
    error = ControlImpossible("phone-1 has no root, which is required to set clocks and cores")
    error = RunError(
        code=error.code,
        blame=error.blame,
        transient=error.transient,
        message=error.message,
        hint=error.hint,
    )
    failure = classify(Evidence(fence=7, error=error))
    assert failure is not None
    assert (failure.outcome, failure.blame) == (Outcome.UNSUPPORTED, Blame.USER)


def test_evidence_without_exit_record_or_trouble_is_the_agents_doing() -> None:
    failure = classify(Evidence(fence=7))
    assert failure is not None
    assert (failure.outcome, failure.blame) == (Outcome.INCONCLUSIVE, Blame.HOST)


def test_a_program_that_never_ends_is_the_variants_doing_and_shows_where_it_was() -> None:
    failure = classify(sample.evidence("Starting benchmark.\nMain runs.\n", code=137, timed_out=True))
    assert failure is not None
    assert (failure.code, failure.outcome, failure.blame) == ("run.timed_out", Outcome.FAILED, Blame.VARIANT)
    assert failure.line == "Main runs."
    assert "12.5 s" in failure.message


def test_a_program_that_ends_well_has_not_failed() -> None:
    assert classify(sample.evidence("anything")) is None


@pytest.mark.parametrize(
    ("code", "stderr", "expected", "outcome"),
    [
        (1, LINKER, "run.cannot_link", Outcome.FAILED),
        (126, "sh: ./sbt: not executable: 64-bit ELF file", "run.wrong_abi", Outcome.UNSUPPORTED),
        (
            126,
            "sh: ./sbt: cannot execute binary file: Exec format error",
            "run.wrong_abi",
            Outcome.UNSUPPORTED,
        ),
        (126, "sh: ./sbt: can't execute: Permission denied", "run.not_executable", Outcome.INCONCLUSIVE),
        (127, "sh: ./sbt: inaccessible or not found", "run.not_found", Outcome.UNSUPPORTED),
        (127, "env: 'some-python': No such file or directory", "run.not_found", Outcome.UNSUPPORTED),
        (1, "Failed to parse command line flags!", "run.bad_flags", Outcome.FAILED),
        (
            1,
            "C10 flag: unrecognized commandline argument: --bogus=1\nFailed to parse command line flags!",
            "run.unknown_flag",
            Outcome.UNSUPPORTED,
        ),
        (1, "ERROR: unknown command line flag 'bogus'", "run.unknown_flag", Outcome.UNSUPPORTED),
        (
            134,
            "Caffe2 flag: unrecognized commandline argument: --bogus=1\n" + THROWN.format("other"),
            "run.crashed",
            Outcome.FAILED,
        ),
        (
            134,
            THROWN.format(
                "[enforce fail at nnapi_wrapper.cpp:344] handle. Failed to load libneuralnetworks.so"
            ),
            "run.nnapi_missing",
            Outcome.UNSUPPORTED,
        ),
        (
            134,
            THROWN.format("[enforce fail at nnapi_wrapper.cpp:90] nnapi_.Execution_compute. "),
            "run.nnapi_refuses",
            Outcome.UNSUPPORTED,
        ),
        (
            134,
            THROWN.format(
                "[enforce fail at nnapi_wrapper.cpp:90] ret == ANEURALNETWORKS_NO_ERROR."
                " Compilation_finish failed with error 4"
            ),
            "run.nnapi_refuses",
            Outcome.UNSUPPORTED,
        ),
        (
            134,
            THROWN.format("Lite Interpreter version number does not match. The model version must be"),
            "variant.too_new",
            Outcome.UNSUPPORTED,
        ),
        (
            134,
            THROWN.format("Flatbuffer input file but the build hasn't enabled flatbuffer"),
            "variant.format_missing",
            Outcome.UNSUPPORTED,
        ),
        (1, "Model has only 1 bundled inputs.", "variant.no_bundled_input", Outcome.FAILED),
        (1, "write: No space left on device", "device.storage_full", Outcome.INCONCLUSIVE),
        (134, THROWN.format("std::bad_alloc"), "run.out_of_memory", Outcome.UNSUPPORTED),
        (
            134,
            THROWN.format("Following ops cannot be found: {a::b}"),
            "variant.missing_operator",
            Outcome.UNSUPPORTED,
        ),
        (134, THROWN.format("PytorchStreamReader failed"), "variant.unreadable", Outcome.FAILED),
        (
            134,
            THROWN.format("PyTorch is not linked with support for vulkan devices"),
            "run.backend_missing",
            Outcome.UNSUPPORTED,
        ),
        (134, THROWN.format("something else"), "run.crashed", Outcome.FAILED),
        (132, "", "run.illegal_instruction", Outcome.UNSUPPORTED),
        (137, "Killed", "run.killed", Outcome.INCONCLUSIVE),
        (139, "Segmentation fault", "run.crashed", Outcome.FAILED),
        (3, "some reason", "run.failed", Outcome.FAILED),
    ],
)
def test_what_the_program_said_decides_then_its_exit_code(
    code: int, stderr: str, expected: str, outcome: Outcome
) -> None:
    failure = classify(sample.evidence("Main runs.\n", code=code, stderr=stderr))
    assert failure is not None
    assert (failure.code, failure.outcome) == (expected, outcome)
    assert "speed_benchmark_torch" in failure.message
    assert f"exit code {code}" in failure.message


@pytest.mark.parametrize(
    ("said", "flag"),
    [
        ("C10 flag: unrecognized commandline argument: --pthreadpool_size=1", "--pthreadpool_size"),
        ("ERROR: unknown command line flag 'vulkan'", "vulkan"),
        ("use_caching_allocator is not available: Python does not offer it.", "use_caching_allocator"),
    ],
)
def test_a_flag_that_the_program_does_not_have_is_named(said: str, flag: str) -> None:
    failure = classify(sample.evidence(code=1, stderr=said))
    assert failure is not None
    assert failure.message == f"speed_benchmark_torch does not have the flag {flag} (exit code 1)"


def test_the_line_that_shows_a_failure_is_quoted_alone() -> None:
    failure = classify(sample.evidence(code=1, stderr=f"noise before\r\n{LINKER}\r\nnoise after\r\n"))
    assert failure is not None
    assert failure.line == LINKER


def test_a_message_leaves_the_line_to_whoever_shows_both() -> None:
    failure = classify(sample.evidence(code=1, stderr=LINKER))
    assert failure is not None
    assert LINKER not in failure.message


def test_a_program_that_is_called_by_its_digest_is_called_the_program() -> None:
    evidence = sample.evidence(code=139)
    cached = f"/data/local/tmp/benchfarm/cache/{digest_of(b'program')}"
    failure = classify(replace(evidence, argv=(cached, *evidence.argv[1:])))
    assert failure is not None
    assert failure.message.startswith("the program ")


def test_an_error_behind_tracebacks_of_torchscript_is_the_one_quoted() -> None:
    said = THROWN.format(
        "The operation failed in the interpreter.\n  File x, line 1\nRuntimeError: wrong shape"
    )
    failure = classify(sample.evidence(code=134, stderr=said))
    assert failure is not None
    assert failure.line == "RuntimeError: wrong shape"


def test_a_program_that_dies_in_silence_is_said_to_have_printed_nothing() -> None:
    failure = classify(sample.evidence(code=139))
    assert failure is not None
    assert "printed nothing" in failure.message
    assert "SIGSEGV" in failure.message


@pytest.mark.parametrize(
    ("said", "code", "outcome", "blame"),
    [
        ("lowmemorykiller: Kill 'bench' (812), adj 0", "run.killed", Outcome.INCONCLUSIVE, Blame.DEVICE),
        (
            "lmkd: Kill 'bench' (812), uid 2000, oom_score_adj 0",
            "run.killed",
            Outcome.INCONCLUSIVE,
            Blame.DEVICE,
        ),
        (
            "Failure [INSTALL_FAILED_INSUFFICIENT_STORAGE]",
            "device.storage_full",
            Outcome.INCONCLUSIVE,
            Blame.DEVICE,
        ),
        ("open /dev/npu0: Permission denied", "run.permission_denied", Outcome.FAILED, Blame.VARIANT),
        ("Fatal signal 6 (SIGABRT), code -1 in tid 8 (bench)", "run.crashed", Outcome.FAILED, Blame.VARIANT),
        ("adb: error: device offline", "device.offline", Outcome.INCONCLUSIVE, Blame.DEVICE),
        ("no permissions (user in plugdev group?)", "host.usb_denied", Outcome.INCONCLUSIVE, Blame.HOST),
        *(
            (text, "host.several_devices", Outcome.INCONCLUSIVE, Blame.HOST)
            for text in (
                "error: more than one device/emulator",
                "adb: more than one device/emulator",
                "adb.exe: more than one emulator",
                "adb: error: more than one device and emulator",
            )
        ),
    ],
)
def test_what_phone_and_host_say_of_it_is_heard(said: str, code: str, outcome: Outcome, blame: Blame) -> None:
    failure = classify(sample.evidence(code=1, stderr=f"first\n{said}\n"), patterns=RUNTIME_PATTERNS)
    assert failure is not None
    assert (failure.code, failure.outcome, failure.blame, failure.line) == (code, outcome, blame, said)


def test_a_warning_of_the_linker_is_no_failure_to_link() -> None:
    said = "WARNING: linker: cannot locate symbol: CANNOT LINK EXECUTABLE\nsome reason\n"
    failure = classify(sample.evidence(code=3, stderr=said))
    assert failure is not None
    assert (failure.code, failure.line) == ("run.failed", "some reason")


@pytest.mark.parametrize(
    "words",
    [
        "x",
        "WARNING: linker ",
        "Load model from ",
        "lmkd ",
        "is for EM_X ",
        "supported devices include ",
        "assertion ",
        "[nnapi_wrapper.cpp:1] ",
    ],
)
def test_an_endless_line_is_cut_and_gone_through_once(words: str) -> None:
    # A pattern that starts over at every place of it would take hours, and the test's time is limited.
    long = words * (1_000_000 // len(words))
    failure = classify(sample.evidence(code=1, stderr=long), patterns=RUNTIME_PATTERNS)
    assert failure is not None
    assert failure.line is not None
    assert len(failure.line) == 400
