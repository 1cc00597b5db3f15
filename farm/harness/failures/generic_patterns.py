"""Failure patterns of devices and programs, and exit codes with their meaning.

The texts come from Android's linker and shell (mksh, toybox), the C++ runtimes of gcc and clang, and the
loaders of PyTorch; those of other runtimes are in `runtime_patterns`.
"""

import re

from farm.harness.failures import kinds
from farm.harness.failures.failure_pattern import FailurePattern, failure_pattern
from farm.harness.failures.kinds import FailureKind

#: The first match decides, so the more specific patterns come first. Programs print megabytes: a pattern
#: begins with something rare, and repeats nothing without a limit, because it would take hours.
GENERIC_PATTERNS: tuple[FailurePattern, ...] = (
    # The agent's own script, which is never a user's program.
    failure_pattern(
        r"/runs/\d+/run\.sh\b.{0,80}"
        r"(?:[Ss]yntax error|unexpected (?:EOF|end of file)|unmatched|no closing quote)",
        kinds.CUT_OFF,
    ),
    # bzip2, lzip, xz, 7zip, gzip and compress files, which mksh identifies by two bytes; an error page has no
    # ELF magic.
    failure_pattern(
        r"not executable: magic (?:425A|4C5A|FD37|377A|1F8B|1F9D)|bad ELF magic", kinds.NO_PROGRAM
    ),
    failure_pattern(
        r"is too small to be an ELF|file offset for the library .{0,300} >= file size: ", kinds.NO_PROGRAM
    ),
    failure_pattern(
        r"not executable: \d+-bit ELF|Exec format error|is for EM_\w+ .{0,400}instead of EM_",
        kinds.WRONG_ABI,
    ),
    failure_pattern(r"is \d+-bit instead of \d+-bit|\" not (?:32|64)-bit: \d", kinds.WRONG_ABI),
    failure_pattern(r"has unexpected e_machine|not executable: magic", kinds.WRONG_ABI),
    # A shell that read a program of another machine as a script.
    failure_pattern(
        r"(?:\[\d{1,3}\]|: (?:line )?\d{1,3}): \W{0,3}ELF\W?[^\n:]{0,80}: (?:inaccessible or )?not found",
        kinds.WRONG_ABI,
    ),
    # Programs that do not run at any address: up to Android 4.4 the only ones that run, since 5.0 refused.
    failure_pattern(
        r"only (?:support )?position.independent executables|has unexpected e_type: 2\b",
        kinds.WRONG_LAYOUT,
    ),
    failure_pattern(
        r"cannot be smaller than system page size|TLS segment is underaligned"
        r"|CANNOT LINK EXECUTABLE.{0,300}(?:has text relocations|W ?\+ ?E load segments"
        r"|empty/missing DT_(?:GNU_)?HASH)",
        kinds.WRONG_LAYOUT,
    ),
    failure_pattern(
        r"CANNOT LINK EXECUTABLE.{0,300}couldn't map .{0,300} (?:Permission denied|Operation not permitted)",
        kinds.NOT_EXECUTABLE,
    ),
    failure_pattern(
        r"CANNOT LINK EXECUTABLE|error while loading shared libraries|cannot locate symbol"
        # Android up to 6, whose dlopen prints the same after words of its own.
        r"|(?m:^)\S{0,60} {0,3}(?:\d{1,9} )?could not load (?:needed )?library "
        r"[\"'][^\"'\n]{1,200}[\"'] (?:needed by|for) "
        r"|version .GLIBC\w*_[\d.]{1,12}. not found",
        kinds.CANNOT_LINK,
    ),
    failure_pattern(r"can't execute: Permission denied", kinds.NOT_EXECUTABLE),
    failure_pattern(r"inaccessible or not found", kinds.NOT_FOUND),
    failure_pattern(
        r"Following ops cannot be found|Could not run '[\w:.]+' with arguments from", kinds.MISSING_OPERATOR
    ),
    failure_pattern(
        r"[Uu]nknown builtin op|Could not find (?:any similar ops|schema for|an implementation|operator)",
        kinds.MISSING_OPERATOR,
    ),
    failure_pattern(
        r"not linked with support for \w+ devices|supported devices include .{0,400}however got",
        kinds.MISSING_BACKEND,
    ),
    failure_pattern(
        r"Vulkan backend is not available|Didn't find engine for operation", kinds.MISSING_BACKEND
    ),
    failure_pattern(r"Failed to load libneuralnetworks", kinds.NO_NNAPI),
    # A function that this Android's NNAPI lacks, or one that failed.
    failure_pattern(
        r"enforce fail at nnapi_wrapper\.cpp:\d+\] (?:nnapi_\.|.{0,400}failed with error)",
        kinds.NNAPI_REFUSES,
    ),
    failure_pattern(r"(?i:build hasn't enabled flatbuffer)", kinds.NO_FLATBUFFER),
    failure_pattern(r"Lite Interpreter version|maximum supported version for reading", kinds.TOO_NEW),
    # An operator that has gained arguments since.
    failure_pattern(r"Expected at most \d{1,3} argument(?:s but found|\(s\) for operator)", kinds.TOO_NEW),
    # Classes that hold weights packed for a backend, or are its own operators.
    failure_pattern(r"torch\.classes\.(?:xnnpack|vulkan|metal|_nnapi)\.", kinds.MISSING_BACKEND),
    failure_pattern(r"Unknown custom class type (?:xnnpack|vulkan|metal|_nnapi)\.", kinds.MISSING_BACKEND),
    failure_pattern(r"Unknown custom class type \w", kinds.MISSING_OPERATOR),
    # Newer versions of torch write this for attributes that are None.
    failure_pattern(r"Unknown type name 'NoneType'", kinds.TOO_NEW),
    failure_pattern(
        r"PytorchStreamReader|failed finding central directory|Unknown type name|Unrecognized data format",
        kinds.UNREADABLE,
    ),
    failure_pattern(
        r"file not found: |errno \d{1,3} on fopen|inline_container\.cc|istream reader failed",
        kinds.UNREADABLE,
    ),
    failure_pattern(
        r"open file failed, file path|model is not generated from the api _save_for_lite", kinds.UNREADABLE
    ),
    # torch 1.3, for tensors that were saved on a GPU.
    failure_pattern(r"tensorTypeIdToBackend", kinds.UNREADABLE),
    failure_pattern(r"xnnpack::\w{1,60} not available! Reason: ", kinds.NODE_REFUSED),
    failure_pattern(
        r"does not have bundled inputs|Model has only \d+ bundled inputs", kinds.NO_BUNDLED_INPUT
    ),
    # c10's flag library (caffe2's prints the same and goes on); gflags and Abseil; our own program.
    failure_pattern(
        r"C10 flag: unrecognized commandline argument: (?P<flag>--?[\w-]{1,100})", kinds.UNKNOWN_FLAG
    ),
    failure_pattern(r"(?i:unknown command line flag) '(?P<flag>[\w-]{1,100})'", kinds.UNKNOWN_FLAG),
    failure_pattern(r"\b(?P<flag>\w{1,100}) is not available: Python does not offer", kinds.UNKNOWN_FLAG),
    failure_pattern(r"Failed to parse command line flags|C10 flag: ", kinds.BAD_FLAGS),
    failure_pattern(r"(?i:illegal value) '.{0,200}' specified for ", kinds.BAD_FLAGS),
    failure_pattern(
        r"No space left on device|INSUFFICIENT_STORAGE|[Nn]ot enough space|Disk quota exceeded",
        kinds.DISK_FULL,
    ),
    # The kernel's message about a process that it killed, which the process did not ask for.
    failure_pattern(r"(?i:out of memory): Kill(?:ed)? process|oom_reaper: reaped process", kinds.KILLED),
    failure_pattern(
        r"std::bad_alloc|can't allocate memory|not enough memory|Cannot allocate memory|(?i:out of memory)"
        r"|Scudo ERROR: .{0,80}NO MEMORY|OutOfMemoryError|(?m:^)MemoryError\b",
        kinds.OUT_OF_MEMORY,
    ),
    failure_pattern(
        r"(?:low ?memory ?killer|Low ?[Mm]emory ?[Kk]iller|\blmkd\b).{0,40}[Kk]ill", kinds.KILLED
    ),
    failure_pattern(r"[Ss]ignal 4 \(SIGILL\)|(?m:^Illegal instruction)", kinds.ILLEGAL),
    # A shell's message about a program that it started.
    failure_pattern(
        r"(?m:^)(?:Killed {0,9}(?:$|\n)|(?:\[\d{1,3}\] ?[+-]?|\S{1,100}: line \d{1,6}:) {1,9}(?:\d{1,9} )?"
        r"Killed\b)",
        kinds.KILLED,
    ),
    failure_pattern(r"[Ii]nsufficient permissions for device|no permissions \(", kinds.USB_DENIED),
    failure_pattern(r"(?:error|failed|adb): device (?:offline|'[^'\n]{1,100}' not found)", kinds.OFFLINE),
    failure_pattern(
        r"(?:error|adb): (?:failed to get feature set: )?no devices/emulators found", kinds.OFFLINE
    ),
)

