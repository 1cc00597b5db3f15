"""Adb servers that are not the agent's: shared, or in its way; and phones on two transports."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agents.adb.client import AdbClient
from agents.adb.server import AdbServer, ExternalServer
from agents.adb.smartsocket import tcp_address
from agents.devices.adb_supervisor import OtherServerMonitor, claimed_device_hint
from agents.devices.inventory import TransportObservation
from agents.host.config import AgentConfig
from agents.host.process import start_ticks
from agents.virtual.pool import VirtualDeviceHandle, start_devices, stop_devices
from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from farm.core.errors import AdbServerDown
from tests.support.agents.adb_fixtures import OperatorsServer, operators_server
from tests.support.agents.adb_supervisor_fixture import Watching, watching
from tests.support.agents.fake_farm import FakeFarm, living
from tests.support.faults.stream_server import read_adb_request, stream_server

pytestmark = pytest.mark.anyio

#: Between the supervisor's looks whether the server answers, in seconds.
PING_S = 0.2


class Listing(dict[str, str]):
    """The state of each phone, by serial number."""

    #: How often it was asked for.
    looks = 0


@asynccontextmanager
async def listing_server(listing: Listing) -> AsyncIterator[int]:
    """Answers `host:devices` as a server does that holds phones on USB, which cannot be had here."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await read_adb_request(reader) == b"host:devices"
        listing.looks += 1
        text = "".join(f"{serial}\t{state}\n" for serial, state in listing.items()).encode()
        writer.write(b"OKAY%04x" % len(text) + text)
        await writer.drain()

    async with stream_server(answer) as port:
        yield port


def is_online(found: TransportObservation | None) -> bool:
    return found is not None and found.presence is Presence.ONLINE


def is_not_online(found: TransportObservation | None) -> bool:
    return not is_online(found)


async def test_an_agent_works_on_the_operators_server_and_leaves_it_running(
    config: AgentConfig, played: FakeFarm, operators: OperatorsServer
) -> None:
    sharing = config.model_copy(update={"adb_server": f"127.0.0.1:{operators.port}"})
    async with living(sharing):
        await played.until(
            lambda: any(
                device.presence is Presence.ONLINE for said in played.exchanges for device in said.devices
            )
        )
    assert await operators.answers()
    assert not (config.data_dir / "adb").exists()
    assert played.openings[0].adb_address == f"tcp:127.0.0.1:{operators.port}"


async def test_an_agent_reports_the_socket_of_its_own_server(config: AgentConfig, played: FakeFarm) -> None:
    async with living(config):
        await played.until(lambda: bool(played.openings))
    assert played.openings[0].adb_address == f"localfilesystem:{config.data_dir}/adb/socket"


async def test_a_shared_server_that_goes_away_and_comes_back_is_used_again(
    operators: OperatorsServer, phone: VirtualDeviceHandle
) -> None:
    shared = ExternalServer("127.0.0.1", operators.port)
    async with watching(shared, phone.address, ping_s=PING_S) as agent:
        await agent.until(phone.serial, is_online)
        await operators.stop()
        await agent.until(phone.serial, is_not_online)
        with pytest.raises(AdbServerDown) as caught:
            await shared.start()
        assert f"`adb -P {operators.port} start-server`" in caught.value.hint
        await operators.start()
        await agent.until(phone.serial, is_online)


@pytest.mark.fault(17)
async def test_a_shared_server_that_hangs_is_not_ended_and_its_phones_are_not_online(
    operators: OperatorsServer, phone: VirtualDeviceHandle
) -> None:
    pid = operators.pid
    shared = ExternalServer("127.0.0.1", operators.port)
    async with watching(shared, phone.address, ping_s=PING_S) as agent:
        await agent.until(phone.serial, is_online)
        os.kill(pid, signal.SIGSTOP)
        try:
            await agent.until(phone.serial, is_not_online)
        finally:
            os.kill(pid, signal.SIGCONT)
        await agent.until(phone.serial, is_online)
    assert start_ticks(pid) is not None


async def test_a_shared_server_of_another_version_is_remarked_on_once() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len("000chost:version"))
        writer.write(b"OKAY00040020")
        await writer.drain()

    async with stream_server(answer) as port:
        shared = ExternalServer("127.0.0.1", port)
        with capture_logs() as logs:
            await shared.start()
            await shared.start()
    assert [each["event"] for each in logs] == ["adb_server_version_differs"]


