"""ExecuTorch's runner: our source, the libraries of the wheel for arm64, and Debian's C library.

The wheel is made for glibc, which Android does not have. The bundle therefore brings the C library with its
loader, and the loader starts the program.
"""

import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

from farm.bundles.debian import TOOLS, unpack_debian
from farm.bundles.packages import download_package
from farm.bundles.workshop import BundleRecipe, Workshop, sha256_of
from farm.core.base.ids import Digest
from farm.core.programs.built_with import ProgramPart
from farm.core.programs.bundle import PLAIN_COMMAND
from farm.variants.environments.pins import COMPILER, pinned_versions
from harnesses.executor_runner.build import LIBRARIES, SOURCE, compiler_arguments

_VERSION = pinned_versions("executorch")["executorch"]
#: Of the wheel for CPython 3.11; its libraries and headers are the same for every Python.
_WHEEL_DIGEST = Digest("8ee02348a3ea80ddf770822911ebf78da616b73afce0fbaaa79f23311c88c66a")
_WHEEL_CHOICE = (
    *("--only-binary=:all:", "--platform", "manylinux_2_28_aarch64"),
    *("--implementation", "cp", "--python-version", "3.11", "--abi", "cp311"),
)
_TRIPLET = "aarch64-linux-gnu"
_LOADER = "ld-linux-aarch64.so.1"
#: Of Debian: what the program and the libraries of the wheel are linked with.
_SYSTEM_LIBRARIES = (
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "libgcc_s.so.1",
    "libstdc++.so.6",
)
_PROGRAM = "executor_runner"


def build(workshop: Workshop) -> Sequence[ProgramPart]:
    """Write program, libraries and loader; return the parts.

    Raises:
        InvalidInput: a package cannot be downloaded, or the compiler fails.
        DigestMismatch: the wheel is another one.
    """
    path, wheel_part = download_package(workshop, "executorch", _VERSION, _WHEEL_DIGEST, _WHEEL_CHOICE)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(workshop.scratch / "wheel")
    wheel = workshop.scratch / "wheel" / "executorch"
    debian, debian_parts = unpack_debian(workshop, ("libc6", "libgcc-s1", "libstdc++6"))
    libraries = workshop.out / "lib"
    libraries.mkdir()
    for name in LIBRARIES:
        shutil.copy(wheel / "lib" / f"lib{name}.so", libraries)
    for name in (*_SYSTEM_LIBRARIES, _LOADER):
        shutil.copy(_find(debian, name), libraries)
    (libraries / _LOADER).chmod(0o755)
    workshop.say(f"compiling {_PROGRAM}")
    workshop.compile(
        *("c++", "-target", f"{_TRIPLET}.{_glibc_version(debian_parts)}", "-s"),
        *("-nostdinc++", "-nostdlib++", *_headers(debian)),
        *compiler_arguments(wheel, workshop.out / _PROGRAM),
        *(str(_find(debian, name)) for name in ("libstdc++.so.6", "libgcc_s.so.1")),
    )
    source = ProgramPart(
        name=_PROGRAM,
        version=_VERSION,
        digest=sha256_of(SOURCE),
        source=f"harnesses/{_PROGRAM}/{SOURCE.name}",
    )
    return (source, wheel_part, *debian_parts, workshop.compiler_part())


def _find(root: Path, name: str) -> Path:
    """Return a library of Debian, which has them in /lib or /usr/lib."""
    return next(path for folder in ("lib", "usr/lib") if (path := root / folder / _TRIPLET / name).exists())


def _headers(root: Path) -> list[str]:
    """Return the options for the headers of libstdc++: before the compiler's, which they continue with."""
    [version] = [path.name for path in (root / "usr/include/c++").iterdir() if path.name.isdigit()]
    folders = (f"usr/include/c++/{version}", f"usr/include/{_TRIPLET}/c++/{version}")
    return [f"-I{root / folder}" for folder in folders]


def _glibc_version(parts: Sequence[ProgramPart]) -> str:
    """Return the version of Debian's glibc: `2.36` of `2.36-9+deb12u1`."""
    return next(part.version.partition("-")[0] for part in parts if part.name == "libc6")


EXECUTORCH = BundleRecipe(
    name="executorch",
    harness="executor_runner",
    abi="arm64-v8a",
    ingredients=(_WHEEL_DIGEST, pinned_versions(COMPILER)["ziglang"], *_SYSTEM_LIBRARIES, sha256_of(SOURCE)),
    build=build,
    entry=_PROGRAM,
    command=(f"${{work}}/lib/{_LOADER}", "--library-path", "${work}/lib", *PLAIN_COMMAND),
    tools=TOOLS,
    # It needs a model: without one it ends after all libraries are loaded and their kernels registered.
    start_arguments=("--model_path=missing.pte",),
    start_exit_code=1,
    start_text="Failed to load model file",
)
