"""The most float32 operations that cores of a CPU can do in a second, where a published number says it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from farm.core.devices.device import Cluster

#: float32 operations in a cycle of a core; a fused multiply-add of four numbers is eight. By what cpufp
#: measured on one core, whose clock the chip's maker states (github.com/pigirons/cpufp,
#: benchmark_result/arm64), and by Arm's guide of the A77.
FLOP_PER_CYCLE: Mapping[str, int] = {
    # 11.26 GFLOP/s at 1.4 GHz: RK3399.
    "Cortex-A53": 8,
    # 14.60 GFLOP/s at 1.8 GHz: RK3588.
    "Cortex-A55": 8,
    # 11.96 GFLOP/s at 1.5 GHz: BCM2711.
    "Cortex-A72": 8,
    # 38.37 GFLOP/s at 2.4 GHz: BCM2712.
    "Cortex-A76": 16,
    # Two multiply-accumulates of 128 bits in a cycle: Cortex-A77 Software Optimization Guide.
    "Cortex-A77": 16,
    # 41.56 GFLOP/s at 2.6 GHz: CD8180.
    "Cortex-A720": 16,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakShare:
    """The share of the float32 peak of some cores that a run reached."""

    share: float
    #: Of the fastest cores that the threads could run on, at their highest clock.
    peak_flop_per_s: float
    threads: int
    #: Kinds of these cores, fastest first.
    cores: tuple[str, ...]
    #: Whether the run was bound to cores; others may have run on slower ones.
    is_bound: bool


def peak_share(
    *, macs: int, value_ns: float, threads: int, clusters: Sequence[Cluster], bound_to: Collection[int] = ()
) -> PeakShare | None:
    """Return the share of the float32 peak that a run reached; None where the peak is not known.

    Args:
        macs: multiply-accumulates of one inference, each of which is two operations.
        value_ns: the time of one inference.
        threads: of the CPU.
        clusters: of the device.
        bound_to: the cores that the run was bound to; empty for any.
    """
    cores = list(_cores(clusters, bound_to))
    if not 0 < threads <= len(cores) or value_ns <= 0:
        return None
    rates = [
        (FLOP_PER_CYCLE[core] * max_hz, core)
        for core, max_hz in cores
        if core in FLOP_PER_CYCLE and max_hz is not None
    ]
    if len(rates) < len(cores):
        return None
    fastest = sorted(rates, reverse=True)[:threads]
    peak = float(sum(rate for rate, _ in fastest))
    return PeakShare(
        share=2 * macs / (value_ns / 1e9) / peak,
        peak_flop_per_s=peak,
        threads=threads,
        cores=tuple(dict.fromkeys(core for _, core in fastest)),
        is_bound=bool(bound_to),
    )


def _cores(clusters: Sequence[Cluster], bound_to: Collection[int]) -> Iterator[tuple[str, int | None]]:
    """Yield kind and highest clock of each core that a run may use."""
    for cluster in clusters:
        for core in cluster.cores:
            if not bound_to or core in bound_to:
                yield cluster.core or "", cluster.max_hz
