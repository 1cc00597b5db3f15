"""A sustained matrix, from file to reports, on a virtual phone whose clock is lowered while it works."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.farm.processes import FarmProcess, eventually, running_farm_with_agent

pytestmark = pytest.mark.long

_UP = (sys.executable, "-m", "farm.cli.shell.main", "up", "--virtual", "1")

BENCH = """#!/bin/sh
# 10 ms a time, and 20 ms once the phone has lowered its clock: from the fifty-first on.
for word; do case $word in --runs=*) runs=${word#*=} ;; esac; done
echo on the GPU
i=0
while [ $i -lt "$runs" ]; do
  i=$((i + 1))
  if [ $i -le 50 ]; then
    sleep 0.01
    echo "took 10.00 ms"
  else
    [ $i != 51 ] || echo 1400000 >"$BENCHFARM_SYS/devices/system/cpu/cpufreq/policy0/scaling_max_freq"
    sleep 0.02
    echo "took 20.00 ms"
  fi
done
echo 2367000 >"$BENCHFARM_SYS/devices/system/cpu/cpufreq/policy0/scaling_max_freq"
"""
DEFINITION = """
name: slowing
arguments: --runs=${runs}
flags: {runs: {default: 20, minimum: 1}}
# It waits, as for a GPU: it takes no CPU time.
backends: {gpu: {accelerator: gpu, proof: on the GPU}}
samples: {pattern: "took ([0-9.]+) ms", unit: ms}
iterations_flag: runs
"""
MATRIX = """
name: holds
harness: slowing
axes: {backend: gpu}
devices: all
sustained: 3s
rounds: 1
metrics: [sustained_decay, first_ceiling]
"""


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarmProcess]:
    """A farm with one virtual phone, of one cluster of 2.367 GHz."""
    farm = FarmProcess(tmp_path_factory.mktemp("sustained") / "farm", command=_UP)
    with running_farm_with_agent(farm):
        with farm.client() as client:
            eventually(lambda: [each.health for each in client.devices()] == ["good"], "it is checked")
        (sysfs,) = farm.folder.glob("virtual/*/sys")
        policy = sysfs / "devices/system/cpu/cpufreq/policy0"
        policy.mkdir(parents=True)
        for name, value in {
            "related_cpus": "0 1",
            "scaling_governor": "schedutil",
            "cpuinfo_max_freq": "2367000",
            "cpuinfo_min_freq": "300000",
            "scaling_max_freq": "2367000",
            "scaling_min_freq": "300000",
            "scaling_cur_freq": "2367000",
        }.items():
            (policy / name).write_text(f"{value}\n")
        yield farm


def test_a_phone_that_slows_down_shows_peak_steady_time_decay_and_when_its_clock_fell(
    farm: FarmProcess, tmp_path: Path
) -> None:
    (tmp_path / "slowing").write_text(BENCH)
    (tmp_path / "slowing.yaml").write_text(DEFINITION)
    (tmp_path / "holds.yaml").write_text(MATRIX)
    definition = str(tmp_path / "slowing.yaml")
    farm.cli("harness", "add", "slowing", str(tmp_path / "slowing"), "--definition", definition)
    farm.text("matrix", "submit", str(tmp_path / "holds.yaml"), "--watch")
    shown = farm.text("matrix", "show", "1")
    assert "sustained for 3 s" in shown
    assert "(1 block repeated)" in shown
    assert "20.0 ms" in shown
    jobs = farm.cli("matrix", "jobs", "1")
    short, longer = (job["attempts"][-1] for job in sorted(jobs, key=lambda job: job["repeat"]))
    assert farm.cli("attempt", "show", str(short))["quality"] == "incomplete"
    view = farm.cli("attempt", "show", str(longer))
    assert (view["quality"], view["quality_reasons"]) == ("valid", [])
    # 3 s of 10 ms; it took longer, as it was slowed down.
    assert view["plan"]["settings"]["runs"] == 300
    profile = view["reading"]["profile"]
    assert (profile["peak_ns"], profile["steady_ns"]) == (10e6, 20e6)
    metrics = {metric["name"]: metric["value"] for metric in view["reading"]["metrics"]}
    assert metrics["sustained_decay"] == pytest.approx(100.0)
    assert metrics["sustained_for"] == pytest.approx(5.5)
    report = farm.text("attempt", "show", str(longer))
    assert "100.0%: steady 20.0 ms, 10.0 ms in the best window" in report
    assert "▁▁██████████████████ 10.0 ms to 20.0 ms" in report
