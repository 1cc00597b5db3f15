"""What a virtual phone tells of what it is built of, through adb."""

import asyncio

import pytest

from agents.adb.client import AdbClient, AdbDevice
from agents.adb.server import AdbServer
from agents.device.facts import read_facts
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.devices.device import Cluster, Gpu, NnapiDriver
from farm.core.devices.software_version import software_changes
from tests.support.agents.device_clocks import set_clusters

pytestmark = pytest.mark.anyio

CLUSTERS = (
    Cluster(cores=(0, 1), min_hz=300_000_000, max_hz=1_800_000_000),
    Cluster(cores=(2,), min_hz=500_000_000, max_hz=3_000_000_000),
)
NN = "android.hardware.neuralnetworks.IDevice"


async def test_clusters_come_from_sysfs(device: AdbDevice, phone: VirtualDeviceHandle) -> None:
    set_clusters(phone.state, CLUSTERS)
    facts = await read_facts(device)
    assert [(each.cores, each.min_hz, each.max_hz) for each in facts.clusters] == [
        (each.cores, each.min_hz, each.max_hz) for each in CLUSTERS
    ]
    assert facts.cores == 3
    assert facts.sources["cores"] == "/sys/devices/system/cpu/possible"
    assert facts.sources["clusters"].startswith("sysfs cpufreq")


async def test_gpu_and_drivers_come_from_services_that_tell_them(
    device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    gles = "GLES: ARM, Mali-G99, OpenGL ES 3.2 v1.r99p1-01eac0.abc\n"
    (phone.state / "dumpsys" / "SurfaceFlinger").write_text(f"Build configuration:\n{gles}")
    (phone.state / "services").write_text(f"Found 2 services:\n0\t{NN}/acme-npu: [{NN}]\n1\tphone: [x]\n")
    facts = await read_facts(device)
    assert facts.gpu == Gpu(
        vendor="ARM",
        renderer="Mali-G99",
        driver="r99p1-01eac0",
        driver_text="OpenGL ES 3.2 v1.r99p1-01eac0.abc",
    )
    assert facts.nnapi == (NnapiDriver(name="acme-npu", running=True),)
    assert facts.sources["nnapi"] == "service list"


async def test_a_phone_that_tells_nothing_of_them_has_none(device: AdbDevice) -> None:
    facts = await read_facts(device)
    assert (facts.gpu, facts.nnapi, facts.root) == (None, (), False)
    assert facts.storage_bytes is not None
    assert facts.soc_vendor is not None


async def test_a_rooted_phone_says_so(device: AdbDevice, phone: VirtualDeviceHandle) -> None:
    set_faults(phone.state, Faults(rooted=True))
    async with asyncio.timeout(120):
        while not (await read_facts(device)).root:
            pass


@pytest.mark.long
async def test_a_su_that_asks_and_waits_holds_no_one_up(
    device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    (phone.state / "bin" / "su").write_text("#!/bin/sh\nexec sleep 600\n")
    assert (await read_facts(device)).root is False


async def test_the_listing_says_where_phones_are(
    server: AdbServer, device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    await device.shell("true", deadline_s=60)
    (listed,) = await AdbClient(server.address).list_transports()
    assert (listed.serial, listed.state, listed.usb_path) == (phone.address, "device", None)


async def test_an_update_of_a_phone_is_another_build(device: AdbDevice, phone: VirtualDeviceHandle) -> None:
    before = await read_facts(device)
    set_faults(phone.state, Faults(build="two"))
    async with asyncio.timeout(120):
        while (after := await read_facts(device)) == before:
            pass
    assert [change.part for change in software_changes(before, after)] == ["build"]
    assert str(after.build_fingerprint) == f"{before.build_fingerprint}/two"
