"""What keeps a host from new work reaches the farm without anybody waiting for a disk."""

import asyncio

import pytest

from agents.devices.backpressure import Backpressure

pytestmark = pytest.mark.anyio


@pytest.mark.fault(29)
async def test_the_farm_hears_at_once_of_pressure_that_begins_or_ends() -> None:
    changed = asyncio.Event()
    pressure = Backpressure(changed)
    for reason, is_told in (("full", True), ("full", False), (None, True), (None, False)):
        changed.clear()
        pressure.record("disk", reason)
        assert pressure.reason == reason
        assert changed.is_set() is is_told


async def test_all_reasons_are_told_together() -> None:
    pressure = Backpressure(asyncio.Event())
    pressure.record("disk", "no room")
    pressure.record("adb", "adb's server dies")
    assert pressure.reason == "no room; adb's server dies"
    pressure.record("disk", None)
    assert pressure.reason == "adb's server dies"
