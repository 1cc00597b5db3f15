"""The command that keeps regimes apart, run by a real shell with a tool that writes caches."""

import subprocess
from pathlib import Path
from string import Template

import pytest

from farm.core.runs.derived.generation import CacheFile, Regime
from farm.harness.llm.caches import caches, model_path, printed_text, with_regime

#: Prints how many caches it finds, and writes one.
TOOL = """#!/bin/sh
[ "$1" = broken ] && { echo "no model" >&2; exit 7; }
echo "found $(ls model | grep -c cache)"
echo weights > model/net.cache
[ "$2" = short ] || exit "$1"
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "net").write_text("network")
    (tmp_path / model_path("net")).symlink_to(tmp_path / "net")
    tool = tmp_path / "tool"
    tool.write_text(TOOL)
    tool.chmod(0o755)
    return tmp_path


def run(work: Path, regime: Regime, argument: str = "0") -> subprocess.CompletedProcess[str]:
    words = with_regime(("./tool", argument), regime, short=("short",))
    argv = [Template(word).substitute() for word in words]
    return subprocess.run(argv, cwd=work, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(("regime", "found"), [(Regime.FIRST, 0), (Regime.WARM, 0), (Regime.COLD, 1)])
def test_only_a_cold_process_finds_caches(work: Path, regime: Regime, found: int) -> None:
    ended = run(work, regime)
    assert (ended.returncode, printed_text(ended.stdout)) == (0, f"found {found}\n")
    cache = CacheFile(name="net.cache", size_bytes=len("weights\n"))
    assert caches(ended.stdout, "before") == (cache,) * found
    assert caches(ended.stdout, "after") == (cache,)


def test_caches_that_lie_there_are_dropped_before_a_first_run_and_the_model_stays(work: Path) -> None:
    (work / "model" / "old.cache").write_text("old")
    ended = run(work, Regime.FIRST)
    assert printed_text(ended.stdout) == "found 0\n"
    assert (work / model_path("net")).read_text() == "network"


@pytest.mark.parametrize("regime", Regime)
def test_the_command_ends_as_the_tool_ended(work: Path, regime: Regime) -> None:
    assert run(work, regime, "3").returncode == 3


def test_where_the_process_before_fails_its_reason_is_shown(work: Path) -> None:
    ended = run(work, Regime.COLD, "broken")
    assert (ended.returncode, ended.stderr) == (7, "no model\n")
