"""Warnings about a program that will probably fail on a device, detected from its files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from farm.core.programs.binary_inspection import FileInspection
from farm.core.programs.bundle import Bundle
from farm.core.programs.elf import Elf

#: Hexagon, the DSP of Qualcomm's chips: its libraries lie beside those of the CPU.
_HEXAGON = 164
_ANDROID_LOADERS = ("/system/bin/linker", "/apex/")
_LIBRARY_PATH = "LD_LIBRARY_PATH"
#: Of glibc's loader, where a program is started by it.
_LOADER_FLAG = "--library-path"
#: The NDK's libraries on every phone (developer.android.com/ndk/guides/stable_apis), and drivers by
#: usual names.
_NDK = (
    *("c", "m", "dl", "log", "z", "stdc++", "android", "EGL", "GLESv1_CM", "GLESv2", "GLESv3", "vulkan"),
    *("OpenSLES", "OpenMAXAL", "aaudio", "amidi", "mediandk", "camera2ndk", "jnigraphics", "nativewindow"),
    *("nativehelper", "neuralnetworks", "sync", "binder_ndk", "icu"),
)
_DRIVERS = ("OpenCL", "cdsprpc", "adsprpc")
_ON_PHONES = frozenset(f"lib{name}.so" for name in (*_NDK, *_DRIVERS))

#: What virtual phones call their Python: such a script is meant for them, and for nothing else.
_VIRTUAL_PYTHON = "benchfarm-python"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramWarning:
    """Something that will probably go wrong, and what to do about it."""

    message: str
    hint: str


def program_warnings(
    bundle: Bundle, inspection_by_path: Mapping[str, FileInspection]
) -> list[ProgramWarning]:
    """Return warnings about what will probably fail on a device."""
    elf_by_path = {path: look.elf for path, look in inspection_by_path.items() if look.elf is not None}
    if _own_loader(bundle) is not None:
        warnings = list(_library_warnings(bundle, elf_by_path))
    else:
        warnings = list(_desktop_warnings(elf_by_path)) or list(_library_warnings(bundle, elf_by_path))
    started = inspection_by_path[bundle.entry].interpreter or ""
    return [*warnings, *_script_warnings(bundle.entry, started), *_other_processor_warnings(elf_by_path)]


def _desktop_warnings(elf_by_path: Mapping[str, Elf]) -> Iterator[ProgramWarning]:
    for path, elf in elf_by_path.items():
        loader = elf.interpreter or ""
        if loader and not loader.startswith(_ANDROID_LOADERS):
            yield ProgramWarning(
                message=f"`{path}` is built for desktop Linux (its loader is {loader}): it runs on virtual"
                " phones, not on Android",
                hint="an Android build's loader is /system/bin/linker64: build it with the NDK",
            )
        elif not loader and "libc.so.6" in elf.needed:
            yield ProgramWarning(
                message=f"`{path}` is a library for desktop Linux (it needs libc.so.6)",
                hint="take the library of the Android build",
            )


def _script_warnings(path: str, interpreter: str) -> Iterator[ProgramWarning]:
    if interpreter.endswith("\r"):
        yield ProgramWarning(
            message=f"`{path}` has the line ends of Windows: the phone will take each carriage return for a"
            " part of the line, in the name of its interpreter too",
            hint="save it with the line ends of Unix, for instance with `sed -i 's/\\r$//'`",
        )
    if interpreter.startswith("/usr/") and _VIRTUAL_PYTHON not in interpreter:
        yield ProgramWarning(
            message=f"`{path}` is started by {interpreter.split()[0]}, and Android has no /usr",
            hint="begin it with #!/system/bin/sh, or with #!/bin/sh for virtual phones",
        )


def _library_warnings(bundle: Bundle, elf_by_path: Mapping[str, Elf]) -> Iterator[ProgramWarning]:
    """Yield libraries that cannot be found, each once."""
    places = [path.rpartition("/") for path in elf_by_path]
    folder_by_library = {name: folder for folder, _, name in places}
    searched = {part.rstrip("/") for part in _searched_folders(bundle)}
    on_cpu = {path: elf for path, elf in elf_by_path.items() if elf.abi is not None}
    wanted_by = {library: path for path, elf in on_cpu.items() for library in elf.needed}
    for library, path in sorted(wanted_by.items()):
        folder = folder_by_library.get(library)
        if folder is None and library not in _ON_PHONES:
            yield ProgramWarning(
                message=f"`{path}` needs {library}, which is not in the bundle and not on every phone",
                hint="add the library to the folder, or link it statically",
            )
        elif folder is not None and _in_run(folder) not in searched:
            yield ProgramWarning(
                message=f"`{path}` needs {library}, which the phone will not look for in the bundle",
                hint=f"--env '{_LIBRARY_PATH}={_in_run(folder)}', in single quotes",
            )


def _own_loader(bundle: Bundle) -> str | None:
    """Return the path of the bundle's own loader if its command starts the program by one.

    With its C library beside it, as in `${work}/lib/ld-linux-aarch64.so.1 --library-path ${work}/lib
    ${program} ${arguments}`, a build for desktop Linux runs on Android's kernel.
    """
    path = bundle.command[0].removeprefix("${work}/")
    name = path.rpartition("/")[2]
    own = {file.path for file in bundle.files}
    return path if path in own and name.startswith("ld-") and path != bundle.entry else None


def _searched_folders(bundle: Bundle) -> list[str]:
    folders = bundle.env.get(_LIBRARY_PATH, "").split(":")
    words = list(bundle.command)
    if _own_loader(bundle) is not None and _LOADER_FLAG in words[:-1]:
        folders += words[words.index(_LOADER_FLAG) + 1].split(":")
    return folders


def _in_run(folder: str) -> str:
    return f"${{work}}/{folder}" if folder else "${work}"


def _other_processor_warnings(elf_by_path: Mapping[str, Elf]) -> Iterator[ProgramWarning]:
    for path, elf in elf_by_path.items():
        if elf.abi is None and elf.machine != _HEXAGON:
            yield ProgramWarning(
                message=f"`{path}` is for a processor that is not known here (ELF machine {elf.machine})",
                hint="leave it out, unless a driver loads it",
            )
