"""Services of a phone that is not well, or is to be restarted."""

import asyncio

from agents.adb.shell_v2 import PacketId, packet
from agents.virtual.services.shell_service import ShellRequest
from agents.virtual.transport.connection import Service, Stream

#: Often enough that a deadline which begins anew with each byte would never pass.
DRIP_S = 0.2


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


def dripping(request: ShellRequest) -> Service:
    """A shell that runs nothing, prints a byte now and then, and never ends."""

    async def drip(stream: Stream) -> None:
        while True:
            await stream.write(packet(PacketId.STDOUT, b".") if request.framed else b".")
            await asyncio.sleep(DRIP_S)

    return drip


def is_flapped_away(flap_s: float, now_s: float) -> bool:
    """Whether a phone that vanishes in turns is away now."""
    return flap_s > 0 and int(now_s / flap_s) % 2 == 1


def restart_ordered(ordered: asyncio.Event) -> Service:
    """A host's order to restart, which is carried out within a tick; the connection ends with that."""

    async def wait(_stream: Stream) -> None:
        ordered.set()
        await asyncio.Event().wait()

    return wait
