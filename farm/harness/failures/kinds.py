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


def _kind(row: str, what: str, hint: str) -> FailureKind:
    code, outcome, blame = row.split()
    return FailureKind(
        code=code, outcome=Outcome(outcome), blame=Blame(blame), what=what.strip(), hint=hint.strip()
    )


#: Three lines each: code, outcome and blame; what follows the program's name; the hint.
_TABLE = """\
run.wrong_abi unsupported variant
    is built for another kind of CPU than the device's
    `farm harness add` registers the program built for this device's ABI; `farm device list` shows it
run.no_program failed variant
    is no program, or one of its libraries is none: an archive, a web page, a truncated file
    unpack or fetch it again, then register the program itself
run.wrong_layout unsupported variant
    has a memory layout that the device's linker rejects
    build it again with a newer NDK: devices with pages of 16 KiB need files that are aligned to them
run.cannot_link failed variant
    needs a library that is not on the device
    `farm harness add` takes a folder with the library, and --env 'LD_LIBRARY_PATH=${work}'
run.start_cut_off inconclusive device
    was not started: the connection broke while its command was sent
    it is tried again; if it keeps happening, check the device's cable
run.not_executable inconclusive device
    may not be executed in its folder
    programs cannot run from /sdcard; check the device's work root with `farm device list --json`
run.not_found unsupported variant
    or its interpreter or loader is not on the device
    register a program whose interpreter and loader are on the device
variant.missing_operator unsupported variant
    is missing an operator that the model file uses
    build the program with this operator, or choose another model, precision or backend
run.backend_missing unsupported variant
    was built without the requested backend
    register a program built with it, or request another backend
run.nnapi_missing unsupported variant
    found no NNAPI on the device
    devices with Android 8.1 or later have it, virtual devices do not; or run a file made for the cpu
run.nnapi_refuses unsupported variant
    could not use the device's NNAPI for this model
    its version or driver does not support the model; try another precision, or the cpu
variant.format_missing unsupported variant
    was built without the reader of this file's format
    register a program built with it, or build the variant in another format: `--format lite` for torch
variant.too_new unsupported variant
    is older than the model file's format
    register a newer program, or make the file with an older torch
variant.unreadable failed variant
    cannot read the model file
    `farm variant build MODEL` makes files that are known to load
variant.no_bundled_input failed variant
    did not find the requested bundled input
    bundle one by torch.utils.bundled_inputs, or set the flags use_bundled_input=-1, input_dims, input_type
run.unknown_flag unsupported variant
    does not have the flag {flag}
    leave it out, or register a version of the program that has it; its --help lists them
run.bad_flags failed variant
    cannot read the flags it was given
    is the registered program a version this harness knows? compare the command with its --help
run.out_of_memory unsupported variant
    ran out of memory
    the device cannot hold this model; choose a smaller one or a device with more memory
device.storage_full inconclusive device
    could not write: the device's storage is full
    free space on the device, or raise the matrix's storage gate
variant.node_refused unsupported variant
    cannot prepare an operator of the model file
    try another precision or a newer program; the line names the operator
run.delegate_refused unsupported variant
    could not hand the model to the requested backend
    the backend does not support this model here: try another precision, or the cpu
run.backend_failed unsupported variant
    could not start the requested backend
    the device has no such hardware, or no library for it that a program of adb's shell may load
run.not_fully_delegated unsupported variant
    left a part of the model to the CPU, against require_full_delegation
    leave out require_full_delegation, or choose another precision or backend
variant.no_input failed variant
    has no input to run the model with
    set the shapes of its inputs; `farm harness show NAME` lists the settings
run.permission_denied failed variant
    was denied access by the device
    programs of adb's shell may not open everything: the line names the file
host.usb_denied inconclusive host
    was not reached: the host may not use the device's cable
    give the agent's user access to the device (udev rules), then plug it in again
host.several_devices inconclusive host
    called adb without saying which of the host's devices is meant
    have it call `adb -s SERIAL`, or set ANDROID_SERIAL for it
device.unauthorized inconclusive device
    was not reached: the device does not accept this host's key
    accept the key on the device's screen; it is tried again
device.closed inconclusive device
    was not reached: adb's connection to the device was closed
    it is tried again; if it keeps happening, check the device's cable
device.offline inconclusive device
    was not reached: adb reports that the device is missing
    it is tried again; if it keeps happening, check the device's cable
run.crashed failed variant
    crashed
    run the same command by hand: `farm attempt show ID` shows it and its output
run.illegal_instruction unsupported variant
    used an instruction that the device's CPU does not have
    register a program built for this CPU's features
run.killed inconclusive device
    was killed from outside, most likely because memory ran out
    it is tried again; if it keeps happening, free memory on the device
run.failed failed variant
    ended with an error
    read the line; `farm attempt show ID` has the output
"""
_LINES = _TABLE.splitlines()
#: By code.
KINDS = {kind.code: kind for kind in map(_kind, _LINES[::3], _LINES[1::3], _LINES[2::3])}

#: Exit codes as a shell gives them (128 + signal), with the numbers of Linux on ARM and x86.
KIND_BY_EXIT_CODE = {
    126: KINDS["run.not_executable"],
    127: KINDS["run.not_found"],
    132: KINDS["run.illegal_instruction"],
    **dict.fromkeys((129, 130, 137, 143), KINDS["run.killed"]),
    **dict.fromkeys((133, 134, 135, 136, 139, 159), KINDS["run.crashed"]),
}
_SIGNALS = "1 HUP, 2 INT, 4 ILL, 5 TRAP, 6 ABRT, 7 BUS, 8 FPE, 9 KILL, 11 SEGV, 15 TERM, 31 SYS"
NAME_BY_SIGNAL = {int(number): name for number, name in map(str.split, _SIGNALS.split(", "))}
