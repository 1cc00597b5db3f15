"""An agent's keeper at work on a server, with the watch that it tells."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from agents.adb.client import AdbClient
from agents.adb.server import AdbServer
from agents.adb.shared import SharedServer
from agents.hand import Hand
from agents.keeper import AdbKeeper
from agents.pressure import Pressure
from agents.watch import PhoneWatch
from farm.clock import SystemClock


class _Over(Exception):
    """The test is, and the tasks that never end by themselves must."""


@asynccontextmanager
async def watching(
    server: AdbServer | SharedServer, names: dict[str, str], *addresses: str
) -> AsyncIterator[PhoneWatch]:
    """Follow what the server lists, and keep addresses connected; `names` are of places."""
    adb, random = AdbClient(server.port, server.host), Random(1)
    try:
        async with asyncio.TaskGroup() as tasks:
            watch = PhoneWatch(
                adb=adb, hand=Hand(), clock=SystemClock(), random=random, tasks=tasks, names=names
            )
            keeper = AdbKeeper(
                server=server,
                adb=adb,
                watch=watch,
                pressure=Pressure(asyncio.Event()),
                clock=SystemClock(),
                random=random,
            )
            tasks.create_task(keeper.track())
            for address in addresses:
                tasks.create_task(keeper.keep_connected(address))
            yield watch
            raise _Over
    except* _Over:
        pass
