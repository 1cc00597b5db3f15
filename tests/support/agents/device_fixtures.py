"""Fixtures: an adb server and a virtual phone of the test's own."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agents.adb.server import AdbServer
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle, start_devices, stop_devices


@pytest.fixture
def phone(tmp_path: Path) -> Iterator[VirtualDeviceHandle]:
    """A phone of the test's own, to be broken."""
    phone = start_devices(1, tmp_path / "phones")[0]
    yield phone
    set_faults(phone.state, Faults())
    stop_devices(tmp_path / "phones")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[AdbServer]:
    """An adb server that sees TCP phones only."""
    async with AdbServer(tmp_path / "adb", usb=False) as server:
        yield server
