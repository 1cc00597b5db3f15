"""How long an adb server may be silent before the agent ends it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from agents.adb.client import AdbClient
from agents.adb.server import ExternalServer
from agents.adb.smartsocket import tcp_address
from agents.devices.active_attempts import ActiveAttempts
from agents.devices.adb_supervisor import AdbSupervisor
from agents.devices.backpressure import Backpressure
from agents.devices.monitor import DeviceMonitor
from farm.clock import SystemClock
from tests.support.faults.stream_server import read_adb_request, stream_server

pytestmark = pytest.mark.anyio

#: Between two pings, and how long an answer may take, in seconds.
PING_S = 0.6


@asynccontextmanager
async def scripted_server(answers: Iterator[bool], asked: list[bool]) -> AsyncIterator[int]:
    """Answers `host:version`, or says nothing, as it is told: no real one is silent for so many calls."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_adb_request(reader)
        asked.append(next(answers))
        if asked[-1]:
            writer.write(b"OKAY00040029")
            await writer.drain()
        else:
            await asyncio.Event().wait()

    async with stream_server(answer) as port:
        yield port


class Ended(ExternalServer):
    """A server that says what had been asked when it was ended."""

    def __init__(self, port: int, asked: list[bool]) -> None:
        super().__init__("127.0.0.1", port)
        self.asked = asked
        self.after: asyncio.Future[list[bool]] = asyncio.get_running_loop().create_future()

    async def stop(self) -> None:
        if not self.after.done():
            self.after.set_result(list(self.asked))


@pytest.mark.fault(17)
async def test_a_server_is_ended_when_three_pings_in_a_row_got_no_answer() -> None:
    told = [True, False, False, True, False, True, False, False, False]
    asked: list[bool] = []
    async with scripted_server(iter([*told, *[False] * 1000]), asked) as port:
        adb, random, clock, pressure = (
            AdbClient(tcp_address(port)),
            Random(1),
            SystemClock(),
            Backpressure(asyncio.Event()),
        )
        server = Ended(port, asked)
        async with asyncio.TaskGroup() as tasks:
            monitor = DeviceMonitor(adb=adb, active=ActiveAttempts(), clock=clock, random=random, tasks=tasks)
            supervisor = AdbSupervisor(
                server=server,
                adb=adb,
                monitor=monitor,
                pressure=pressure,
                clock=clock,
                random=random,
                ping_s=PING_S,
            )
            pinging = tasks.create_task(supervisor.ping())
            async with asyncio.timeout(120):
                assert await server.after == told
            pinging.cancel()