_DEVICE_KINDS = (
    kinds.NO_PROGRAM,
    kinds.WRONG_ABI,
    kinds.WRONG_LAYOUT,
    kinds.CANNOT_LINK,
    kinds.NOT_EXECUTABLE,
    kinds.NOT_FOUND,
    kinds.DISK_FULL,
    kinds.OUT_OF_MEMORY,
    kinds.KILLED,
)
#: Failures that every program on a device can meet, whatever it runs.
DEVICE_PATTERNS: tuple[FailurePattern, ...] = tuple(
    sign for sign in GENERIC_PATTERNS if sign.kind in _DEVICE_KINDS
)

#: Exit codes as a shell gives them (128 + signal), with the numbers of Linux on ARM and x86.
KIND_BY_EXIT_CODE: dict[int, FailureKind] = {
    126: kinds.NOT_EXECUTABLE,
    127: kinds.NOT_FOUND,
    129: kinds.KILLED,
    130: kinds.KILLED,
    132: kinds.ILLEGAL,
    133: kinds.CRASHED,
    134: kinds.CRASHED,
    135: kinds.CRASHED,
    136: kinds.CRASHED,
    137: kinds.KILLED,
    139: kinds.CRASHED,
    143: kinds.KILLED,
    159: kinds.CRASHED,
}
NAME_BY_SIGNAL = {
    1: "HUP",
    2: "INT",
    4: "ILL",
    5: "TRAP",
    6: "ABRT",
    7: "BUS",
    8: "FPE",
    9: "KILL",
    11: "SEGV",
    15: "TERM",
    31: "SYS",
}
#: A program's own words on its end; TorchScript prints the error after two tracebacks.
LAST_LINE_PATTERNS = (
    # Also after the prefix of a logger.
    re.compile(r"(?:^|: )RuntimeError: ", re.MULTILINE),
    re.compile(r"what\(\):|uncaught exception|assertion .{0,400} failed|FATAL EXCEPTION|Abort message: "),
    re.compile(r"Scudo ERROR: |\bFORTIFY: |AddressSanitizer: |(?:smashing|overflow) detected"),
    re.compile(r"Segmentation fault|Aborted|Fatal signal \d+|\bsignal \d+ \(SIG"),
)
#: Messages of a crash, whatever exit code the surrounding shell made of it.
CRASH = re.compile(
    r"Segmentation fault|Fatal signal \d+|uncaught exception|terminate called|FATAL EXCEPTION|\bAborted\b"
    r"|\bsignal \d+ \(SIG[A-Z]+\)|AddressSanitizer: |Abort message: |Scudo ERROR: |\bFORTIFY: "
    r"|(?:stack smashing|buffer overflow) detected|double free or corruption|heap corruption detected"
    r"|^(?:Bus error|Memory fault|Bad system call|Floating point exception|Trace/breakpoint trap)\b",
    re.MULTILINE,
)
