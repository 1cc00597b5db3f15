"""Programs of ours with the libraries of runtimes' wheels for arm64, and Debian's C library."""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from farm.bundles.debian import TOOLS
from farm.bundles.packages import ARM64_WHEELS, download_package
from farm.bundles.recipes.glibc import COMPILED, LOADER_COMMAND, SYSTEM_LIBRARIES, bundle_with_c_library
from farm.bundles.workshop import BundleRecipe, Start, Workshop, sha256_of, source_parts
from farm.core.base.ids import Digest
from farm.core.programs.built_with import ProgramPart
from farm.variants.environments.pins import COMPILER, pinned_versions
from harnesses.compiled.benchmark_model.build import RUNNER as BENCHMARK_MODEL
from harnesses.compiled.executor_runner.build import RUNNER as EXECUTOR_RUNNER
from harnesses.compiled.litert_lm_advanced_main.build import RUNNER as LITERT_LM_ADVANCED_MAIN
from harnesses.compiled.mnn_benchmark.build import runner as mnn_benchmark
from harnesses.compiled.onnxruntime_perf_test.build import RUNNER as ONNXRUNTIME_PERF_TEST
from harnesses.compiled.tvm_benchmark.build import RUNNER as TVM_BENCHMARK
from harnesses.compiled.wheel_runner import WheelRunner


def _recipe(name: str, runner: WheelRunner, digests: Mapping[str, str], start: Start) -> BundleRecipe:
    """Return the recipe of a program.

    Args:
        name: of the recipe.
        runner: the program, and what it takes from its wheels.
        digests: the SHA-256 of each wheel, by its name. Those for one Python are for CPython 3.11; what they
            have is the same for every Python.
        start: how the program is started once.
    """
    # The digests of sources are ingredients; where they lie on this machine is none.
    named = replace(runner, sources=tuple(Path(source.name) for source in runner.sources))
    return BundleRecipe(
        name=name,
        harness=runner.name,
        abi="arm64-v8a",
        ingredients=(
            *(*digests.values(), pinned_versions(COMPILER)["ziglang"], *SYSTEM_LIBRARIES, *COMPILED),
            *map(sha256_of, runner.sources),
            *named.compiler_arguments(Path("wheels"), Path(runner.name)),
            *map("=".join, runner.libraries.items()),
        ),
        build=lambda workshop: _build(workshop, runner, digests),
        entry=runner.name,
        command=LOADER_COMMAND,
        tools=TOOLS,
        start=start,
    )


def _build(workshop: Workshop, runner: WheelRunner, digests: Mapping[str, str]) -> Sequence[ProgramPart]:
    """Write program, libraries and loader; return the parts.

    Raises:
        InvalidInput: a package cannot be downloaded, or the compiler fails.
        DigestMismatch: a wheel is another one.
    """
    wheels, parts = workshop.scratch / "wheels", []
    for name, version in runner.versions.items():
        path, part = download_package(workshop, name, version, Digest(digests[name]), ARM64_WHEELS)
        with zipfile.ZipFile(path) as archive:
            archive.extractall(wheels)
        parts.append(part)
    debian = bundle_with_c_library(workshop, ())
    runner.copy_libraries(wheels, workshop.out)
    debian.compile(workshop, runner.name, runner.compiler_arguments(wheels, workshop.out / runner.name))
    own = source_parts(runner.version, runner.sources)
    return (*own, *parts, *debian.parts, workshop.compiler_part())


EXECUTORCH = _recipe(
    "executorch",
    EXECUTOR_RUNNER,
    {"executorch": "8ee02348a3ea80ddf770822911ebf78da616b73afce0fbaaa79f23311c88c66a"},
    # It needs a model: without one it ends after all libraries are loaded and their kernels registered.
    Start(arguments=("--model_path=missing.pte",), exit_code=1, text="Failed to load model file"),
)
ONNXRUNTIME = _recipe(
    "onnxruntime",
    ONNXRUNTIME_PERF_TEST,
    {"onnxruntime": "da05378364c44d4407e463982d2bf8d5e4cfea873283757e48beeb41df97b7f3"},
    # Without a model it ends after the library has found out what the CPU is.
    Start(arguments=("-I", "missing.onnx"), exit_code=1, text="cannot load the model"),
)
TVM = _recipe(
    "tvm",
    TVM_BENCHMARK,
    {
        "apache-tvm": "4acfdb7653e4e1ba7a707bdf2833db72eb8fda7d04d99141f2a4e1da43171fb7",
        "apache-tvm-ffi": "c7a759781d4fbf2b99fa12f2741f250b882b06acc2747bb02831d491d1ac7d3c",
    },
    # Without a model it ends after all libraries are loaded.
    Start(arguments=("--model=missing.so",), exit_code=1, text="Failed to load dynamic shared library"),
)
LITERT = _recipe(
    "litert",
    BENCHMARK_MODEL,
    {"ai-edge-litert": "853fc608f96da87bd5f3458465dfb9abbf18d5ae6b94eceacead407146f175ae"},
    # Without a model it ends after LiteRT has registered XNNPACK.
    Start(arguments=("--graph=missing.tflite",), exit_code=1, text="Failed to load model"),
)
LITERT_LM = _recipe(
    "litert-lm",
    LITERT_LM_ADVANCED_MAIN,
    {"litert-lm-api": "9c0e02bf7596693d9adbf6bfbb1bf08ae60c61abf9fa22dff19e5afe6af276f2"},
    # Without a model it ends after its library is loaded.
    Start(
        arguments=("--benchmark", "--model_path=missing.litertlm"),
        exit_code=1,
        text="litert_lm_advanced_main]",
    ),
)
MNN = _recipe(
    "mnn",
    mnn_benchmark("aarch64"),
    {"mnn": "7f8fbf264047e81bf66f0b04ef95a8c83b8d5ca0a3670afcf3c0c3b6861de4a5"},
    # Without a folder of models it ends after all libraries are loaded.
    Start(arguments=("missing", "1"), exit_code=1, text="open missing failed"),
)
