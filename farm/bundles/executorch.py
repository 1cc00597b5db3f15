"""ExecuTorch's runner: our source, the libraries of the wheel for arm64, and Debian's C library."""

import zipfile
from collections.abc import Sequence

from farm.bundles.debian import TOOLS
from farm.bundles.glibc import LOADER_COMMAND, SYSTEM_LIBRARIES, bundle_with_c_library
from farm.bundles.packages import ARM64_WHEELS, download_package
from farm.bundles.workshop import BundleRecipe, Workshop, sha256_of
from farm.core.base.ids import Digest
from farm.core.programs.built_with import ProgramPart
from farm.variants.environments.pins import COMPILER, pinned_versions
from harnesses.executor_runner.build import LIBRARIES, SOURCE, compiler_arguments

_VERSION = pinned_versions("executorch")["executorch"]
#: Of the wheel for CPython 3.11; its libraries and headers are the same for every Python.
_WHEEL_DIGEST = Digest("8ee02348a3ea80ddf770822911ebf78da616b73afce0fbaaa79f23311c88c66a")
_PROGRAM = "executor_runner"


def build(workshop: Workshop) -> Sequence[ProgramPart]:
    """Write program, libraries and loader; return the parts.

    Raises:
        InvalidInput: a package cannot be downloaded, or the compiler fails.
        DigestMismatch: the wheel is another one.
    """
    path, wheel_part = download_package(workshop, "executorch", _VERSION, _WHEEL_DIGEST, ARM64_WHEELS)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(workshop.scratch / "wheel")
    wheel = workshop.scratch / "wheel" / "executorch"
    debian = bundle_with_c_library(workshop, [wheel / "lib" / f"lib{name}.so" for name in LIBRARIES])
    debian.compile(workshop, _PROGRAM, compiler_arguments(wheel, workshop.out / _PROGRAM))
    source = ProgramPart(
        name=_PROGRAM,
        version=_VERSION,
        digest=sha256_of(SOURCE),
        source=f"harnesses/{_PROGRAM}/{SOURCE.name}",
    )
    return (source, wheel_part, *debian.parts, workshop.compiler_part())


EXECUTORCH = BundleRecipe(
    name="executorch",
    harness="executor_runner",
    abi="arm64-v8a",
    ingredients=(_WHEEL_DIGEST, pinned_versions(COMPILER)["ziglang"], *SYSTEM_LIBRARIES, sha256_of(SOURCE)),
    build=build,
    entry=_PROGRAM,
    command=LOADER_COMMAND,
    tools=TOOLS,
    # It needs a model: without one it ends after all libraries are loaded and their kernels registered.
    start_arguments=("--model_path=missing.pte",),
    start_exit_code=1,
    start_text="Failed to load model file",
)
