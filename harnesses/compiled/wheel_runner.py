"""Programs of ours in C++ that use the libraries of wheels: built for this machine's CPU.

Nothing of a wheel is imported, so what it depends on is not needed: `pip install --no-deps` of it is enough.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelRunner:
    """A program, its source, and what it takes from wheels.

    Paths are below the folder in which all wheels are installed or unpacked.
    """

    #: Of the program, and of the harness that runs it.
    name: str
    #: By the name of each wheel; the first has the runtime, and its version is the program's.
    versions: dict[str, str]
    sources: tuple[Path, ...]
    #: By the name in the bundle's folder `lib`: the library's path.
    libraries: dict[str, str]
    #: Returns the arguments of a C++ compiler for the wheels' folder, without sources and output.
    arguments: Callable[[Path], list[str]]

    @property
    def version(self) -> str:
        """Return the version of the runtime."""
        return next(iter(self.versions.values()))

    @property
    def requirements(self) -> list[str]:
        """Return what pip has to install."""
        return [f"{name}=={version}" for name, version in self.versions.items()]

    def compiler_arguments(self, wheels: Path, program: Path) -> list[str]:
        """Return the arguments by which a C++ compiler makes the program with the wheels' folder."""
        compiled = [str(source) for source in self.sources if source.suffix == ".cpp"]
        return ["-std=c++17", "-O2", *compiled, "-o", str(program), *self.arguments(wheels)]

    def copy_libraries(self, wheels: Path, out: Path) -> None:
        """Copy the libraries of the wheels' folder into the folder `lib` of a bundle."""
        (out / "lib").mkdir(parents=True, exist_ok=True)
        for name, path in self.libraries.items():
            shutil.copy(wheels / path, out / "lib" / name)


def build(runner: WheelRunner, wheels: Path, out: Path) -> None:
    """Write the program and its libraries into `out`, as a bundle.

    Raises:
        OSError: a wheel has no such library, or the bundle cannot be written.
        subprocess.CalledProcessError: the compiler fails.
    """
    runner.copy_libraries(wheels, out)
    subprocess.run(["c++", *runner.compiler_arguments(wheels, out / runner.name)], check=True)


def main(runner: WheelRunner) -> int:
    """Build a program into the folder of the command line; return the exit code."""
    wanted = " ".join(runner.requirements)
    parser = argparse.ArgumentParser(
        description=f"Build {runner.name} against the installed wheel {' and '.join(runner.versions)}."
    )
    parser.add_argument("out", type=Path, help="folder for the program and its libraries")
    out = parser.parse_args().out
    if shutil.which("c++") is None:
        print("no C++ compiler. hint: on Debian and Ubuntu, apt install g++", file=sys.stderr)
        return 1
    try:
        folders = {Path(str(distribution(name).locate_file(""))) for name in runner.versions}
    except PackageNotFoundError as error:
        print(f"{error.name} is not installed. hint: pip install --no-deps {wanted}", file=sys.stderr)
        return 1
    if len(folders) != 1:
        found = " and ".join(sorted(map(str, folders)))
        print(f"the wheels are in {found}. hint: install both into one environment", file=sys.stderr)
        return 1
    try:
        build(runner, folders.pop(), out)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{error}: is it {wanted}?", file=sys.stderr)
        return 1
    print(f"farm harness add {runner.name} {out} --env 'LD_LIBRARY_PATH=${{work}}/lib'")
    return 0
