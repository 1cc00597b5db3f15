"""Runners of ours that tests start: compiled with the library of a wheel, once in a test run."""

import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from tests.support.session.shared_folder import one_at_a_time, shared_folder

_COMPILED = Path(__file__).parents[3] / "harnesses" / "compiled"


def built_program(name: str, wheel: str, factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return the folder of a runner, which its own script builds and says how to register.

    Args:
        name: of its harness, and of its folder below `harnesses/compiled`.
        wheel: the distribution whose library it calls. Without it or a compiler the test is skipped.
        factory: of the folders of the test run.
        worker_id: of this process in it.
    """
    try:
        distribution(wheel)
    except PackageNotFoundError:
        pytest.skip(f"{wheel} is not installed (make installs it)")
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    folder = shared_folder(factory, worker_id, "programs")
    with one_at_a_time(folder):
        if not (built := folder / name).exists():
            _build(name, out := folder / f"{name}.new")
            out.rename(built)
    return built


def _build(name: str, out: Path) -> None:
    command = [sys.executable, str(_COMPILED / name / "build.py"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert f"farm harness add {name}" in done.stdout
