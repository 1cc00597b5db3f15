"""Our `benchncnn` with ncnn's library as one static file, from the source distribution of ncnn.

The source distribution has the library, and not its tools.
"""

from collections.abc import Sequence
from pathlib import Path

from farm.bundles.packages import download_dated_source
from farm.bundles.recipes.cmake import FOR_PHONES, INGREDIENTS, built_target, unpacked
from farm.bundles.workshop import BundleRecipe, Start, Workshop, sha256_of, source_parts
from farm.core.base.ids import Digest
from farm.core.programs.built_with import ProgramPart
from farm.variants.environments.pins import pinned_versions
from harnesses.compiled.benchncnn import SOURCE

_PACKAGE = "ncnn"
VERSION = pinned_versions(_PACKAGE)[_PACKAGE]
_SDIST_DIGEST = Digest("ad8cdd63e9755cfa8e23b9b6d9ce46156077d80298a89e7c3ba325ffccfca200")
_DATE = VERSION.rpartition(".")[2]
_OPTIONS = (
    # The compiler's options decide what the CPU can do: nothing is chosen when the program starts.
    *("NCNN_RUNTIME_CPU=OFF", f"NCNN_VERSION={_DATE}", "NCNN_VULKAN=OFF", "NCNN_PYTHON=OFF"),
    # OpenMP without a library of its own.
    *("NCNN_OPENMP=ON", "NCNN_SIMPLEOMP=ON"),
    # What no inference of the tool uses.
    *("NCNN_BF16=OFF", "NCNN_PIXEL=OFF", "NCNN_C_API=OFF"),
    *("NCNN_BUILD_BENCHMARK=OFF", "NCNN_BUILD_TOOLS=OFF", "NCNN_BUILD_EXAMPLES=OFF"),
)
_PROGRAM = "benchncnn"
#: Of the compiler, for the program itself.
_COMPILED = ("-std=c++17", "-O2", "-static", "-s")


def _build(workshop: Workshop) -> Sequence[ProgramPart]:
    """Write the program; return the parts.

    Raises:
        InvalidInput: a package cannot be downloaded, or the build fails.
        DigestMismatch: the source distribution is another one.
    """
    path, sdist_part = download_dated_source(workshop, _PACKAGE, VERSION, _SDIST_DIGEST, _DATE)
    source = unpacked(workshop, path, f"{_PACKAGE}-{VERSION}")
    made = built_target(workshop, source, _OPTIONS, _PACKAGE)
    _link(workshop, (source / "src", made / "src"), made / "src" / "libncnn.a")
    return (*source_parts(VERSION, (SOURCE,)), sdist_part, workshop.compiler_part())


def _link(workshop: Workshop, includes: Sequence[Path], library: Path) -> None:
    workshop.say(f"compiling {_PROGRAM}")
    workshop.compile(
        *("c++", *FOR_PHONES, *_COMPILED),
        *(f"-I{folder}" for folder in includes),
        *(str(SOURCE), str(library), "-o", str(workshop.out / _PROGRAM)),
    )


NCNN = BundleRecipe(
    name=_PACKAGE,
    harness=_PROGRAM,
    abi="arm64-v8a",
    ingredients=(_SDIST_DIGEST, *INGREDIENTS, *_OPTIONS, *_COMPILED, sha256_of(SOURCE)),
    build=_build,
    entry=_PROGRAM,
    start=Start(arguments=(), exit_code=1, text="usage: benchncnn"),
)
