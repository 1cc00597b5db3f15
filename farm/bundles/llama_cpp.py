"""llama.cpp's `llama-bench` as one static file, from the source distribution of llama-cpp-python."""

import os
import shlex
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

from farm.bundles.commands import run_step
from farm.bundles.packages import download_package
from farm.bundles.workshop import BundleRecipe, Workshop
from farm.core.base.ids import Digest
from farm.core.programs.built_with import ProgramPart
from farm.variants.environments.pins import COMPILER, pinned_versions

PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
#: Of llama.cpp inside, which has no history there to read it from.
COMMIT = "0c1e570"
_SDIST_DIGEST = Digest("832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e")
_SOURCE = f"llama_cpp_python-{VERSION}/vendor/llama.cpp/"
_TARGET = "aarch64-linux-musl"
#: Dot products and half precision: phones since about 2018. An older one ends with an illegal instruction.
_CPU = "generic+v8_2a+dotprod+fullfp16"
_OPTIONS = (
    *("CMAKE_BUILD_TYPE=Release", "BUILD_SHARED_LIBS=OFF", "GGML_NATIVE=OFF", "GGML_OPENMP=OFF"),
    *("GGML_CCACHE=OFF", "LLAMA_OPENSSL=OFF", "LLAMA_BUILD_TESTS=OFF", "LLAMA_BUILD_EXAMPLES=OFF"),
    *("LLAMA_BUILD_SERVER=OFF", "LLAMA_BUILD_APP=OFF", f"LLAMA_BUILD_COMMIT={COMMIT}"),
    *("CMAKE_SYSTEM_NAME=Linux", "CMAKE_SYSTEM_PROCESSOR=aarch64", "CMAKE_EXE_LINKER_FLAGS=-static -s"),
)
_PROGRAM = "llama-bench"
_HINT = "`farm env remove` removes the compiler's environment, and the next build creates it again"


def build(workshop: Workshop) -> Sequence[ProgramPart]:
    """Write the program; return the parts.

    Raises:
        InvalidInput: a package cannot be downloaded, or the build fails.
        DigestMismatch: the source distribution is another one.
    """
    path, source_part = download_package(workshop, PACKAGE, VERSION, _SDIST_DIGEST, ("--no-binary", PACKAGE))
    with tarfile.open(path) as archive:
        members = [member for member in archive.getmembers() if member.name.startswith(_SOURCE)]
        archive.extractall(workshop.scratch, members=members, filter="data")
    workshop.say(f"configuring {_PROGRAM}")
    made = workshop.scratch / "made"
    cmake = [
        str(workshop.tool("cmake")),
        "-G",
        "Ninja",
        "-S",
        str(workshop.scratch / _SOURCE),
        "-B",
        str(made),
    ]
    options = [*_OPTIONS, f"CMAKE_MAKE_PROGRAM={workshop.tool('ninja')}", *_wrappers(workshop)]
    run_step(
        workshop.run,
        [*cmake, *(f"-D{option}" for option in options)],
        failure=f"{_PROGRAM} cannot be configured",
        hint=_HINT,
    )
    workshop.say(f"compiling {_PROGRAM}: minutes")
    jobs = str(os.cpu_count() or 1)
    words = ["nice", "-n", "10", str(workshop.tool("cmake")), "--build", str(made)]
    words += ["--target", _PROGRAM, "-j", jobs]
    run_step(workshop.run, words, failure=f"{_PROGRAM} cannot be compiled", hint=_HINT)
    shutil.copy(made / "bin" / _PROGRAM, workshop.out)
    return (source_part, workshop.compiler_part())


def _wrappers(workshop: Workshop) -> list[str]:
    """Write a script for each tool of the compiler; return the options that name them."""
    tools = {
        "CMAKE_C_COMPILER": ("cc", "-target", _TARGET, f"-mcpu={_CPU}"),
        "CMAKE_CXX_COMPILER": ("c++", "-target", _TARGET, f"-mcpu={_CPU}"),
        "CMAKE_AR": ("ar",),
        "CMAKE_RANLIB": ("ranlib",),
    }
    return [f"{option}={_wrapper(workshop, words)}" for option, words in tools.items()]


def _wrapper(workshop: Workshop, words: Sequence[str]) -> Path:
    path = workshop.scratch / f"zig-{words[0]}"
    path.write_text(f'#!/bin/sh\nexec {shlex.join(workshop.compiler_command(*words))} "$@"\n')
    path.chmod(0o755)
    return path


LLAMA_CPP = BundleRecipe(
    name="llama.cpp",
    harness=_PROGRAM,
    abi="arm64-v8a",
    ingredients=(_SDIST_DIGEST, pinned_versions(COMPILER)["ziglang"], _TARGET, _CPU, *_OPTIONS),
    build=build,
    entry=_PROGRAM,
    start_arguments=("--help",),
    start_exit_code=0,
    start_text="--n-gen",
)
