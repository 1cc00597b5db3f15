"""Further words of linkers, kernels, shells and runtimes for what ended a run."""

import pytest
import run_samples as sample

from farm.core.measurement import Outcome
from farm.harness.failures import classify
from farm.harness.runtime_signs import RUNTIME_SIGNS

UNSUPPORTED, FAILED, INCONCLUSIVE = Outcome.UNSUPPORTED, Outcome.FAILED, Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("code", "said", "expected", "outcome"),
    [
        (
            1,
            'CANNOT LINK EXECUTABLE "a": program alignment (4096) cannot be smaller than system page size',
            "run.wrong_layout",
            UNSUPPORTED,
        ),
        (
            134,
            'error: "./a": executable\'s TLS segment is underaligned: alignment is 8, needs to be 64',
            "run.wrong_layout",
            UNSUPPORTED,
        ),
        (1, 'error: "./a" has unexpected e_machine: 62 (EM_X86_64)', "run.wrong_abi", UNSUPPORTED),
        (126, "sh: ./a: not executable: magic 7F45", "run.wrong_abi", UNSUPPORTED),
        (
            1,
            "./a: /lib/aarch64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by ./a)",
            "run.cannot_link",
            FAILED,
        ),
        (1, "write: Disk quota exceeded", "device.storage_full", INCONCLUSIVE),
        (137, "Out of memory: Killed process 812 (sbt) total-vm:91234kB", "run.killed", INCONCLUSIVE),
        (137, "malloc: Out of memory", "run.out_of_memory", UNSUPPORTED),
        (
            1,
            "F libc    : Fatal signal 4 (SIGILL), code 1 (ILL_ILLOPC), fault addr 0x5 in tid 812 (sbt)",
            "run.illegal_instruction",
            UNSUPPORTED,
        ),
        (1, "signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x0", "run.crashed", FAILED),
        (99, "==812==ERROR: HWAddressSanitizer: tag-mismatch on address 0x0", "run.crashed", FAILED),
        (134, "Error: Could not find operator torchvision::nms", "variant.missing_operator", UNSUPPORTED),
        (
            134,
            "RuntimeError: Didn't find engine for operation quantized::linear_prepack NoQEngine",
            "run.backend_missing",
            UNSUPPORTED,
        ),
        (1, "ERROR: illegal value 'x' specified for int32 flag 'iter'", "run.bad_flags", FAILED),
    ],
)
def test_what_ended_a_run_is_told_by_its_words(code: int, said: str, expected: str, outcome: Outcome) -> None:
    found = classify(sample.evidence(code=code, stderr=f"something before\n{said}\nsomething behind\n"))
    assert found is not None
    assert (found.code, found.outcome, found.line) == (expected, outcome, said)


def test_a_library_that_the_shell_may_not_load_does_not_hide_what_ended_the_run() -> None:
    said = (
        'dlopen failed: library "libOpenCL.so" needed by "./a" is not accessible for the namespace "default"'
    )
    crashed = classify(sample.evidence(code=139, stderr=f"{said}\nSegmentation fault\n"), signs=RUNTIME_SIGNS)
    ended = classify(sample.evidence(code=1, stderr=f"{said}\n"), signs=RUNTIME_SIGNS)
    assert crashed is not None
    assert ended is not None
    assert (crashed.code, ended.code) == ("run.crashed", "run.backend_failed")
