"""What phones and programs say when a run fails, as data: the signs, the exit codes, and what they mean.

The texts come from Android's linker and shell (mksh, toybox), the C++ runtimes of gcc and clang, and the
loaders of PyTorch.
"""

import re
from dataclasses import dataclass

from farm.core.errors import Blame
from farm.core.measurement import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of failure, without the run it happened in."""

    code: str
    outcome: Outcome
    blame: Blame
    #: Follows the program's name; `{flag}` stands for what the sign's pattern found by that name.
    what: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A text that shows a kind of failure."""

    pattern: re.Pattern[str]
    kind: Kind


def _kind(code: str, outcome: Outcome, blame: Blame, what: str, hint: str) -> Kind:
    return Kind(code=code, outcome=outcome, blame=blame, what=what, hint=hint)


def _sign(pattern: str, kind: Kind) -> Sign:
    return Sign(pattern=re.compile(pattern), kind=kind)


_F, _U, _I = Outcome.FAILED, Outcome.UNSUPPORTED, Outcome.INCONCLUSIVE
_VARIANT, _DEVICE = Blame.VARIANT, Blame.DEVICE

_WRONG_ABI = _kind(
    "run.wrong_abi",
    _U,
    _VARIANT,
    "is built for another kind of CPU than the phone's",
    "`farm harness add` registers the program built for this phone's ABI; `farm devices` shows it",
)
_CANNOT_LINK = _kind(
    "run.cannot_link",
    _F,
    _VARIANT,
    "needs a library that is not on the phone",
    "`farm harness add` takes a folder with the library, and --env 'LD_LIBRARY_PATH=${work}'",
)
_CUT_OFF = _kind(
    "run.start_cut_off",
    _I,
    _DEVICE,
    "was not started: the connection broke while its command was sent",
    "it is tried again; if it keeps happening, look at the phone's cable",
)
_NOT_EXECUTABLE = _kind(
    "run.not_executable",
    _I,
    _DEVICE,
    "may not be executed where it lies",
    "programs cannot run from /sdcard; look at the phone's work root with `farm devices --json`",
)
_NOT_FOUND = _kind(
    "run.not_found",
    _U,
    _VARIANT,
    "or the interpreter or loader it names is not on the phone",
    "register a program that needs nothing the phone does not have",
)
_MISSING_OPERATOR = _kind(
    "variant.missing_operator",
    _U,
    _VARIANT,
    "lacks an operator that the model file uses",
    "build the program with this operator, or choose another model, precision or backend",
)
_MISSING_BACKEND = _kind(
    "run.backend_missing",
    _U,
    _VARIANT,
    "was built without the backend that was asked for",
    "register a program built with it, or ask for another backend",
)
_NO_NNAPI = _kind(
    "run.nnapi_missing",
    _U,
    _VARIANT,
    "found no NNAPI on the phone",
    "phones with Android 8.1 or later have it, virtual phones do not; or run a file made for the cpu",
)
_NNAPI_REFUSES = _kind(
    "run.nnapi_refuses",
    _U,
    _VARIANT,
    "could not use the phone's NNAPI for this model",
    "its version or driver does not take the model; another precision may do, or the cpu",
)
_NO_FLATBUFFER = _kind(
    "variant.format_missing",
    _U,
    _VARIANT,
    "was built without the reader of this file's format",
    "register a program built with it, or build the variant as `--format lite`",
)
_TOO_NEW = _kind(
    "variant.too_new",
    _U,
    _VARIANT,
    "is older than the model file's format",
    "register a newer program, or make the file with an older torch",
)
_UNREADABLE = _kind(
    "variant.unreadable",
    _F,
    _VARIANT,
    "cannot read the model file",
    "`farm variants build MODEL` makes files that are known to load",
)
_NO_BUNDLED_INPUT = _kind(
    "variant.no_bundled_input",
    _F,
    _VARIANT,
    "did not find the bundled input it was told to use",
    "bundle one with torch.utils.bundled_inputs.bundle_inputs, or set use_bundled_input: -1 and input_dims",
)
_UNKNOWN_FLAG = _kind(
    "run.unknown_flag",
    _U,
    _VARIANT,
    "does not have the flag {flag}",
    "leave it out, or register a version of the program that has it; its --help lists them",
)
_BAD_FLAGS = _kind(
    "run.bad_flags",
    _F,
    _VARIANT,
    "cannot read the flags it was given",
    "is the registered program a version this harness knows? compare the command with its --help",
)
_OUT_OF_MEMORY = _kind(
    "run.out_of_memory",
    _U,
    _VARIANT,
    "ran out of memory",
    "the phone cannot hold this model; choose a smaller one or a phone with more memory",
)
_DISK_FULL = _kind(
    "device.storage_full",
    _I,
    _DEVICE,
    "could not write: the phone's storage is full",
    "free space on the phone, or raise the matrix's storage gate",
)

