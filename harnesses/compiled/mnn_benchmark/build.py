"""Build mnn_benchmark for this machine's CPU, from the sources beside this file and a wheel of MNN.

pip install --no-deps MNN==3.6.1
python harnesses/compiled/mnn_benchmark/build.py OUT
farm harness add mnn_benchmark OUT --env 'LD_LIBRARY_PATH=${work}/lib'

Nothing of the wheel is imported or started: its module MNN.tools installs software when it is imported.
"""

import platform
import sys
from pathlib import Path

from harnesses.compiled.wheel_runner import WheelRunner, main

#: Of OpenMP, which the wheel brings.
_OPENMP = {"aarch64": "libgomp-d22c30c5.so.1.0.0", "x86_64": "libgomp-a34b3233.so.1.0.0"}


def runner(machine: str) -> WheelRunner:
    """Return the program for a kind of machine, by the name that its kernel has for it."""
    library = f"_mnncengine.cpython-311-{machine}-linux-gnu.so"
    openmp = _OPENMP.get(machine, "")
    return WheelRunner(
        name="mnn_benchmark",
        versions={"mnn": "3.6.1"},
        sources=tuple(
            Path(__file__).with_name(name)
            for name in ("mnn_benchmark.cpp", "python_symbols.cpp", "interpreter.h")
        ),
        libraries={library: library, openmp: f"mnn.libs/{openmp}"},
        arguments=lambda wheels: _arguments(wheels, library),
    )


def _arguments(wheels: Path, library: str) -> list[str]:
    # It is found by its file's name: it states no other. It needs names of this program.
    return [
        "-D_GLIBCXX_USE_CXX11_ABI=0",
        "-rdynamic",
        f"-L{wheels}",
        f"-l:{library}",
        "-Wl,--allow-shlib-undefined",
    ]


if __name__ == "__main__":
    sys.exit(main(runner(platform.machine())))
