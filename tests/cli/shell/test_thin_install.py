"""A laptop has the commands and the Python client without what farm and agent need."""

import os
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

from tests.support.farm.http_farm import http_farm

ROOT = Path(__file__).resolve().parents[3]
#: Refuses what the base dependencies do not bring, as a machine without it would.
_THIN = """
import sys
class Thin:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Thin())
"""
_LOAD_ALL = """
from farm.cli.shell.main import COMMANDS
for command in COMMANDS:
    command.load()
import benchfarm
"""
_ASK = """
from farm.cli.shell.main import main
for words in sys.argv[1:]:
    try:
        main(words.split())
    except SystemExit as ended:
        if ended.code:
            raise
"""
_RUN = "from farm.cli.shell.main import main; main(sys.argv[1:])"


def thin(code: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code where only the base dependencies can be imported."""
    return subprocess.run(
        [sys.executable, "-c", f"MISSING = {missing_modules()!r}\n{_THIN}\n{code}", *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@cache
def missing_modules() -> frozenset[str]:
    """Return the installed modules that are of none of the base dependencies, nor of what these need."""
    declared: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    base = {"benchfarm"}
    open_needs = list(declared)
    while open_needs:
        name = normalized(re.split(r"[^A-Za-z0-9._-]", open_needs.pop(), maxsplit=1)[0])
        if name not in base:
            base.add(name)
            with suppress(PackageNotFoundError):
                open_needs += [need for need in requires(name) or () if "extra ==" not in need]
    return frozenset(
        module
        for module, owners in packages_distributions().items()
        if base.isdisjoint(map(normalized, owners))
    )


def normalized(name: str) -> str:
    """Return the name of a distribution as every spelling of it is compared."""
    return re.sub("[-_.]+", "-", name).lower()


def test_every_command_and_the_client_can_be_imported_with_the_base_dependencies() -> None:
    done = thin(_LOAD_ALL)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("up",), "hint: pip install 'benchfarm[farm]' installs it"),
        (("agent", "run"), "hint: pip install 'benchfarm[agent]' installs it"),
        (("mcp",), "hint: pip install 'benchfarm[mcp]' installs it"),
        (("speedups", "--gate", "not-slower"), "hint: pip install 'benchfarm[statistics]' installs it"),
    ],
)
def test_a_command_that_needs_more_says_which_extra_installs_it(
    tmp_path: Path, words: tuple[str, ...], hint: str
) -> None:
    done = thin(_RUN, *words, FARM_DATA_DIR=str(tmp_path), FARM_AGENT_DATA_DIR=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == hint


def test_questions_to_a_farm_need_the_base_dependencies_only(tmp_path: Path) -> None:
    words = ("device list", "speedups", "history show", "regressions", "alarms", "whoami")
    with http_farm(tmp_path) as farm:
        done = thin(_ASK, *words, FARM_URL=farm.url)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
