"""The machine that a benchmark ran on, without which its numbers mean nothing."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def machine_facts() -> str:
    """Return the machine, the versions and the load, as lines to paste beside the numbers."""
    facts = {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "cpu": f"{_cpu_model()}, {os.cpu_count()} cores",
        "load": f"{os.getloadavg()[0]:.2f} (1 min) before the benchmark; more than 0.2 spoils its figures",
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "versions": f"Python {platform.python_version()}, benchfarm {version('benchfarm')}, "
        f"adbutils {version('adbutils')}, SQLAlchemy {version('sqlalchemy')}",
    }
    return "\n".join(f"{name + ':':10}{value}" for name, value in facts.items())


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process so far, including its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()
