"""The part of sysfs that a virtual phone has for itself: `sys` in its folder.

Its cores are those of this machine. Its clocks are simulated: written values are kept and read back, and
change nothing of the real CPU.
"""

from collections.abc import Sequence
from pathlib import Path

from farm.core.base.cpu_list import core_text
from farm.core.devices.hardware import Cluster

#: Tells processes on the phone where it is; a real device has it at /sys.
SYS_VARIABLE = "BENCHFARM_SYS"
SYS_FOLDER = "sys"
_CPU = "devices/system/cpu"
_LISTS = ("online", "possible", "present")


def create_sysfs(state: Path) -> None:
    """Write the machine's cores; existing files are kept."""
    cpu = state / SYS_FOLDER / _CPU
    for name in _LISTS:
        if not (cpu / name).exists():
            _write(cpu / name, (Path("/sys") / _CPU / name).read_text().strip())


def set_clusters(state: Path, clusters: Sequence[Cluster], governor: str = "schedutil") -> None:
    """Show these cores, each online and with its cluster's clocks, at their own limits.

    Frequencies must be known.
    """
    cpu = state / SYS_FOLDER / _CPU
    cores = [core for cluster in clusters for core in cluster.cores]
    for name in _LISTS:
        _write(cpu / name, core_text(cores))
    # The first core cannot be switched off, as on most devices.
    (cpu / f"cpu{cores[0]}").mkdir(parents=True, exist_ok=True)
    for core in cores[1:]:
        _write(cpu / f"cpu{core}" / "online", "1")
    for cluster in clusters:
        _write_policy(cpu / "cpufreq" / f"policy{cluster.cores[0]}", cluster, governor)


def set_clock_limit(state: Path, policy: str, max_hz: int) -> None:
    """Limit a policy's clock from now on, as heat does on a device."""
    _write(state / SYS_FOLDER / _CPU / "cpufreq" / policy / "scaling_max_freq", str(max_hz // 1000))


def _write_policy(folder: Path, cluster: Cluster, governor: str) -> None:
    lowest, highest = ((hertz or 0) // 1000 for hertz in (cluster.min_hz, cluster.max_hz))
    values = {
        "related_cpus": " ".join(map(str, cluster.cores)),
        "scaling_governor": governor,
        "cpuinfo_min_freq": lowest,
        "cpuinfo_max_freq": highest,
        "scaling_min_freq": lowest,
        "scaling_max_freq": highest,
        "scaling_cur_freq": lowest,
    }
    for name, value in values.items():
        _write(folder / name, str(value))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
