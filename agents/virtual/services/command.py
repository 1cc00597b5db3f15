"""A command in a real shell, with the pipes and signals of adbd (AOSP: daemon/shell_service.cpp)."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self


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
        """Start nothing yet.

        Args:
            shell: how to run it.
            command: passed on as it is; an empty one starts a shell that reads commands.
            merged: stderr goes where stdout goes.
            term: the terminal type, if the host named one.
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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
