"""A laptop has the commands without torch."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
#: Imports every module of the commands where torch cannot be imported.
_IMPORT_ALL = """
import importlib, pkgutil, sys
sys.modules["torch"] = sys.modules["torchvision"] = None
import farm.cli
for module in pkgutil.walk_packages(farm.cli.__path__, "farm.cli."):
    importlib.import_module(module.name)
"""


def test_an_installation_without_extras_has_no_torch() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [name for name in project["dependencies"] if name.startswith(("torch", "executorch"))] == []


@pytest.mark.long
def test_every_command_can_be_imported_without_torch() -> None:
    run = subprocess.run([sys.executable, "-c", _IMPORT_ALL], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
