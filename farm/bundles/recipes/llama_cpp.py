"""llama.cpp's `llama-bench` as one static file, from the source distribution of llama-cpp-python."""

import shutil
from collections.abc import Sequence

from farm.bundles.packages import download_package
from farm.bundles.recipes.cmake import INGREDIENTS, built_target, unpacked
from farm.bundles.workshop import BundleRecipe, Start, Workshop
from farm.core.base.ids import Digest
from farm.core.programs.built_with import ProgramPart

PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
#: Of llama.cpp inside, which has no history there to read it from.
COMMIT = "0c1e570"
_SDIST_DIGEST = Digest("832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e")
_SOURCE = f"llama_cpp_python-{VERSION}/vendor/llama.cpp"
_OPTIONS = (
    *("GGML_NATIVE=OFF", "GGML_OPENMP=OFF", "GGML_CCACHE=OFF", "LLAMA_OPENSSL=OFF"),
    *("LLAMA_BUILD_TESTS=OFF", "LLAMA_BUILD_EXAMPLES=OFF", "LLAMA_BUILD_SERVER=OFF", "LLAMA_BUILD_APP=OFF"),
    f"LLAMA_BUILD_COMMIT={COMMIT}",
)
_PROGRAM = "llama-bench"


def _build(workshop: Workshop) -> Sequence[ProgramPart]:
    """Write the program; return the parts.

    Raises:
        InvalidInput: a package cannot be downloaded, or the build fails.
        DigestMismatch: the source distribution is another one.
    """
    path, source_part = download_package(workshop, PACKAGE, VERSION, _SDIST_DIGEST, ("--no-binary", PACKAGE))
    made = built_target(workshop, unpacked(workshop, path, _SOURCE), _OPTIONS, _PROGRAM)
    shutil.copy(made / "bin" / _PROGRAM, workshop.out)
    return (source_part, workshop.compiler_part())


LLAMA_CPP = BundleRecipe(
    name="llama.cpp",
    harness=_PROGRAM,
    abi="arm64-v8a",
    ingredients=(_SDIST_DIGEST, *INGREDIENTS, *_OPTIONS),
    build=_build,
    entry=_PROGRAM,
    start=Start(arguments=("--help",), exit_code=0, text="--n-gen"),
)
