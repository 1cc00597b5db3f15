"""A failure is quoted by the line that names it, and adb's own errors are never the variant's."""

import pytest

from farm.core.errors import Blame
from farm.core.runs.measurement import Outcome, RunFailure
from farm.harness.failures.classification import classify
from farm.harness.failures.patterns import RUNTIME_PATTERNS
from farm.harness.registry import harness_names
from tests.harness.generic import generic_samples
from tests.support.harness import run_samples, tool_samples

UNAUTHORIZED = """\
STARTING!
error: device unauthorized.
This adb server's $ADB_VENDOR_KEYS is not set
Try 'adb kill-server' if that seems wrong.
Otherwise check for a confirmation dialog on your device.
"""
ADB = [
    (UNAUTHORIZED, "device.unauthorized", "error: device unauthorized."),
    ("error: device still authorizing\n", "device.unauthorized", "error: device still authorizing"),
    ("adb: device offline\nABORTED\n", "device.offline", "adb: device offline"),
    ("adb.exe: device unauthorized.\n", "device.unauthorized", "adb.exe: device unauthorized."),
    ("adb.exe: no devices/emulators found\n", "device.offline", "adb.exe: no devices/emulators found"),
    (
        "adb: error: failed to get feature set: device offline\r\nRuntimeError: no result\r\n",
        "device.offline",
        "adb: error: failed to get feature set: device offline",
    ),
    ("pushed\nerror: device not found\ntry again\n", "device.offline", "error: device not found"),
    ("run 1\nerror: closed\nFailed to load model\n", "device.closed", "error: closed"),
    (
        "error: protocol fault (couldn't read status): Success\n",
        "device.closed",
        "error: protocol fault (couldn't read status): Success",
    ),
]


@pytest.mark.parametrize(("text", "code", "line"), ADB)
@pytest.mark.parametrize("exit_code", [0, 1, 134, 255])
def test_an_error_of_adbs_is_the_devices_and_quoted(text: str, code: str, line: str, exit_code: int) -> None:
    wrong: list[str] = []
    for name in ("infer", *(each for each in harness_names() if each != "speed_benchmark_torch")):
        for output in ({"stdout": text}, {"stderr": text}):
            if name == "infer":
                harness = generic_samples.harness(value={"pattern": "took ([0-9]+)", "unit": "ms"})
                found = generic_samples.read(harness, code=exit_code, **output)
            else:
                found = tool_samples.read(name, code=exit_code, **output)
            assert isinstance(found, RunFailure)
            if (found.code, found.outcome, found.blame, found.line) != (
                code,
                Outcome.INCONCLUSIVE,
                Blame.DEVICE,
                line,
            ):
                wrong.append(f"{name}: {found}")
    assert not wrong


def test_a_run_that_hung_on_adb_is_not_the_variants_doing() -> None:
    failure = classify(run_samples.evidence("error: closed\n", code=137, timed_out=True))
    assert failure is not None
    assert failure.blame is Blame.DEVICE


@pytest.mark.parametrize("text", ["the door is closed", "GPU error: closed loop", "error: device count"])
def test_words_of_adbs_errors_are_no_errors_of_adbs(text: str) -> None:
    failure = classify(run_samples.evidence(text, code=1), patterns=RUNTIME_PATTERNS)
    assert failure is not None
    assert failure.blame is Blame.VARIANT


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        (
            "INFO: PytorchStreamReader opens /data/local/tmp/a.ptl\n"
            "    frame #1: PytorchStreamReader::valid\n"
            "terminating: PytorchStreamReader failed finding central directory\n",
            "variant.unreadable",
            "terminating: PytorchStreamReader failed finding central directory",
        ),
        (
            "$ ./tool --on=std::bad_alloc\nout of memory is handled by the arena\n"
            "E tool    : failed: out of memory (812 MB)\n",
            "run.out_of_memory",
            "E tool    : failed: out of memory (812 MB)",
        ),
        (
            'W/linker: dlopen failed: library "liba.so" not found, trying libb.so\n'
            'E/tool: dlopen failed: library "libb.so" not found\n',
            "run.backend_failed",
            'E/tool: dlopen failed: library "libb.so" not found',
        ),
        ("read 3 tensors\nmy.Error: bad shape\nsee --help\n", "run.failed", "my.Error: bad shape"),
        ("no sense in this\nthe end\n", "run.failed", "the end"),
    ],
)
def test_a_failure_is_quoted_by_the_line_that_names_it(text: str, code: str, line: str) -> None:
    failure = classify(run_samples.evidence(stderr=text, code=1), patterns=RUNTIME_PATTERNS)
    assert failure is not None
    assert (failure.code, failure.line) == (code, line)