#: The first sign found decides, so the more particular ones come first. Programs print megabytes: a pattern
#: begins with something that few places have, and repeats nothing without a limit, or takes hours.
SIGNS: tuple[Sign, ...] = (
    # The agent's own script, which no program of a user's can be.
    _sign(
        r"/runs/\d+/run\.sh\b.{0,80}"
        r"(?:[Ss]yntax error|unexpected (?:EOF|end of file)|unmatched|no closing quote)",
        _CUT_OFF,
    ),
    _sign(
        r"not executable: \d+-bit ELF|Exec format error|bad ELF magic|is for EM_\w+ .{0,400}instead of EM_",
        _WRONG_ABI,
    ),
    _sign(r"is \d+-bit instead of \d+-bit|only position independent executables", _WRONG_ABI),
    _sign(r"CANNOT LINK EXECUTABLE|error while loading shared libraries|cannot locate symbol", _CANNOT_LINK),
    _sign(r"can't execute: Permission denied", _NOT_EXECUTABLE),
    _sign(r"inaccessible or not found", _NOT_FOUND),
    _sign(r"Following ops cannot be found|Could not run '[\w:.]+' with arguments from", _MISSING_OPERATOR),
    _sign(
        r"Unknown builtin op|Could not find (?:any similar ops|schema for|an implementation)",
        _MISSING_OPERATOR,
    ),
    _sign(
        r"not linked with support for \w+ devices|supported devices include .{0,400}however got",
        _MISSING_BACKEND,
    ),
    _sign(r"Vulkan backend is not available", _MISSING_BACKEND),
    _sign(r"Failed to load libneuralnetworks", _NO_NNAPI),
    # A function that this Android's NNAPI does not have, or one that said no.
    _sign(r"enforce fail at nnapi_wrapper\.cpp:\d+\] (?:nnapi_\.|.{0,400}failed with error)", _NNAPI_REFUSES),
    _sign(r"(?i:build hasn't enabled flatbuffer)", _NO_FLATBUFFER),
    _sign(r"Lite Interpreter version|maximum supported version for reading", _TOO_NEW),
    # What newer versions of torch write for attributes that are none.
    _sign(r"Unknown type name 'NoneType'", _TOO_NEW),
    _sign(
        r"PytorchStreamReader|failed finding central directory|Unknown type name|Unrecognized data format",
        _UNREADABLE,
    ),
    _sign(r"file not found: |errno 2 on fopen|inline_container\.cc|istream reader failed", _UNREADABLE),
    _sign(r"does not have bundled inputs|Model has only \d+ bundled inputs", _NO_BUNDLED_INPUT),
    # c10's flag library (caffe2's says the same and goes on); gflags and Abseil; our own program.
    _sign(r"C10 flag: unrecognized commandline argument: (?P<flag>--?[\w-]{1,100})", _UNKNOWN_FLAG),
    _sign(r"(?i:unknown command line flag) '(?P<flag>[\w-]{1,100})'", _UNKNOWN_FLAG),
    _sign(r"\b(?P<flag>\w{1,100}) is not available: Python does not offer", _UNKNOWN_FLAG),
    _sign(r"Failed to parse command line flags|C10 flag: ", _BAD_FLAGS),
    _sign(r"No space left on device", _DISK_FULL),
    _sign(
        r"std::bad_alloc|can't allocate memory|not enough memory|Cannot allocate memory|(?i:out of memory)",
        _OUT_OF_MEMORY,
    ),
)

_OF_THE_PHONE = (_WRONG_ABI, _CANNOT_LINK, _NOT_EXECUTABLE, _NOT_FOUND, _DISK_FULL, _OUT_OF_MEMORY)
#: Those that every program on a phone can meet, whatever it runs.
PHONE_SIGNS: tuple[Sign, ...] = tuple(sign for sign in SIGNS if sign.kind in _OF_THE_PHONE)

_CRASHED = _kind(
    "run.crashed",
    _F,
    _VARIANT,
    "crashed",
    "run the same command by hand: `farm attempt show ID` has it, and what it printed",
)
_ILLEGAL = _kind(
    "run.illegal_instruction",
    _U,
    _VARIANT,
    "used an instruction that the phone's CPU does not have",
    "register a program built for this CPU's features",
)
_KILLED = _kind(
    "run.killed",
    _I,
    _DEVICE,
    "was killed from outside, most likely for want of memory",
    "it is tried again; if it keeps happening, free memory on the phone",
)
ENDED = _kind(
    "run.failed",
    _F,
    _VARIANT,
    "ended with an error",
    "read the line; `farm attempt show ID` has what it printed",
)

#: Exit codes as a shell gives them (128 + signal), with the numbers of Linux on ARM and x86.
KIND_BY_EXIT_CODE: dict[int, Kind] = {
    126: _NOT_EXECUTABLE,
    127: _NOT_FOUND,
    129: _KILLED,
    130: _KILLED,
    132: _ILLEGAL,
    134: _CRASHED,
    135: _CRASHED,
    136: _CRASHED,
    137: _KILLED,
    139: _CRASHED,
    143: _KILLED,
    159: _CRASHED,
}
NAME_BY_SIGNAL = {
    1: "HUP",
    2: "INT",
    4: "ILL",
    6: "ABRT",
    7: "BUS",
    8: "FPE",
    9: "KILL",
    11: "SEGV",
    15: "TERM",
    31: "SYS",
}
#: Where a program says what killed it; TorchScript puts the error behind two tracebacks.
LAST_WORDS = (
    re.compile(r"^RuntimeError: ", re.MULTILINE),
    re.compile(r"what\(\):|uncaught exception|assertion .{0,400} failed|FATAL EXCEPTION"),
    re.compile(r"Segmentation fault|Aborted"),
)
