"""Fixtures: an adb server and a virtual phone of the test's own."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agents.adb.server import AdbServer
from agents.virtual.pool import PhoneHandle, start_phones, stop_phones
from agents.virtual.state.faults import Faults, set_faults


@pytest.fixture
def phone(tmp_path: Path) -> Iterator[PhoneHandle]:
    """A phone of the test's own, to be broken."""
    phone = start_phones(1, tmp_path / "phones")[0]
    yield phone
    set_faults(phone.state, Faults())
    stop_phones(tmp_path / "phones")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[AdbServer]:
    """An adb server that sees TCP phones only."""
    async with AdbServer(tmp_path / "adb", usb=False) as server:
        yield server
