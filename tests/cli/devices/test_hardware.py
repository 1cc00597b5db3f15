"""How a phone's hardware is laid out."""

import io

import pytest
from rich.console import Console

from farm.cli.devices.report import cluster_text, driver_text, hardware_table
from farm.core.devices.device import Cluster, DeviceFacts, Gpu, NnapiDriver


def shown(facts: DeviceFacts) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(hardware_table(facts))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_each_fact_stands_beside_the_place_that_told_it() -> None:
    facts = DeviceFacts(
        serialno="p",
        device_model="A-9",
        soc="Acme 9 (Fast 9)",
        clusters=(Cluster(cores=(0, 1), core="Cortex-A55", min_hz=300_000_000, max_hz=1_800_000_000),),
        gpu=Gpu(vendor="ARM", renderer="Mali-G9", driver="r9p0", vulkan="1.3.0"),
        nnapi=(NnapiDriver(name="acme-npu", version="4", running=True),),
        root=False,
        work_root="/data/local/tmp",
        sources={"soc": "ro.chipname", "clusters": "sysfs cpufreq", "gpu": "dumpsys SurfaceFlinger"},
    )
    rows = {line.split("  ")[0].strip(): line for line in shown(facts).splitlines()}
    assert "Acme 9 (Fast 9)" in rows["chip"]
    assert "ro.chipname" in rows["chip"]
    assert "2 x Cortex-A55 (0-1), 0.30 to 1.80 GHz" in shown(facts)
    assert "dumpsys SurfaceFlinger" in rows["GPU driver"]
    assert "acme-npu, version 4, runs" in shown(facts)
    assert "memory" not in rows


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        (Cluster(cores=(7,), core="Cortex-X4", max_hz=3_300_000_000), "1 x Cortex-X4 (7), 3.30 GHz"),
        (Cluster(cores=(0, 2)), "2 x core (0, 2)"),
    ],
)
def test_a_cluster_is_told_as_far_as_it_is_known(cluster: Cluster, words: str) -> None:
    assert cluster_text(cluster) == words


def test_a_driver_says_whether_it_runs_or_that_no_one_knows() -> None:
    assert driver_text(NnapiDriver(name="npu", running=False)) == "npu, does not run"
    assert driver_text(NnapiDriver(name="npu")) == "npu, state unknown"
