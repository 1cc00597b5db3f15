"""An adb supervisor on a server, with the monitor that it updates."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

import pytest

from agents.adb.client import AdbClient
from agents.adb.server import AdbServer, ExternalServer
from agents.devices.active_attempts import ActiveAttempts
from agents.devices.adb_supervisor import PING_S, AdbSupervisor
from agents.devices.backpressure import Backpressure
from agents.devices.inventory import TransportObservation
from agents.devices.monitor import DeviceMonitor
from farm.clock import SystemClock
from farm.core.base.ids import DeviceId


class _Over(Exception):
    """The test is, and the tasks that never end by themselves must."""


#: Looks at what an agent sees, before it is given up.
LOOKS = 1500


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """What an agent sees."""

    adb: AdbClient
    monitor: DeviceMonitor
    active: ActiveAttempts

    async def until(
        self, phone: str, is_so: Callable[[TransportObservation | None], bool]
    ) -> TransportObservation | None:
        for _ in range(LOOKS):
            if is_so(found := self.monitor.observations().get(DeviceId(phone))):
                return found
            await asyncio.sleep(0.02)
        pytest.fail(f"{phone} is {found}")


@asynccontextmanager
async def watching(
    server: AdbServer | ExternalServer,
    *addresses: str,
    names: Mapping[str, str] | None = None,
    ping_s: float | None = None,
) -> AsyncIterator[Watching]:
    """Follow what the server lists, and keep addresses connected.

    Args:
        server: the one that lists.
        addresses: of phones.
        names: of places.
        ping_s: how often the supervisor looks whether the server answers; None: never.
    """
    adb, random, active = AdbClient(server.address), Random(1), ActiveAttempts()
    try:
        async with asyncio.TaskGroup() as tasks:
            monitor = DeviceMonitor(
                adb=adb,
                active=active,
                clock=SystemClock(),
                random=random,
                tasks=tasks,
                names=dict(names or {}),
            )
            supervisor = AdbSupervisor(
                server=server,
                adb=adb,
                monitor=monitor,
                pressure=Backpressure(asyncio.Event()),
                clock=SystemClock(),
                random=random,
                ping_s=PING_S if ping_s is None else ping_s,
            )
            tasks.create_task(supervisor.track())
            if ping_s is not None:
                tasks.create_task(supervisor.ping())
            for address in addresses:
                tasks.create_task(supervisor.keep_connected(address))
            yield Watching(adb=adb, monitor=monitor, active=active)
            raise _Over
    except* _Over:
        pass
