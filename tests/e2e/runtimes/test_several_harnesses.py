"""Two harnesses in the blocks of one matrix on a virtual phone, from the plan to the verdict."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.farm.processes import FarmProcess, eventually, running_farm_with_agent

pytestmark = pytest.mark.long

_UP = (sys.executable, "-m", "farm.cli.shell.main", "up", "--virtual", "1")
BENCH = """#!/bin/sh
sleep 0.3
for n in 1 2 3 4 5 6 7 8; do echo "took {ms}.0$n ms"; done
"""
DEFINITION = """
name: {name}
arguments: --{flag}=${{{flag}}}
flags: {{{flag}: {{default: {default}}}}}
backends: {{cpu: {{}}}}
samples: {{pattern: "took ([0-9.]+) ms", unit: ms}}
clock_covers: {covers}
"""
MATRIX = """
name: two tools
harness: [slow_tool, quick_tool]
axes: {backend: cpu}
settings: {passes: 8, loops: 9}
baseline: {harness: slow_tool}
aa: true
devices: all
rounds: 5
"""


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarmProcess]:
    farm = FarmProcess(tmp_path_factory.mktemp("harnesses") / "farm", command=_UP)
    with running_farm_with_agent(farm):
        with farm.client() as client:
            eventually(lambda: [each.health for each in client.devices()] == ["good"], "it is checked")
        yield farm


def test_two_tools_are_compared_in_their_blocks_with_the_flags_of_each(
    farm: FarmProcess, tmp_path: Path
) -> None:
    tools = (
        ("slow_tool", 12, "passes", 3, "one pass"),
        ("quick_tool", 3, "loops", 5, "one loop, without copies"),
    )
    for name, ms, flag, default, covers in tools:
        (tmp_path / name).write_text(BENCH.replace("{ms}", str(ms)))
        definition = tmp_path / f"{name}.yaml"
        definition.write_text(DEFINITION.format(name=name, flag=flag, default=default, covers=covers))
        farm.cli("harness", "add", name, str(tmp_path / name), "--definition", str(definition))
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    assert "with slow_tool, quick_tool" in farm.text("matrix", "plan", str(tmp_path / "matrix.yaml"))
    farm.text("matrix", "submit", str(tmp_path / "matrix.yaml"), "--watch")
    jobs = farm.cli("matrix", "jobs", "1")
    assert {job["outcome"] for job in jobs} == {"succeeded"}
    commands = {job["label"]: farm.cli("attempt", "show", str(job["attempts"][-1])) for job in jobs}
    assert commands["quick_tool"]["plan"]["argv"][-1] == "--loops=9"
    assert commands["slow_tool"]["plan"]["argv"][-1] == "--passes=8"
    [row] = [view for view in farm.cli("speedups", "--matrix", "1") if not view["aa"]]
    assert (row["harness"], row["baseline_setup"]["harness"]) == ("quick_tool", "slow_tool")
    assert row["speedup"] == pytest.approx(4, rel=0.02)
    assert row["clocks_differ"]
    table = farm.text("speedups", "--matrix", "1")
    assert "faster, other clock" in table
    assert "clock of slow_tool: one pass" in table
    assert "clock of quick_tool: one loop, without copies" in table
    assert "slow_tool, quick_tool, matrix 1" in table
    [group] = [view for view in farm.cli("speedups", "--by", "all") if view["candidate"] == row["candidate"]]
    assert (group["baseline_harness"], group["clocks_differ"]) == ("slow_tool", True)
    assert "its clock covers other work" in farm.text("speedups", "--by", "all")
    again = farm.cli("rerun", str(jobs[-1]["attempts"][-1]), "--no-watch")
    assert again["jobs"] > 0
