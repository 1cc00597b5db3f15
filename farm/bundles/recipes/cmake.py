"""Static programs for arm64: sources that CMake configures, compiled by zig and linked with musl."""

import os
import shlex
import tarfile
from collections.abc import Sequence
from pathlib import Path

from farm.bundles.commands import run_step
from farm.bundles.workshop import Workshop
from farm.variants.environments.pins import COMPILER, pinned_versions

_TARGET = "aarch64-linux-musl"
#: Dot products and half precision: phones since about 2018. An older one ends with an illegal instruction.
_CPU = "generic+v8_2a+dotprod+fullfp16"
#: Arguments of the compiler.
FOR_PHONES = ("-target", _TARGET, f"-mcpu={_CPU}")
_OPTIONS = (
    *("CMAKE_BUILD_TYPE=Release", "BUILD_SHARED_LIBS=OFF"),
    *("CMAKE_SYSTEM_NAME=Linux", "CMAKE_SYSTEM_PROCESSOR=aarch64", "CMAKE_EXE_LINKER_FLAGS=-static -s"),
)
#: A source that asks for a CPU says so by -march, which zig does not take beside -mcpu.
_SCRIPT = """#!/bin/sh
for word; do
  shift
  case "$word" in -march=*) ;; *) set -- "$@" "$word" ;; esac
done
exec {command} "$@"
"""
#: Of every program that is built so.
INGREDIENTS = (pinned_versions(COMPILER)["ziglang"], *FOR_PHONES, *_OPTIONS, _SCRIPT)
_HINT = "`farm env remove` removes the compiler's environment, and the next build creates it again"


def unpacked(workshop: Workshop, archive: Path, folder: str) -> Path:
    """Unpack one folder of a source distribution; return it."""
    with tarfile.open(archive) as file:
        members = [member for member in file.getmembers() if member.name.startswith(f"{folder}/")]
        file.extractall(workshop.scratch, members=members, filter="data")
    return workshop.scratch / folder


def built_target(workshop: Workshop, source: Path, options: Sequence[str], target: str) -> Path:
    """Configure a source and compile one of its targets; return the folder of what is made.

    Args:
        workshop: of the build.
        source: folder with the file CMakeLists.txt.
        options: `NAME=VALUE`, beside those of all static programs.
        target: a program or a library.

    Raises:
        InvalidInput: the build fails.
    """
    workshop.say(f"configuring {target}")
    made = workshop.scratch / "made"
    words = [str(workshop.tool("cmake")), "-G", "Ninja", "-S", str(source), "-B", str(made)]
    words += [f"-D{option}" for option in (*_OPTIONS, *options, *_tools(workshop))]
    run_step(workshop.run, words, failure=f"{target} cannot be configured", hint=_HINT)
    workshop.say(f"compiling {target}: minutes")
    words = ["nice", "-n", "10", str(workshop.tool("cmake")), "--build", str(made)]
    words += ["--target", target, "-j", str(os.cpu_count() or 1)]
    run_step(workshop.run, words, failure=f"{target} cannot be compiled", hint=_HINT)
    return made


def _tools(workshop: Workshop) -> list[str]:
    """Write a script for each tool of the compiler; return the options that name all tools."""
    wrapped = {
        "CMAKE_C_COMPILER": ("cc", *FOR_PHONES),
        "CMAKE_CXX_COMPILER": ("c++", *FOR_PHONES),
        "CMAKE_AR": ("ar",),
        "CMAKE_RANLIB": ("ranlib",),
    }
    tools = {option: _wrapper(workshop, words) for option, words in wrapped.items()}
    return [
        f"{option}={path}"
        for option, path in (tools | {"CMAKE_MAKE_PROGRAM": workshop.tool("ninja")}).items()
    ]


def _wrapper(workshop: Workshop, words: Sequence[str]) -> Path:
    path = workshop.scratch / f"zig-{words[0]}"
    path.write_text(_SCRIPT.format(command=shlex.join(workshop.compiler_command(*words))))
    path.chmod(0o755)
    return path
