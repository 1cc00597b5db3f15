"""A command in a real shell, with the pipes and signals of adbd (AOSP: daemon/shell_service.cpp)."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from agents.adb.shell_v2 import HEADER, PacketId, packet
from agents.virtual.connection import ByteStream, Service, ServiceStream


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """The shell that runs commands, its environment and its folder."""

    program: str
    environment: Mapping[str, str]
    folder: Path


class ShellCommand:
    """A shell in a session of its own. Leaving the context hangs up on it, as devices do when adb goes away.

    Only the shell gets the SIGHUP: its background children, and processes that ignore it, live on.
    """

    def __init__(self, shell: Shell, command: str, *, merged: bool, term: str | None = None) -> None:
        """Start nothing yet; an empty command starts a shell that reads commands.

        `merged` sends stderr where stdout goes; `term` is the terminal type, if the host named one.
        """
        self._shell = shell
        self._arguments = [shell.program, "-c", command] if command else [shell.program]
        self._merged = merged
        self._environment = {**shell.environment, **({"TERM": term} if term else {})}
        self._transports: list[asyncio.BaseTransport] = []

    async def __aenter__(self) -> Self:
        self._process = self._spawn()
        try:
            self.stdin = await self._writer(self._process.stdin)
            self.stdout = await self._reader(self._process.stdout)
            self.stderr = await self._reader(self._process.stderr)
        except BaseException:
            self._hang_up()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._hang_up()

    def _spawn(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self._arguments,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if self._merged else subprocess.PIPE,
            env=self._environment,
            cwd=self._shell.folder,
            start_new_session=True,
        )

    def _hang_up(self) -> None:
        for transport in self._transports:
            transport.close()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGHUP)
            _reap_later(self._process)

    async def exit_code(self) -> int:
        """Wait for the shell's end; 128 + n for a death by signal n."""
        pinned = os.pidfd_open(self._process.pid)
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(pinned, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(pinned)
            os.close(pinned)
        code = self._process.wait()
        return code if code >= 0 else 128 - code

    async def _reader(self, pipe: IO[bytes] | None) -> asyncio.StreamReader | None:
        if pipe is None:
            return None
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        self._transports.append(transport)
        return reader

    async def _writer(self, pipe: IO[bytes] | None) -> asyncio.StreamWriter:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), pipe
        )
        self._transports.append(transport)
        return asyncio.StreamWriter(transport, protocol, None, loop)


def _reap_later(process: "subprocess.Popen[bytes]") -> None:
    """Reap a shell that was hung up on whenever it ends, which may be never."""
    try:
        pinned = os.pidfd_open(process.pid)
    except ProcessLookupError:
        process.poll()
        return
    loop = asyncio.get_running_loop()

    def reap() -> None:
        loop.remove_reader(pinned)
        os.close(pinned)
        process.wait()

    loop.add_reader(pinned, reap)


async def feed(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write input to a command; one that has closed its input is no error, as on a device."""
    with suppress(OSError):
        writer.write(data)
        await writer.drain()


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

    async def serve(stream: ServiceStream) -> None:
        merged = not request.framed
        async with ShellCommand(shell, request.command, merged=merged, term=request.term) as command:
            stdin = asyncio.create_task(_feed_stdin(stream, command.stdin, framed=request.framed))
            try:
                if request.framed:
                    await asyncio.gather(
                        _pack(command.stdout, stream, PacketId.STDOUT),
                        _pack(command.stderr, stream, PacketId.STDERR),
                    )
                    # Last: an exit code ends the output, which a background child may still write.
                    await stream.write(packet(PacketId.EXIT, bytes([await command.exit_code()])))
                    return
                while command.stdout is not None and (data := await command.stdout.read(READ_BYTES)):
                    await stream.write(data)
                await command.exit_code()
            finally:
                stdin.cancel()

    return serve


async def _feed_stdin(stream: ServiceStream, stdin: asyncio.StreamWriter, *, framed: bool) -> None:
    source = ByteStream(stream)
    while True:
        if not framed:
            await feed(stdin, await stream.read())
            continue
        kind, length = HEADER.unpack(await source.read_exactly(HEADER.size))
        data = await source.read_exactly(length)
        if kind == PacketId.STDIN:
            await feed(stdin, data)
        elif kind == PacketId.CLOSE_STDIN:
            stdin.close()


async def _pack(source: asyncio.StreamReader | None, stream: ServiceStream, kind: PacketId) -> None:
    while source is not None and (data := await source.read(READ_BYTES)):
        await stream.write(packet(kind, data))


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


def reboot_service(ordered: asyncio.Event) -> Service:
    """Return a service that orders a restart within a tick; the connection ends with that."""

    async def wait(_stream: ServiceStream) -> None:
        ordered.set()
        await asyncio.Event().wait()

    return wait
