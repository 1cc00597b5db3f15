"""A matrix of thirteen cells on a virtual phone, of which one start is bad: its block alone runs again."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.farm.processes import FarmProcess, eventually, running_farm_with_agent

pytestmark = pytest.mark.long

_UP = (sys.executable, "-m", "farm.cli.shell.main", "up", "--virtual", "1")

BENCH = """#!/bin/sh
# Of the ninth setting, the first start prints one time only.
for word; do case $word in --n=*) n=${word#*=} ;; esac; done
sleep 0.1
echo "took 10.00 ms"
[ "$n" != 9 ] || [ -e "$BENCHFARM_SYS/started" ] || { : >"$BENCHFARM_SYS/started"; exit 0; }
for time in 10.01 10.02 10.03 10.04; do echo "took $time ms"; done
"""
DEFINITION = """
name: short_once
arguments: --n=${n} --runs=${runs}
flags: {n: {default: 0}, runs: {default: 5}}
backends: {cpu: {}}
samples: {pattern: "took ([0-9.]+) ms", unit: ms}
iterations_flag: runs
"""
MATRIX = """
name: thirteen
harness: short_once
axes: {backend: cpu, n: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}
baseline: {n: 0}
devices: all
rounds: 2
"""


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[FarmProcess]:
    farm = FarmProcess(tmp_path / "farm", command=_UP)
    with running_farm_with_agent(farm):
        with farm.client() as client:
            eventually(lambda: [each.health for each in client.devices()] == ["good"], "it is checked")
        yield farm


def test_one_bad_start_has_its_block_run_again_and_no_other(farm: FarmProcess, tmp_path: Path) -> None:
    (tmp_path / "short_once").write_text(BENCH)
    (tmp_path / "short_once.yaml").write_text(DEFINITION)
    (tmp_path / "thirteen.yaml").write_text(MATRIX)
    definition = str(tmp_path / "short_once.yaml")
    farm.cli("harness", "add", "short_once", str(tmp_path / "short_once"), "--definition", definition)
    plan = farm.text("matrix", "plan", str(tmp_path / "thirteen.yaml"))
    assert "13 cells on 1 device, 14 starts x 2 rounds = 28 jobs" in plan
    assert "14 starts a round: 12 other cells, the baseline 2 times" in plan
    farm.text("matrix", "submit", str(tmp_path / "thirteen.yaml"), "--watch")
    shown = farm.text("matrix", "show", "1")
    assert "(1 block repeated)" in shown
    jobs = farm.cli("matrix", "jobs", "1")
    assert {job["outcome"] for job in jobs} == {"succeeded"}
    sizes = Counter((job["round"], job["block"], job["repeat"]) for job in jobs)
    bad = [key for key in sizes if key[2]]
    assert len(bad) == 1
    assert sizes == {**{(round, block, 0): 7 for round in (1, 2) for block in (0, 1)}, bad[0]: 7}
    speedups = farm.cli("speedups", "--matrix", "1")
    assert {row["rounds"] for row in speedups} == {2}
    assert sorted(row["excluded"] for row in speedups) == [0] * 6 + [1] * 6
