"""Entry file and ABI of a program, detected from its files, and the program that a device runs."""

from collections.abc import Collection, Mapping, Sequence

from farm.core.base.spec_errors import name_hint
from farm.core.errors import InvalidInput
from farm.core.programs.binary_inspection import FileInspection
from farm.core.programs.elf import ABIS

#: Of programs that run wherever there is a shell: scripts.
ANY_ABI = "any"


def select_abi(device_abis: Sequence[str], registered: Collection[str]) -> str | None:
    """Return the ABI of the program to run; None where the device can run none of them.

    The phone's own order decides: an arm64-v8a phone runs an armeabi-v7a program where there is no better
    one. A script is taken last: what was built for a phone was meant for it.

    Args:
        device_abis: what the phone can run, best first, as it says itself.
        registered: ABIs that have a program, `any` among them or not.
    """
    return next((abi for abi in (*device_abis, ANY_ABI) if abi in registered), None)


def select_entry(inspection_by_path: Mapping[str, FileInspection], executable: Sequence[str]) -> str:
    """Return the file to start, where the files leave no doubt.

    Args:
        inspection_by_path: all files.
        executable: those that are marked so.

    Raises:
        InvalidInput: several may be, or none.
    """
    if len(inspection_by_path) == 1:
        return next(iter(inspection_by_path))
    candidates = [
        path for path, look in inspection_by_path.items() if look.is_program and not _is_library(path)
    ]
    marked = [path for path in candidates if path in executable]
    chosen = marked or candidates
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise InvalidInput("none of the files is a program", hint="name the one to start with --entry")
    named = ", ".join(sorted(chosen)[:12])
    raise InvalidInput("more than one of the files can be started", hint=f"--entry says which: {named}")


def _is_library(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.endswith(".so") or ".so." in name


def program_abi(inspection_by_path: Mapping[str, FileInspection], entry: str, requested: str | None) -> str:
    """Return the ABI of a program; `any` for scripts without binaries.

    Raises:
        InvalidInput: what is to be started cannot be, the binaries are for different CPUs, or it is not what
            was asked for.
    """
    if requested is not None and requested not in (*ABIS, ANY_ABI):
        raise InvalidInput(f"no ABI `{requested}`", hint=name_hint(requested, [*ABIS, ANY_ABI]))
    binary = _binary_abi(inspection_by_path, entry)
    if binary is None:
        return requested or ANY_ABI
    path, abi = binary
    if requested is not None and requested != abi:
        hint = f"leave --abi out, or name the program that was built for {requested}"
        raise InvalidInput(f"`{path}` is built for {abi}, not for {requested}", hint=hint)
    return abi


def _binary_abi(inspection_by_path: Mapping[str, FileInspection], entry: str) -> tuple[str, str] | None:
    """Return the path and ABI of a binary, preferably the program to start."""
    _check_starts(entry, inspection_by_path[entry])
    abi_by_path = {
        path: look.elf.abi
        for path, look in sorted(inspection_by_path.items(), key=lambda item: item[0] != entry)
        if look.elf is not None and look.elf.abi is not None
    }
    if not abi_by_path:
        return None
    first, abi = next(iter(abi_by_path.items()))
    for path, other in abi_by_path.items():
        if other != abi:
            message = f"`{path}` is built for {other}, `{first}` for {abi}"
            raise InvalidInput(message, hint="register one bundle for each ABI")
    return first, abi


def _check_starts(entry: str, look: FileInspection) -> None:
    if look.is_program and (look.elf is None or look.elf.abi is not None):
        return
    if look.elf is not None and look.elf.abi is None:
        what, hint = f"is for a CPU that Android does not run on (ELF machine {look.elf.machine})", ""
    elif look.elf is not None:
        what, hint = "is a library or an object file, which cannot be started", "--entry names the program"
    elif look.unsupported is not None:
        what, hint = f"is {look.unsupported}", ""
    else:
        what, hint = "is neither a binary nor a script", "a script's first line is like #!/system/bin/sh"
    raise InvalidInput(f"`{entry}` {what}", hint=hint or "build the program with the Android NDK")
