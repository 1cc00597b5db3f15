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

#: The wheel's library is named after it.
_PYTHON = (3, 11)
#: Of OpenMP, which the wheel brings.
_OPENMP = {"aarch64": "libgomp-d22c30c5.so.1.0.0", "x86_64": "libgomp-a34b3233.so.1.0.0"}


def runner(machine: str) -> WheelRunner:
    """Return the program for a kind of machine, by the name that its kernel has for it.

    Raises:
        KeyError: MNN has no wheel for such machines.
    """
    library = f"_mnncengine.cpython-{''.join(map(str, _PYTHON))}-{machine}-linux-gnu.so"
    openmp = _OPENMP[machine]
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


def unsupported(machine: str, python: tuple[int, int]) -> str | None:
    """Return why the program cannot be built from the wheel of a machine's Python; None when it can."""
    if python != _PYTHON:
        wanted, found = (".".join(map(str, version)) for version in (_PYTHON, python))
        return (
            f"it takes MNN's wheel for Python {wanted}, and this is {found}. hint: run it by python{wanted}"
        )
    if machine not in _OPENMP:
        return f"MNN has no wheel that is known for {machine}, only for {' and '.join(_OPENMP)}"
    return None


if __name__ == "__main__":
    _machine = platform.machine()
    sys.exit(unsupported(_machine, sys.version_info[:2]) or main(runner(_machine)))
