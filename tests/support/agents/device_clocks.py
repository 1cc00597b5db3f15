"""Cores and clocks that a virtual phone shows in its part of sysfs."""

from collections.abc import Sequence
from pathlib import Path

from agents.virtual.sandbox import SYS_FOLDER
from farm.core.base.cpu_list import core_text
from farm.core.devices.device import Cluster

_CPU = "devices/system/cpu"


def set_clusters(state: Path, clusters: Sequence[Cluster]) -> None:
    """Show these cores, each online and with its cluster's clocks, at their own limits.

    Frequencies must be known.
    """
    cpu = state / SYS_FOLDER / _CPU
    cores = [core for cluster in clusters for core in cluster.cores]
    for name in ("online", "possible", "present"):
        _write(cpu / name, core_text(cores))
    # The first core cannot be switched off, as on most devices.
    (cpu / f"cpu{cores[0]}").mkdir(parents=True, exist_ok=True)
    for core in cores[1:]:
        _write(cpu / f"cpu{core}" / "online", "1")
    for cluster in clusters:
        lowest, highest = ((hertz or 0) // 1000 for hertz in (cluster.min_hz, cluster.max_hz))
        values = {
            "related_cpus": " ".join(map(str, cluster.cores)),
            "scaling_governor": "schedutil",
            "cpuinfo_min_freq": lowest,
            "cpuinfo_max_freq": highest,
            "scaling_min_freq": lowest,
            "scaling_max_freq": highest,
            "scaling_cur_freq": lowest,
        }
        for name, value in values.items():
            _write(cpu / "cpufreq" / f"policy{cluster.cores[0]}" / name, str(value))


def set_clock_limit(state: Path, policy: str, max_hz: int) -> None:
    """Limit a policy's clock from now on, as heat does on a device."""
    _write(state / SYS_FOLDER / _CPU / "cpufreq" / policy / "scaling_max_freq", str(max_hz // 1000))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
