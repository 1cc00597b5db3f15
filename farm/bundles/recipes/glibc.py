"""Bundles with a C library of their own: for libraries made for glibc, which Android does not have.

Debian's loader starts the program, and finds all libraries beside it.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from farm.bundles.debian import unpack_debian
from farm.bundles.workshop import Workshop
from farm.core.programs.built_with import ProgramPart
from farm.core.programs.bundle import PLAIN_COMMAND

_TRIPLET = "aarch64-linux-gnu"
_LOADER = "ld-linux-aarch64.so.1"
#: What programs and libraries of wheels are linked with.
SYSTEM_LIBRARIES = (
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libgcc_s.so.1",
    "libstdc++.so.6",
)
#: Arguments of the compiler for every program with this C library, which has its own C++.
COMPILED = ("-s", "-nostdinc++", "-nostdlib++")
#: Of a bundle with this C library.
LOADER_COMMAND = (f"${{work}}/lib/{_LOADER}", "--library-path", "${work}/lib", *PLAIN_COMMAND)


@dataclass(frozen=True, slots=True, kw_only=True)
class CLibrary:
    """Debian's packages, unpacked, whose libraries are in the bundle."""

    root: Path
    parts: tuple[ProgramPart, ...]

    def compile(self, workshop: Workshop, program: str, arguments: Sequence[str]) -> None:
        """Compile C++ for this C library into the bundle's program.

        Raises:
            InvalidInput: the compiler fails.
        """
        workshop.say(f"compiling {program}")
        workshop.compile(
            *("c++", "-target", f"{_TRIPLET}.{self._version()}"),
            *(*COMPILED, *self._headers()),
            *arguments,
            *(str(self.find(name)) for name in ("libstdc++.so.6", "libgcc_s.so.1")),
        )

    def find(self, name: str) -> Path:
        """Return a library of Debian, which has them in /lib or /usr/lib."""
        paths = (self.root / folder / _TRIPLET / name for folder in ("lib", "usr/lib"))
        return next(path for path in paths if path.exists())

    def _headers(self) -> list[str]:
        """Return the options for the headers of libstdc++: before those that they continue with."""
        [version] = [path.name for path in (self.root / "usr/include/c++").iterdir() if path.name.isdigit()]
        folders = (f"usr/include/c++/{version}", f"usr/include/{_TRIPLET}/c++/{version}")
        return [f"-I{self.root / folder}" for folder in folders]

    def _version(self) -> str:
        """Return the version of Debian's glibc: `2.36` of `2.36-9+deb12u1`."""
        return next(part.version.partition("-")[0] for part in self.parts if part.name == "libc6")


def bundle_with_c_library(workshop: Workshop, libraries: Sequence[Path]) -> CLibrary:
    """Write the C library, its loader and libraries of wheels into the bundle; return the former.

    Raises:
        InvalidInput: apt cannot download its packages.
    """
    root, parts = unpack_debian(workshop, ("libc6", "libgcc-s1", "libstdc++6"))
    found = CLibrary(root=root, parts=tuple(parts))
    folder = workshop.out / "lib"
    folder.mkdir()
    for path in (*libraries, *map(found.find, (*SYSTEM_LIBRARIES, _LOADER))):
        shutil.copy(path, folder)
    (folder / _LOADER).chmod(0o755)
    return found
