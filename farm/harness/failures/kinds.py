"""Kinds of failure of a program on a device, each with its outcome, blame and hint."""

from dataclasses import dataclass

from farm.core.errors import Blame
from farm.core.runs.measurement import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureKind:
    """One kind of failure, without the run it happened in."""

    code: str
    outcome: Outcome
    blame: Blame
    #: Follows the program's name; `{flag}` stands for the group of that name in the pattern.
    what: str
    hint: str


def _kind(code: str, outcome: Outcome, blame: Blame, what: str, hint: str) -> FailureKind:
    return FailureKind(code=code, outcome=outcome, blame=blame, what=what, hint=hint)


_F, _U, _I = Outcome.FAILED, Outcome.UNSUPPORTED, Outcome.INCONCLUSIVE
_VARIANT, _DEVICE = Blame.VARIANT, Blame.DEVICE

WRONG_ABI = _kind(
    "run.wrong_abi",
    _U,
    _VARIANT,
    "is built for another kind of CPU than the device's",
    "`farm harness add` registers the program built for this device's ABI; `farm device list` shows it",
)
NO_PROGRAM = _kind(
    "run.no_program",
    _F,
    _VARIANT,
    "is no program, or one of its libraries is none: an archive, a web page, a truncated file",
    "unpack or fetch it again, then register the program itself",
)
WRONG_LAYOUT = _kind(
    "run.wrong_layout",
    _U,
    _VARIANT,
    "has a memory layout that the device's linker rejects",
    "build it again with a newer NDK: devices with pages of 16 KiB need files that are aligned to them",
)
CANNOT_LINK = _kind(
    "run.cannot_link",
    _F,
    _VARIANT,
    "needs a library that is not on the device",
    "`farm harness add` takes a folder with the library, and --env 'LD_LIBRARY_PATH=${work}'",
)
CUT_OFF = _kind(
    "run.start_cut_off",
    _I,
    _DEVICE,
    "was not started: the connection broke while its command was sent",
    "it is tried again; if it keeps happening, check the device's cable",
)
NOT_EXECUTABLE = _kind(
    "run.not_executable",
    _I,
    _DEVICE,
    "may not be executed in its folder",
    "programs cannot run from /sdcard; check the device's work root with `farm device list --json`",
)
NOT_FOUND = _kind(
    "run.not_found",
    _U,
    _VARIANT,
    "or its interpreter or loader is not on the device",
    "register a program that needs nothing the device lacks",
)
MISSING_OPERATOR = _kind(
    "variant.missing_operator",
    _U,
    _VARIANT,
    "lacks an operator that the model file uses",
    "build the program with this operator, or choose another model, precision or backend",
)
MISSING_BACKEND = _kind(
    "run.backend_missing",
    _U,
    _VARIANT,
    "was built without the requested backend",
    "register a program built with it, or request another backend",
)
NO_NNAPI = _kind(
    "run.nnapi_missing",
    _U,
    _VARIANT,
    "found no NNAPI on the device",
    "devices with Android 8.1 or later have it, virtual devices do not; or run a file made for the cpu",
)
NNAPI_REFUSES = _kind(
    "run.nnapi_refuses",
    _U,
    _VARIANT,
    "could not use the device's NNAPI for this model",
    "its version or driver does not support the model; try another precision, or the cpu",
)
NO_FLATBUFFER = _kind(
    "variant.format_missing",
    _U,
    _VARIANT,
    "was built without the reader of this file's format",
    "register a program built with it, or build the variant in another format: `--format lite` for torch",
)
TOO_NEW = _kind(
    "variant.too_new",
    _U,
    _VARIANT,
    "is older than the model file's format",
    "register a newer program, or make the file with an older torch",
)
UNREADABLE = _kind(
    "variant.unreadable",
    _F,
    _VARIANT,
    "cannot read the model file",
    "`farm variant build MODEL` makes files that are known to load",
)
NO_BUNDLED_INPUT = _kind(
    "variant.no_bundled_input",
    _F,
    _VARIANT,
    "did not find the requested bundled input",
    "bundle one with torch.utils.bundled_inputs.bundle_inputs, or set use_bundled_input: -1 and input_dims",
)
UNKNOWN_FLAG = _kind(
    "run.unknown_flag",
    _U,
    _VARIANT,
    "does not have the flag {flag}",
    "leave it out, or register a version of the program that has it; its --help lists them",
)
BAD_FLAGS = _kind(
    "run.bad_flags",
    _F,
    _VARIANT,
    "cannot read the flags it was given",
    "is the registered program a version this harness knows? compare the command with its --help",
)
OUT_OF_MEMORY = _kind(
    "run.out_of_memory",
    _U,
    _VARIANT,
    "ran out of memory",
    "the device cannot hold this model; choose a smaller one or a device with more memory",
)
DISK_FULL = _kind(
    "device.storage_full",
    _I,
    _DEVICE,
    "could not write: the device's storage is full",
    "free space on the device, or raise the matrix's storage gate",
)
NODE_REFUSED = _kind(
    "variant.node_refused",
    _U,
    _VARIANT,
    "cannot prepare an operator of the model file",
    "try another precision or a newer program; the line names the operator",
)
DELEGATE_REFUSED = _kind(
    "run.delegate_refused",
    _U,
    _VARIANT,
    "could not hand the model to the requested backend",
    "the backend does not support this model here: try another precision, or the cpu",
)
BACKEND_FAILED = _kind(
    "run.backend_failed",
    _U,
    _VARIANT,
    "could not start the requested backend",
    "the device has no such hardware, or no library for it that a program of adb's shell may load",
)
NOT_ALL_DELEGATED = _kind(
    "run.not_fully_delegated",
    _U,
    _VARIANT,
    "left a part of the model to the CPU, against require_full_delegation",
    "leave out require_full_delegation, or choose another precision or backend",
)
NO_INPUT = _kind(
    "variant.no_input",
    _F,
    _VARIANT,
    "has no input to run the model with",
    "set the shapes of its inputs; `farm harness show NAME` lists the settings",
)
DENIED = _kind(
    "run.permission_denied",
    _F,
    _VARIANT,
    "was denied access by the device",
    "programs of adb's shell may not open everything: the line names the file",
)
USB_DENIED = _kind(
    "host.usb_denied",
    _I,
    Blame.HOST,
    "was not reached: the host may not use the device's cable",
    "give the agent's user access to the device (udev rules), then plug it in again",
)
OFFLINE = _kind(
    "device.offline",
    _I,
    _DEVICE,
    "was not reached: adb reports that the device is missing",
    "it is tried again; if it keeps happening, check the device's cable",
)
CRASHED = _kind(
    "run.crashed",
    _F,
    _VARIANT,
    "crashed",
    "run the same command by hand: `farm attempt show ID` shows it and its output",
)
ILLEGAL = _kind(
    "run.illegal_instruction",
    _U,
    _VARIANT,
    "used an instruction that the device's CPU does not have",
    "register a program built for this CPU's features",
)
KILLED = _kind(
    "run.killed",
    _I,
    _DEVICE,
    "was killed from outside, most likely because memory ran out",
    "it is tried again; if it keeps happening, free memory on the device",
)
ENDED = _kind(
    "run.failed",
    _F,
    _VARIANT,
    "ended with an error",
    "read the line; `farm attempt show ID` has the output",
)
