"""The hardware of a device as a table, with the source of each fact."""

from collections.abc import Iterator

from rich.table import Table

from farm.cli.shell.formatting import EMPTY_CELL, plural
from farm.cli.shell.tables import add_row, new_table
from farm.core.base.units import size_text
from farm.core.devices.device import DeviceFacts
from farm.core.devices.hardware import Cluster, Gpu, NnapiDriver

_GHZ = 1_000_000_000


def hardware_table(facts: DeviceFacts) -> Table:
    """Return one row for each known fact of a device."""
    table = new_table(names=("fact",), prose=("value", "source"))
    for fact, value, source in _rows(facts):
        add_row(table, fact, value, facts.sources.get(source, EMPTY_CELL))
    return table


def _rows(facts: DeviceFacts) -> Iterator[tuple[str, str, str]]:
    """Return the name, the value and the key of the source of each fact."""
    plain = (
        ("maker", facts.manufacturer, "manufacturer"),
        ("model", facts.device_model, "device_model"),
        ("sold as", facts.market_name, "market_name"),
        ("chip", facts.soc, "soc"),
        ("cores", facts.cores and plural(facts.cores, "core"), "cores"),
    )
    yield from ((name, str(value), source) for name, value, source in plain if value)
    yield from (("", cluster_text(cluster), "clusters") for cluster in facts.clusters)
    if facts.gpu is not None:
        yield from _gpu_rows(facts.gpu)
    yield from (("NNAPI driver", driver_text(driver), "nnapi") for driver in facts.nnapi)
    yield from _system_rows(facts)


def _gpu_rows(gpu: Gpu) -> Iterator[tuple[str, str, str]]:
    if name := " ".join(part for part in (gpu.vendor, gpu.renderer) if part):
        yield "GPU", name, "gpu"
    if gpu.driver_text or gpu.driver:
        yield "GPU driver", gpu.driver_text or gpu.driver or "", "gpu"
    if gpu.vulkan or gpu.vulkan_driver:
        driver = f", driver {gpu.vulkan_driver}" if gpu.vulkan_driver else ""
        yield "Vulkan", f"{gpu.vulkan or 'version unknown'}{driver}", "gpu"


def _system_rows(facts: DeviceFacts) -> Iterator[tuple[str, str, str]]:
    api = f", API level {facts.api_level}" if facts.api_level else ""
    root = {True: "available to the shell", False: "no"}
    rows = (
        ("memory", facts.memory_bytes and size_text(facts.memory_bytes), "memory_bytes"),
        ("storage", facts.storage_bytes and size_text(facts.storage_bytes), "storage_bytes"),
        ("Android", facts.android and f"{facts.android}{api}", "android"),
        ("ABIs", ", ".join(facts.abis), "abis"),
        ("build", facts.build_fingerprint, "build_fingerprint"),
        ("security patch", facts.security_patch, "security_patch"),
        ("kernel", facts.kernel, "kernel"),
        ("root", None if facts.root is None else root[facts.root], "root"),
        ("work root", facts.work_root, "work_root"),
    )
    yield from ((name, str(value), source) for name, value, source in rows if value)


def cluster_text(cluster: Cluster) -> str:
    """Return `4 x Cortex-A510 (0-3), 0.30 to 1.70 GHz`."""
    kind = f"{len(cluster.cores)} x {cluster.core or 'core'} ({_numbers(cluster.cores)})"
    if cluster.max_hz is None:
        return kind
    low = "" if cluster.min_hz is None else f"{cluster.min_hz / _GHZ:.2f} to "
    return f"{kind}, {low}{cluster.max_hz / _GHZ:.2f} GHz"


def driver_text(driver: NnapiDriver) -> str:
    """Return `google-edgetpu, version 4, runs`."""
    state = {True: "runs", False: "does not run", None: "state unknown"}[driver.running]
    version = "" if driver.version is None else f", version {driver.version}"
    return f"{driver.name}{version}, {state}"


def _numbers(cores: tuple[int, ...]) -> str:
    is_run = len(cores) > 1 and cores == tuple(range(cores[0], cores[-1] + 1))
    return f"{cores[0]}-{cores[-1]}" if is_run else ", ".join(map(str, cores))
