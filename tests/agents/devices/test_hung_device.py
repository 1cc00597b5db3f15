"""A phone that answers nothing any more costs its host no more than a question now and then."""

import asyncio

import pytest

from agents.virtual.faults import Faults, set_faults
from farm.core.devices.device import Presence
from tests.support.agents.runner_fixture import Bench

pytestmark = pytest.mark.anyio


@pytest.mark.fault(7)
async def test_a_phone_that_hangs_is_asked_once_a_second_at_most(bench: Bench) -> None:
    await bench.phone()
    set_faults(bench.handle.state, Faults(hang=True))
    bench.adb.asked = 0
    began_s = asyncio.get_running_loop().time()
    for _ in range(8):
        bench.monitor.reprobe(bench.device_id)
        bench.monitor.apply_listing({bench.handle.address: "offline"})
        bench.monitor.apply_listing({bench.handle.address: "device"})
        # Real time: the rate is what is tested, and the phone's side of it is a process.
        await asyncio.sleep(0.4)
    lasted_s = asyncio.get_running_loop().time() - began_s
    assert bench.monitor.observations()[bench.device_id].presence is not Presence.ONLINE
    assert bench.adb.asked <= lasted_s + 1
