"""CPU affinity of a run, set before its program begins so that all of its threads inherit it."""

from collections.abc import Iterable, Sequence

from farm.core.base.cpu_list import core_list, core_mask, core_text
from farm.core.devices.condition import Condition, cpu_clusters
from farm.core.devices.controls import CORES, Controls, ControlState, requested_cores
from farm.core.devices.device import Cluster
from farm.core.errors import ControlImpossible

#: In the run's folder: the run's cores as the kernel reports them.
CORES_FILE = "cores"
#: The exit code of a run that could not be bound, and did not begin.
AFFINITY_FAILED = 125


def select_cores(
    serial: str, controls: Controls, clusters: Sequence[Cluster], condition: Condition
) -> tuple[int, ...]:
    """Return the cores to bind a run to; empty for any.

    Raises:
        ControlImpossible: the device has no such cores, or does not report them.
    """
    clusters = clusters or cpu_clusters(condition)
    if (cores := requested_cores(controls, clusters)) is not None:
        return cores
    names = "; ".join(core_text(cluster.cores) for cluster in clusters) or "unknown"
    raise ControlImpossible(f"{serial} has no {controls.cores} cores: its clusters are {names}")


def cores_of_controls(states: Iterable[ControlState]) -> tuple[int, ...]:
    """Return the cores that a run's controls name."""
    requested = next((state.requested for state in states if state.name == CORES), "")
    return core_list(requested) or ()


def affinity_script(cores: Sequence[int]) -> list[str]:
    """Return the shell lines that set the affinity; they exit with AFFINITY_FAILED where that fails.

    Toybox, busybox and Debian accept the same syntax. The result is read back from the kernel.
    """
    if not cores:
        return []
    wanted = core_text(cores)
    record = f'[ "$key" != Cpus_allowed_list: ] || echo "$held" >{CORES_FILE}'
    return [
        f"taskset -p {core_mask(cores)} $$ >/dev/null 2>&1",
        f"while read -r key held; do {record}; done </proc/$$/status",
        f"read -r held <{CORES_FILE} && [ \"$held\" = '{wanted}' ] || exit {AFFINITY_FAILED}",
    ]


def requested_affinity(cores: Sequence[int]) -> ControlState:
    """Return the control state of the requested cores."""
    return ControlState(name=CORES, requested=core_text(cores))


def actual_affinity(state: ControlState, recorded: str, online: Sequence[int]) -> ControlState:
    """Return the control state after the run, by the cores that its shell recorded before the program began.

    A core that was switched off then did not run any of it; `online` is empty where that is not known.
    """
    cores = core_list(recorded)
    after = None if cores is None or not online else core_text(set(cores) & set(online))
    return ControlState(
        name=state.name,
        requested=state.requested,
        actual_before=None if cores is None else core_text(cores),
        actual_after=after or None,
    )
