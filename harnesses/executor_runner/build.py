"""Build executor_runner for this machine's CPU, from the source beside this file and the wheel `executorch`.

python harnesses/executor_runner/build.py OUT
farm harness add executor_runner OUT --env 'LD_LIBRARY_PATH=${work}/lib'

Nothing of the wheel is imported, so its dependencies are not needed: pip install --no-deps executorch==1.5.1
"""

import argparse
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

SOURCE = Path(__file__).with_name("executor_runner.cpp")
LIBRARIES = (
    "executorch_backend_xnnpack",
    "executorch_kernels_optimized",
    "executorch_kernels_quantized",
    "executorch_etdump",
    "executorch_threadpool",
    "executorch",
)
#: Where the headers expect those of c10, of which the wheel has a part.
_INCLUDES = ("include", "include/executorch/runtime/core/portable_type/c10")


def compiler_arguments(wheel: Path, program: Path) -> list[str]:
    """Return the arguments by which a C++ compiler makes the program of the wheel's folder `executorch`."""
    # Kernels and backends register themselves when they are loaded; nothing refers to them.
    linked = [f"-L{wheel / 'lib'}", "-Wl,--no-as-needed", *(f"-l{name}" for name in LIBRARIES)]
    # As the libraries themselves were compiled: classes of the headers have members for the tracer.
    flags = ["-std=c++17", "-O2", "-DC10_USING_CUSTOM_GENERATED_MACROS", "-DET_EVENT_TRACER_ENABLED"]
    flags += [f"-I{wheel / folder}" for folder in _INCLUDES]
    return [*flags, str(SOURCE), "-o", str(program), *linked]


def build(wheel: Path, out: Path) -> None:
    """Write the program and its libraries into `out`, as a bundle.

    Raises:
        subprocess.CalledProcessError: the compiler fails.
    """
    (out / "lib").mkdir(parents=True, exist_ok=True)
    subprocess.run(["c++", *compiler_arguments(wheel, out / "executor_runner")], check=True)
    for name in LIBRARIES:
        shutil.copy(wheel / "lib" / f"lib{name}.so", out / "lib")


def main() -> int:
    """Build into the folder of the command line."""
    parser = argparse.ArgumentParser(
        description="Build executor_runner against the installed wheel executorch."
    )
    parser.add_argument("out", type=Path, help="folder for the program and its libraries")
    out = parser.parse_args().out
    if shutil.which("c++") is None:
        print("no C++ compiler. hint: on Debian and Ubuntu, apt install g++", file=sys.stderr)
        return 1
    try:
        wheel = Path(str(distribution("executorch").locate_file("executorch")))
    except PackageNotFoundError:
        print("executorch is not installed. hint: pip install --no-deps executorch==1.5.1", file=sys.stderr)
        return 1
    try:
        build(wheel, out)
    except subprocess.CalledProcessError as error:
        print(
            f"the compiler ended with exit code {error.returncode}: is it executorch 1.5.1?", file=sys.stderr
        )
        return 1
    print(f"farm harness add executor_runner {out} --env 'LD_LIBRARY_PATH=${{work}}/lib'")
    return 0


if __name__ == "__main__":
    sys.exit(main())
