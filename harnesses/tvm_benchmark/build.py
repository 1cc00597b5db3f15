"""Build tvm_benchmark for this machine's CPU, from the source beside this file and the wheels of TVM.

python harnesses/tvm_benchmark/build.py OUT
farm harness add tvm_benchmark OUT --env 'LD_LIBRARY_PATH=${work}/lib'

Nothing of the wheels is imported, so their dependencies are not needed:
pip install --no-deps apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post1
"""

import argparse
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

SOURCE = Path(__file__).with_name("tvm_benchmark.cpp")
#: By the folder of site-packages that has it.
LIBRARIES = {"tvm_runtime": "tvm", "tvm_ffi": "tvm_ffi"}
_INCLUDES = ("tvm_ffi/include", "tvm_ffi/3rdparty/dlpack/include")


def library_path(wheels: Path, name: str) -> Path:
    """Return a library of the wheels, which were unpacked or installed into one folder."""
    return wheels / LIBRARIES[name] / "lib" / f"lib{name}.so"


def compiler_arguments(wheels: Path, program: Path) -> list[str]:
    """Return the arguments by which a C++ compiler makes the program."""
    flags = ["-std=c++17", "-O2", *(f"-I{wheels / folder}" for folder in _INCLUDES)]
    # The virtual machine registers itself when it is loaded; nothing refers to it.
    linked = ["-Wl,--no-as-needed", *(str(library_path(wheels, name)) for name in LIBRARIES)]
    return [*flags, str(SOURCE), "-o", str(program), *linked]


def build(wheels: Path, out: Path) -> None:
    """Write the program and its libraries into `out`, as a bundle.

    Raises:
        subprocess.CalledProcessError: the compiler fails.
    """
    (out / "lib").mkdir(parents=True, exist_ok=True)
    subprocess.run(["c++", *compiler_arguments(wheels, out / "tvm_benchmark")], check=True)
    for name in LIBRARIES:
        shutil.copy(library_path(wheels, name), out / "lib")


def main() -> int:
    """Build into the folder of the command line."""
    parser = argparse.ArgumentParser(description="Build tvm_benchmark against the installed wheels of TVM.")
    parser.add_argument("out", type=Path, help="folder for the program and its libraries")
    out = parser.parse_args().out
    if shutil.which("c++") is None:
        print("no C++ compiler. hint: on Debian and Ubuntu, apt install g++", file=sys.stderr)
        return 1
    try:
        wheels = Path(str(distribution("apache-tvm").locate_file("")))
        distribution("apache-tvm-ffi")
    except PackageNotFoundError as error:
        pins = "apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post1"
        print(f"{error.name} is not installed. hint: pip install --no-deps {pins}", file=sys.stderr)
        return 1
    try:
        build(wheels, out)
    except subprocess.CalledProcessError as error:
        print(f"the compiler ended with exit code {error.returncode}: is it TVM 0.27?", file=sys.stderr)
        return 1
    print(f"farm harness add tvm_benchmark {out} --env 'LD_LIBRARY_PATH=${{work}}/lib'")
    return 0


if __name__ == "__main__":
    sys.exit(main())