@pytest.mark.invariant("I21")
async def test_one_phone_at_two_addresses_is_one_device(
    server: AdbServer, phone: VirtualDeviceHandle
) -> None:
    name = phone.address.replace("127.0.0.1", "localhost")
    async with watching(server, phone.address, name, ping_s=PING_S) as agent:
        async with asyncio.timeout(120), aclosing(agent.adb.track_devices()) as listings:
            async for state_by_serial in listings:
                if set(state_by_serial) == {phone.address, name}:
                    break
        await agent.until(phone.serial, lambda _: all_looked_at(agent, 2))
        assert list(agent.monitor.observations()) == [phone.serial]
        assert is_online(agent.monitor.observations()[DeviceId(phone.serial)])


@pytest.mark.invariant("I21")
@pytest.mark.fault(21)
async def test_two_phones_of_one_serial_number_are_both_refused(server: AdbServer, tmp_path: Path) -> None:
    one, two = (duplicate(tmp_path / name) for name in ("a", "b"))
    try:
        assert one.serial == two.serial
        async with watching(server, one.address, two.address, ping_s=PING_S) as agent:
            await agent.until(one.serial, lambda _: all_looked_at(agent, 2))
            found = agent.monitor.observations()[DeviceId(one.serial)]
            assert found.presence is Presence.OFFLINE
            assert found.detail == f"several devices claim this identity: {both(one, two)}"
            assert found.claimants == tuple(sorted((one.address, two.address)))
            assert agent.monitor.recoverable_devices() == {}
    finally:
        for name in ("a", "b"):
            stop_devices(tmp_path / name)


async def test_a_phone_that_another_server_holds_is_shown_with_what_helps(
    server: AdbServer, phone: VirtualDeviceHandle
) -> None:
    listing = Listing({"R58M12ABC": "device", phone.address: "device", "emulator-5554": "device"})
    async with listing_server(listing) as port, watching(server, ping_s=PING_S) as agent:
        foreign = OtherServerMonitor(ours=agent.adb, port=port, monitor=agent.monitor, interval_s=0.02)
        with capture_logs() as logs:
            task = asyncio.create_task(foreign.run())
            found = await agent.until("R58M12ABC", lambda found: found is not None)
            looks = listing.looks
            await agent.until("R58M12ABC", lambda _: listing.looks >= looks + 3)
        assert found is not None
        assert (found.presence, found.detail) == (Presence.OFFLINE, claimed_device_hint(port))
        assert list(agent.monitor.observations()) == ["R58M12ABC"]
        assert [each["serials"] for each in logs if each["log_level"] == "warning"] == [["R58M12ABC"]]
        listing.clear()
        await agent.until("R58M12ABC", lambda found: found is None)
        task.cancel()


async def test_where_no_other_server_is_none_is_started(server: AdbServer, unused_port: int) -> None:
    async with watching(server, ping_s=PING_S) as agent:
        foreign = OtherServerMonitor(ours=agent.adb, port=unused_port, monitor=agent.monitor, interval_s=0.02)
        task = asyncio.create_task(foreign.run())
        # Several checks: nothing tells of those that find no server.
        await asyncio.sleep(5 * foreign.interval_s)
        assert not task.done()
        task.cancel()
    with pytest.raises(AdbServerDown):
        await AdbClient(tcp_address(unused_port)).version()


@pytest.fixture
async def operators(tmp_path: Path) -> AsyncIterator[OperatorsServer]:
    async with operators_server(tmp_path / "operator") as server:
        yield server


@pytest.fixture
def unused_port(port: int) -> int:
    return port


def all_looked_at(agent: Watching, count: int) -> bool:
    listed = [each for each in agent.monitor.transports() if each.presence is Presence.ONLINE]
    return len(listed) == count


def duplicate(folder: Path) -> VirtualDeviceHandle:
    """A phone whose serial number is that of every other one made here."""
    folder.mkdir()
    (folder / "suffix").write_text("same")
    return start_devices(1, folder)[0]


def both(*phones: VirtualDeviceHandle) -> str:
    return ", ".join(sorted(phone.address for phone in phones))
