"""Services of a phone that is not well, or is to be restarted."""

import asyncio

from agents.adb.shell_v2 import PacketId, packet
from agents.virtual.connection import Service, Stream
from agents.virtual.shell_service import ShellRequest


async def ends_at_once(_stream: Stream) -> None:
    """A service that is closed as soon as it was opened."""


def slowed(service: Service, delay_s: float) -> Service:
    """The same, later."""

    async def later(stream: Stream) -> None:
        await asyncio.sleep(delay_s)
        await service(stream)

    return later


def failing(request: ShellRequest) -> Service:
    """A shell that runs nothing and exits with 1."""

    async def fail(stream: Stream) -> None:
        if request.framed:
            await stream.write(packet(PacketId.EXIT, bytes([1])))

    return fail


def restart_ordered(ordered: asyncio.Event) -> Service:
    """A host's order to restart, which is carried out within a tick; the connection ends with that."""

    async def wait(_stream: Stream) -> None:
        ordered.set()
        await asyncio.Event().wait()

    return wait
