"""Services of a virtual phone with faults, or with a pending restart."""

import asyncio

from agents.adb.shell_v2 import PacketId, packet
from agents.virtual.services.shell_service import ShellRequest
from agents.virtual.transport.connection import Service, ServiceStream

#: Short enough that a deadline which restarts with each byte would never expire.
DRIP_S = 0.2


async def closing_service(_stream: ServiceStream) -> None:
    """Close the service as soon as it was opened."""


def delayed_service(service: Service, delay_s: float) -> Service:
    """Return the service, delayed."""

    async def later(stream: ServiceStream) -> None:
        await asyncio.sleep(delay_s)
        await service(stream)

    return later


def failing_shell(request: ShellRequest) -> Service:
    """Return a shell that runs nothing and exits with 1."""

    async def fail(stream: ServiceStream) -> None:
        if request.framed:
            await stream.write(packet(PacketId.EXIT, bytes([1])))

    return fail


def dripping_shell(request: ShellRequest) -> Service:
    """Return a shell that runs nothing, prints a byte now and then, and never ends."""

    async def drip(stream: ServiceStream) -> None:
        while True:
            await stream.write(packet(PacketId.STDOUT, b".") if request.framed else b".")
            await asyncio.sleep(DRIP_S)

    return drip


def is_flapped_off(flap_s: float, now_s: float) -> bool:
    """Return whether a phone that vanishes in turns is away now."""
    return flap_s > 0 and int(now_s / flap_s) % 2 == 1


def reboot_service(ordered: asyncio.Event) -> Service:
    """Return a service that orders a restart within a tick; the connection ends with that."""

    async def wait(_stream: ServiceStream) -> None:
        ordered.set()
        await asyncio.Event().wait()

    return wait
