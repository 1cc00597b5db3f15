"""Runners of ours that are compiled with the library of a wheel, for tests that start them."""

import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

_COMPILED = Path(__file__).parents[3] / "harnesses" / "compiled"


def built_program(name: str, wheel: str, out: Path) -> Path:
    """Build a runner by its own script, which says how to register it, into a folder; return the folder.

    Args:
        name: of its harness, and of its folder below `harnesses/compiled`.
        wheel: the distribution whose library it calls. Without it or a compiler the test is skipped.
        out: the folder.
    """
    try:
        distribution(wheel)
    except PackageNotFoundError:
        pytest.skip(f"{wheel} is not installed (make installs it)")
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    command = [sys.executable, str(_COMPILED / name / "build.py"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert f"farm harness add {name}" in done.stdout
    return out
