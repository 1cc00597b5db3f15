"""The `shell` and `exec` services: commands run unparsed, over the shell protocol v2 or raw."""

import asyncio
from dataclasses import dataclass

from agents.adb.shell_v2 import HEADER, PacketId, packet
from agents.virtual.services.command import Shell, ShellCommand, feed
from agents.virtual.transport.bytestream import ByteStream
from agents.virtual.transport.connection import Service, ServiceStream

READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellRequest:
    """A parsed service name such as `shell,v2,TERM=xterm,raw:ls -l`."""

    command: str
    framed: bool
    term: str | None = None


def shell_request(name: str) -> ShellRequest | None:
    """Parse a service name; None when it is not for a shell."""
    head, colon, command = name.partition(":")
    service, *options = head.split(",")
    if not colon or service not in ("shell", "exec"):
        return None
    terms = [option.removeprefix("TERM=") for option in options if option.startswith("TERM=")]
    return ShellRequest(command=command, framed="v2" in options, term=terms[0] if terms else None)


def shell_service(shell: Shell, request: ShellRequest) -> Service:
    """Return the service for the request."""

    async def framed(stream: ServiceStream) -> None:
        async with ShellCommand(shell, request.command, merged=False, term=request.term) as command:
            stdin = asyncio.create_task(_unpack_stdin(stream, command.stdin))
            try:
                await asyncio.gather(
                    _pack(command.stdout, stream, PacketId.STDOUT),
                    _pack(command.stderr, stream, PacketId.STDERR),
                )
                # Last: an exit code ends the output, which a background child may still write.
                await stream.write(packet(PacketId.EXIT, bytes([await command.exit_code()])))
            finally:
                stdin.cancel()

    async def raw(stream: ServiceStream) -> None:
        async with ShellCommand(shell, request.command, merged=True, term=request.term) as command:
            stdin = asyncio.create_task(_copy_stdin(stream, command.stdin))
            try:
                await _copy(command.stdout, stream)
                await command.exit_code()
            finally:
                stdin.cancel()

    return framed if request.framed else raw


async def _pack(source: asyncio.StreamReader | None, stream: ServiceStream, kind: PacketId) -> None:
    while source is not None and (data := await source.read(READ_BYTES)):
        await stream.write(packet(kind, data))


async def _copy(source: asyncio.StreamReader | None, stream: ServiceStream) -> None:
    while source is not None and (data := await source.read(READ_BYTES)):
        await stream.write(data)


async def _unpack_stdin(stream: ServiceStream, stdin: asyncio.StreamWriter) -> None:
    source = ByteStream(stream)
    while True:
        kind, length = HEADER.unpack(await source.read_exactly(HEADER.size))
        data = await source.read_exactly(length)
        if kind == PacketId.STDIN:
            await feed(stdin, data)
        elif kind == PacketId.CLOSE_STDIN:
            stdin.close()


async def _copy_stdin(stream: ServiceStream, stdin: asyncio.StreamWriter) -> None:
    while True:
        await feed(stdin, await stream.read())
