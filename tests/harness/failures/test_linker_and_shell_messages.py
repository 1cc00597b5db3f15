"""What linkers and shells of all Androids, kernels and C libraries say of a program that came to nothing."""

import pytest

from farm.core.runs.measurement import Outcome
from farm.harness.failures.classification import classify
from farm.harness.failures.patterns import DEVICE_PATTERNS
from tests.support.harness import run_samples as sample

ABI, LAYOUT, MEMORY, KILLED = "run.wrong_abi", "run.wrong_layout", "run.out_of_memory", "run.killed"
LINK = 'CANNOT LINK EXECUTABLE "./a":'


@pytest.mark.parametrize(
    ("code", "said", "expected"),
    [
        (1, "error: only position independent executables (PIE) are supported.", LAYOUT),
        (
            1,
            '"./a": error: Android 5.0 and later only support position-independent executables (-fPIE).',
            LAYOUT,
        ),
        (1, 'error: "/data/local/tmp/a" has unexpected e_type: 2', LAYOUT),
        (1, 'CANNOT LINK EXECUTABLE: "./a": has text relocations', LAYOUT),
        (1, f'{LINK} empty/missing DT_HASH in "/tmp/b.so" (built with --hash-style=gnu?)', LAYOUT),
        (1, f'{LINK} "/tmp/b.so": W+E load segments are not allowed', LAYOUT),
        (255, 'soinfo_link_image(linker.cpp:9): "libb.so" not 32-bit: 2CANNOT LINK EXECUTABLE', ABI),
        (127, "./a[1]: \x7fELF\x02\x01\x01: not found", ABI),
        (127, "./a: line 1: ELF: not found", ABI),
        (1, f'{LINK} couldn\'t map "/sdcard/libb.so" segment 1: Permission denied', "run.not_executable"),
        (
            1,
            'INFO: dlopen failed: couldn\'t map "/vendor/libb.so" segment 1: Permission denied',
            "run.failed",
        ),
        (134, "Scudo ERROR: internal map failure (NO MEMORY) requesting 4KB", MEMORY),
        (1, "java.lang.OutOfMemoryError: Failed to allocate a 90 byte allocation", MEMORY),
        (1, "Memory cgroup out of memory: Killed process 77 (a) total-vm:9kB", KILLED),
        (1, "oom_reaper: reaped process 77 (a), now anon-rss:0kB", KILLED),
        (1, "Killed ", KILLED),
        (1, "[1]+  Killed                  ./a --iter=5", KILLED),
        (1, "./run.sh: line 3:  4711 Killed                  ./a", KILLED),
        (1, "Killed it: best time so far", "run.failed"),
        (1, "Bus error ", "run.crashed"),
        (1, "F DEBUG   : Abort message: 'Scudo ERROR: corrupted chunk header'", "run.crashed"),
        (255, "FORTIFY: strlcpy: prevented 9-byte write into 8-byte buffer", "run.crashed"),
        (1, "*** stack smashing detected ***: terminated", "run.crashed"),
    ],
)
def test_a_program_that_came_to_nothing_is_told_by_its_words(code: int, said: str, expected: str) -> None:
    found = classify(sample.evidence(code=code, stderr=f"{said}\n"), patterns=DEVICE_PATTERNS)
    assert found is not None
    assert (found.code, found.line) == (expected, said.strip())


def test_a_model_that_may_not_be_opened_is_one_that_cannot_be_read() -> None:
    said = "open file failed because of errno 13 on fopen: Permission denied, file path: /data/m.pt"
    found = classify(sample.evidence(code=134, stderr=f"{said}\nAborted\n"))
    assert found is not None
    assert (found.code, found.outcome) == ("variant.unreadable", Outcome.FAILED)


def test_what_a_program_threw_says_more_than_the_signal_that_followed() -> None:
    said = "F libc    : Fatal signal 6 (SIGABRT), code -1\nF DEBUG   : Abort message: 'no such tensor'\n"
    found = classify(sample.evidence(code=134, stderr=said))
    assert found is not None
    assert found.line == "F DEBUG   : Abort message: 'no such tensor'"
