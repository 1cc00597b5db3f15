"""Energy from file to reports on a virtual phone: its battery, its rails, and what is refused."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.virtual.course import Course, battery_files, set_course
from agents.virtual.faults import Faults, set_faults
from tests.support.farm.processes import FarmProcess, eventually, running_farm_with_agent

pytestmark = pytest.mark.long

_UP = (sys.executable, "-m", "farm.cli.shell.main", "up", "--virtual", "1")
BENCH = """#!/bin/sh
# 300 times 20 ms on a processor that passes 3 J; its meter is below the phone's own state.
echo on the GPU
i=0
while [ $i -lt 300 ]; do
  i=$((i + 1))
  sleep 0.02
  echo "took 20.00 ms"
done
meter=$BENCHFARM_SYS/../dumpsys/power_stats_hal
if [ -f "$meter" ]; then
  sed 's/ 1000.00 mWs/ 4000.00 mWs/' "$meter" >"$meter.new" && mv "$meter.new" "$meter"
fi
"""
DEFINITION = """
name: drains
# It waits, as for a GPU: it takes no CPU time.
backends: {gpu: {accelerator: gpu, proof: on the GPU}}
samples: {pattern: "took ([0-9.]+) ms", unit: ms}
"""
MATRIX = """
name: energy
harness: drains
axes: {{backend: gpu}}
devices: all
energy: {energy}
rounds: 1
metrics: [{metric}]
"""
RAILS = """
============= PowerStats HAL 2.0 energy meter ==============
                           Channel   Cumulative Energy
              [S2S_VDD_G3D]:GPU        1000.00 mWs
          [VSYS_PWR_MODEM]:Modem       5000.00 mWs
========== End of PowerStats HAL 2.0 energy meter ==========
"""


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarmProcess]:
    folder = tmp_path_factory.mktemp("energy")
    farm = FarmProcess(folder / "farm", command=_UP)
    with running_farm_with_agent(farm):
        with farm.client() as client:
            eventually(lambda: [each.health for each in client.devices()] == ["good"], "it is checked")
        (folder / "drains").write_text(BENCH)
        (folder / "drains.yaml").write_text(DEFINITION)
        farm.cli(
            "harness", "add", "drains", str(folder / "drains"), "--definition", str(folder / "drains.yaml")
        )
        yield farm


def state_of(farm: FarmProcess) -> Path:
    (sysfs,) = farm.folder.glob("virtual/*/sys")
    return sysfs.parent


def run(farm: FarmProcess, folder: Path, energy: str) -> tuple[int, str]:
    """Run a matrix; return its last attempt, and its table of metrics."""
    metric = "external_energy" if energy == "none" else f"{energy}_energy"
    (folder / "matrix.yaml").write_text(MATRIX.format(energy=energy, metric=metric))
    farm.text("matrix", "submit", str(folder / "matrix.yaml"), "--watch")
    (matrix, *_) = farm.cli("matrix", "list", "--limit", "1")
    jobs = farm.cli("matrix", "jobs", str(matrix["matrix_id"]))
    return jobs[-1]["attempts"][-1], farm.text("matrix", "show", str(matrix["matrix_id"]))


def test_a_phone_that_charges_is_refused_and_one_on_its_battery_is_measured(
    farm: FarmProcess, tmp_path: Path
) -> None:
    state = state_of(farm)
    # The unit of some drivers: 500 mA at 4 V.
    set_course(state, Course(files=battery_files(current=500, status="Charging")))
    attempt, _ = run(farm, tmp_path, "battery")
    shown = farm.text("attempt", "show", str(attempt))
    assert "no energy: the battery was not discharging: `charging`" in shown
    set_faults(state, Faults(charging=False, battery_level_pct=80))
    set_course(state, Course(files=battery_files(current=-500)))
    eventually(lambda: "AC powered: false" in (state / "dumpsys/battery").read_text(), "it is unplugged")
    attempt, table = run(farm, tmp_path, "battery")
    view = farm.cli("attempt", "show", str(attempt))
    (energy,) = view["reading"]["energy"]
    # 2 W for the 6 s of the inferences.
    assert energy["joules"] == pytest.approx(12.0, rel=0.02)
    assert (energy["method"], energy["inferences"], energy["unreliable"]) == ("battery", 300, None)
    assert "battery_energy" in table
    shown = farm.text("attempt", "show", str(attempt))
    assert "40 mJ per inference, battery: 12 J for 300 in 6.0 s" in shown
    assert "what the device takes when idle is not subtracted" in shown


def test_rails_are_read_around_the_run(farm: FarmProcess, tmp_path: Path) -> None:
    (state_of(farm) / "dumpsys/power_stats_hal").write_text(RAILS)
    attempt, table = run(farm, tmp_path, "rails")
    view = farm.cli("attempt", "show", str(attempt))
    (energy,) = view["reading"]["energy"]
    assert (energy["joules"], energy["inferences"]) == (pytest.approx(3.0), 300)
    assert energy["rails"] == {"[S2S_VDD_G3D]:GPU": pytest.approx(3.0), "[VSYS_PWR_MODEM]:Modem": 0.0}
    assert "rails_energy" in table
    assert "2 rails of the device: [S2S_VDD_G3D]:GPU, [VSYS_PWR_MODEM]:Modem" in " ".join(
        farm.text("attempt", "show", str(attempt)).split()
    )


def test_energy_of_an_instrument_is_imported(farm: FarmProcess, tmp_path: Path) -> None:
    attempt, _ = run(farm, tmp_path, "none")
    shown = farm.text(
        "attempt", "energy", str(attempt), "--joules", "9", "--boundary", "whole phone",
        "--instrument", "power monitor",
    )  # fmt: skip
    assert "30 mJ per inference, external: 9 J for 300" in shown
    assert "measured by power monitor, imported by" in shown
    events = farm.text("events", "--kind", "attempt_energy_imported")
    assert f"attempt {attempt} energy imported (9 J for 300 inferences, of whole phone" in events
