"""A session's process, connected with its client: it is ended, whatever process and client do."""

import asyncio
import os
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from farm.cli.devices.live.phone import connect_process

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

#: Longer than a test: what may last so long is ended by something else.
LONG_S = 3600.0
ECHO = "import shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"
DEAF = "import time; time.sleep(3600)"


@dataclass
class Session:
    """A client of a process, and what the process said."""

    reader: StreamReader
    writer: StreamWriter
    pid_file: Path
    said: list[str] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def process_is_there(self) -> bool:
        return Path(f"/proc/{self.pid_file.read_text()}").exists()


@asynccontextmanager
async def connected(
    folder: Path, program: str, *, longest_s: float = LONG_S, end_s: float = LONG_S, can_say: bool = True
) -> AsyncIterator[Session]:
    """Connect a client with a Python program that has written its process number."""
    pid_file = folder / "pid"
    start = f"import os, sys; open({str(pid_file)!r}, 'w').write(str(os.getpid()))\n"
    said: list[str] = []
    ended = asyncio.Event()

    def say(line: str) -> None:
        if not can_say:
            raise OSError("the terminal has gone")
        said.append(line)

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        words = [sys.executable, "-c", start + program]
        await connect_process(words, os.environ, reader, writer, say, longest_s=longest_s, end_s=end_s)
        ended.set()
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    try:
        yield Session(reader, writer, pid_file, said, ended)
    finally:
        server.close()
        writer.close()


async def test_errors_without_an_end_of_line_do_not_stop_the_process(tmp_path: Path) -> None:
    program = f"sys.stderr.write('x' * 2_000_000); sys.stderr.flush()\n{ECHO}"
    async with connected(tmp_path, program) as session:
        session.writer.write(b"here")
        session.writer.write_eof()
        assert await session.reader.read() == b"here"
        await session.ended.wait()
        assert sum(len(line.removeprefix("phone: ")) for line in session.said) == 2_000_000


async def test_errors_are_said_line_by_line(tmp_path: Path) -> None:
    async with connected(tmp_path, "sys.stderr.write('first\\nsecond\\nno end')") as session:
        await session.ended.wait()
        assert session.said == ["phone: first", "phone: second", "phone: no end"]


async def test_a_terminal_that_has_gone_does_not_stop_the_process(tmp_path: Path) -> None:
    program = f"sys.stderr.write('lost\\n' * 500_000); sys.stderr.flush()\n{ECHO}"
    async with connected(tmp_path, program, can_say=False) as session:
        session.writer.write(b"here")
        session.writer.write_eof()
        assert await session.reader.read() == b"here"
        await session.ended.wait()


async def test_a_process_that_does_not_end_after_its_time_is_killed(tmp_path: Path) -> None:
    async with connected(tmp_path, DEAF, longest_s=1.0, end_s=0.1) as session:
        assert await session.reader.read() == b""
        await session.ended.wait()
        assert not session.process_is_there()


async def test_a_process_whose_client_reads_nothing_is_killed(tmp_path: Path) -> None:
    program = "while True: sys.stdout.write('x' * 100_000)"
    async with connected(tmp_path, program, longest_s=2.0, end_s=0.1) as session:
        await session.ended.wait()
        assert not session.process_is_there()
