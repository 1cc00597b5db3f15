"""The share of a peak: of cores whose figure is published, and of no others."""

from collections.abc import Sequence

import pytest

from farm.core.devices.cpu_peak import FLOP_PER_CYCLE, peak_share
from farm.core.devices.device import Cluster
from farm.phone.hardware.cpu import core_by_number

LITTLE = Cluster(cores=(0, 1, 2, 3), core="Cortex-A55", max_hz=1_800_000_000)
BIG = Cluster(cores=(4, 5), core="Cortex-A76", max_hz=2_400_000_000)


@pytest.mark.parametrize(
    ("threads", "bound_to", "peak_gflops", "cores"),
    [
        (1, (), 38.4, ("Cortex-A76",)),
        (2, (), 76.8, ("Cortex-A76",)),
        # The third one is on a little core at best.
        (3, (), 91.2, ("Cortex-A76", "Cortex-A55")),
        (2, (0, 1, 2), 28.8, ("Cortex-A55",)),
    ],
)
def test_the_peak_is_that_of_the_fastest_cores_that_the_threads_can_have(
    threads: int, bound_to: Sequence[int], peak_gflops: float, cores: Sequence[str]
) -> None:
    found = peak_share(
        macs=300_000_000, value_ns=20e6, threads=threads, clusters=(LITTLE, BIG), bound_to=bound_to
    )
    assert found is not None
    assert found.peak_flop_per_s == pytest.approx(peak_gflops * 1e9)
    # 600 million operations in 20 ms.
    assert found.share == pytest.approx(30 / peak_gflops)
    assert (found.threads, found.cores, found.is_bound) == (threads, cores, bool(bound_to))


@pytest.mark.parametrize(
    ("threads", "clusters", "bound_to"),
    [
        (1, (LITTLE, Cluster(cores=(4,), core="Cortex-X9", max_hz=3_000_000_000)), ()),
        (1, (LITTLE, Cluster(cores=(4,), core="Cortex-A76")), ()),
        (1, (LITTLE, Cluster(cores=(4,), max_hz=3_000_000_000)), ()),
        (7, (LITTLE, BIG), ()),
        (3, (LITTLE, BIG), (4, 5)),
        (-1, (LITTLE, BIG), ()),
        (1, (), ()),
    ],
)
def test_without_a_known_peak_of_every_core_there_is_no_share(
    threads: int, clusters: Sequence[Cluster], bound_to: Sequence[int]
) -> None:
    assert peak_share(macs=1, value_ns=1, threads=threads, clusters=clusters, bound_to=bound_to) is None


def test_an_unknown_core_does_not_matter_to_a_run_that_is_bound_to_others() -> None:
    clusters = (LITTLE, Cluster(cores=(4,), core="Cortex-X9", max_hz=3_000_000_000))
    assert peak_share(macs=1, value_ns=1, threads=1, clusters=clusters, bound_to=(0,)) is not None


def test_cores_are_called_as_devices_report_them() -> None:
    parts = ("d03", "d05", "d08", "d0b", "d0d", "d81")
    cpuinfo = "".join(
        f"processor\t: {number}\nCPU implementer\t: 0x41\nCPU part\t: 0x{part}\n\n"
        for number, part in enumerate(parts)
    )
    assert set(core_by_number(cpuinfo).values()) == FLOP_PER_CYCLE.keys()
