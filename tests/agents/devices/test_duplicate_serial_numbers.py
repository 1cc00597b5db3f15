"""Phones of one serial number, known by where they are: at a server of the test's, and at a real one."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agents.adb.server import AdbServer, ExternalServer
from agents.devices.inventory import TransportObservation
from agents.devices.monitor import DeviceMonitor
from agents.virtual.pool import VirtualDeviceHandle, start_devices, stop_devices
from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from tests.support.agents.adb_supervisor_fixture import watching
from tests.support.agents.fake_farm import comes_true
from tests.support.faults.stream_server import read_adb_request, stream_server

pytestmark = pytest.mark.anyio

#: What adb prints of two phones whose maker gave both one serial number.
LONG = (
    "0123456789ABCDEF       device usb:1-4.2 product:p model:m device:d transport_id:1\n"
    "0123456789ABCDEF       unauthorized usb:1-4.3 transport_id:2\n"
)
SHORT = "0123456789ABCDEF\tdevice\n0123456789ABCDEF\tunauthorized\n"


@asynccontextmanager
async def usb_server() -> AsyncIterator[int]:
    """A server with phones on USB, which cannot be had here: it lists them, and refuses all else."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_adb_request(reader)
        text = {b"host:track-devices": SHORT, b"host:devices-l": LONG, b"host:version": "0029"}.get(request)
        writer.write(b"OKAY%04x" % len(text) + text.encode() if text else b"FAIL0002no")
        await writer.drain()
        if request == b"host:track-devices":
            await reader.read()

    async with stream_server(answer) as port:
        yield port


async def until(
    monitor: DeviceMonitor, is_so: Callable[[dict[DeviceId, TransportObservation]], bool]
) -> dict[str, TransportObservation]:
    await comes_true(lambda: is_so(monitor.observations()), "the phones are so")
    return {str(name): observation for name, observation in monitor.observations().items()}


@pytest.mark.invariant("I21")
@pytest.mark.fault(21)
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({}, {"0123456789ABCDEF": "0123456789ABCDEF"}),
        ({"usb:1-4.2": "left", "usb:1-4.3": "right"}, {"left": "usb:1-4.2", "right": "usb:1-4.3"}),
    ],
    ids=["without names", "with names"],
)
async def test_phones_on_usb_are_known_by_their_ports_where_these_have_names(
    names: dict[str, str], expected: dict[str, str]
) -> None:
    async with usb_server() as port, watching(ExternalServer("127.0.0.1", port), names=names) as agent:
        found = await until(agent.monitor, lambda found: len(found) == len(expected))
        assert {name: observation.serial for name, observation in found.items()} == expected
        assert all(bool(observation.claimants) is not bool(names) for observation in found.values())


@pytest.mark.invariant("I21")
@pytest.mark.fault(21)
async def test_two_phones_of_one_serial_number_are_used_where_both_places_have_names(
    server: AdbServer, tmp_path: Path
) -> None:
    one, two = (duplicate(tmp_path / name) for name in ("a", "b"))
    try:
        names = {one.address: "left", two.address: "right"}
        async with watching(server, one.address, two.address, names=names) as agent:
            found = await until(
                agent.monitor,
                lambda found: (
                    len(found) == 2 and all(each.presence is Presence.ONLINE for each in found.values())
                ),
            )
            assert {name: each.serial for name, each in found.items()} == {
                "left": one.address,
                "right": two.address,
            }
            assert {each.facts.serialno for each in found.values() if each.facts} == {one.serial}
    finally:
        for name in ("a", "b"):
            stop_devices(tmp_path / name)


def duplicate(folder: Path) -> VirtualDeviceHandle:
    """A phone whose serial number is that of every other one made here."""
    folder.mkdir()
    (folder / "suffix").write_text("same")
    return start_devices(1, folder)[0]
