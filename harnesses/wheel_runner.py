"""Programs of ours in C++ that use the libraries of a wheel: built for this machine's CPU.

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
    """A program, its source, and what it takes from a wheel."""

    #: Of the program, and of the harness that runs it.
    name: str
    #: Of the wheel, which is also that of its folder.
    package: str
    version: str
    sources: tuple[Path, ...]
    #: By the name in the bundle's folder `lib`: the library's path in the wheel's folder.
    libraries: dict[str, str]
    #: Returns the arguments of a C++ compiler for the wheel's folder, without sources and output.
    arguments: Callable[[Path], list[str]]

    def compiler_arguments(self, wheel: Path, program: Path) -> list[str]:
        """Return the arguments by which a C++ compiler makes the program with the wheel's folder."""
        compiled = [str(source) for source in self.sources if source.suffix == ".cpp"]
        return ["-std=c++17", "-O2", *compiled, "-o", str(program), *self.arguments(wheel)]

    def copy_libraries(self, wheel: Path, out: Path) -> None:
        """Copy the libraries of the wheel's folder into the folder `lib` of a bundle."""
        (out / "lib").mkdir(parents=True, exist_ok=True)
        for name, path in self.libraries.items():
            shutil.copy(wheel / path, out / "lib" / name)


def build(runner: WheelRunner, wheel: Path, out: Path) -> None:
    """Write the program and its libraries into `out`, as a bundle.

    Raises:
        subprocess.CalledProcessError: the compiler fails.
    """
    runner.copy_libraries(wheel, out)
    subprocess.run(["c++", *runner.compiler_arguments(wheel, out / runner.name)], check=True)


def main(runner: WheelRunner) -> int:
    """Build a program into the folder of the command line; return the exit code."""
    wanted = f"{runner.package}=={runner.version}"
    parser = argparse.ArgumentParser(
        description=f"Build {runner.name} against the installed wheel {runner.package}."
    )
    parser.add_argument("out", type=Path, help="folder for the program and its libraries")
    out = parser.parse_args().out
    if shutil.which("c++") is None:
        print("no C++ compiler. hint: on Debian and Ubuntu, apt install g++", file=sys.stderr)
        return 1
    try:
        wheel = Path(str(distribution(runner.package).locate_file(runner.package)))
    except PackageNotFoundError:
        print(f"{runner.package} is not installed. hint: pip install --no-deps {wanted}", file=sys.stderr)
        return 1
    try:
        build(runner, wheel, out)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        print(f"{error}: is it {wanted}?", file=sys.stderr)
        return 1
    print(f"farm harness add {runner.name} {out} --env 'LD_LIBRARY_PATH=${{work}}/lib'")
    return 0
