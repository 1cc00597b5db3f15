"""adb's file transfer: sync version 1 and stat version 2 (AOSP: file_sync_protocol.h)."""

import errno
import os
import stat
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from agents.adb.smartsocket import AdbProtocolError, AdbRequestFailed, SmartSocket
from agents.host.io_pool import run_in_io_pool
from farm.core.errors import HostError

CHUNK_BYTES = 64 * 1024
READ_BYTES = 16 * CHUNK_BYTES
RECORD = struct.Struct("<4sI")
#: Mode, size, modification time: what follows the id of a version 1 answer.
STAT_V1 = struct.Struct("<III")
#: Error, device, inode, mode, links, user, group, size, access, modification and change time.
STAT_V2 = struct.Struct("<IQQIIIIQqqq")
_ABSENT = (errno.ENOENT, errno.ENOTDIR)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStat:
    """The stat of a file on the device. With stat v1, sizes wrap at 4 GiB and links are not followed."""

    mode: int
    size_bytes: int
    modified_s: int

    @property
    def is_file(self) -> bool:
        """Return whether it is a regular file."""
        return stat.S_ISREG(self.mode)


def record(name: bytes, payload: bytes) -> bytes:
    """Return one sync record: id, length, payload."""
    return RECORD.pack(name, len(payload)) + payload


async def read_stat_v1(socket: SmartSocket, remote: str) -> FileStat | None:
    """Return a file's stat by STAT; None when there is none."""
    socket.write(record(b"STAT", remote.encode()))
    await _expect(socket, b"STAT")
    mode, size, modified = STAT_V1.unpack(await socket.read_exactly(STAT_V1.size))
    return FileStat(mode=mode, size_bytes=size, modified_s=modified) if mode else None


async def read_stat_v2(socket: SmartSocket, remote: str) -> FileStat | None:
    """Return a file's stat by STA2, links followed; None when there is none."""
    socket.write(record(b"STA2", remote.encode()))
    await _expect(socket, b"STA2")
    fields = STAT_V2.unpack(await socket.read_exactly(STAT_V2.size))
    error, mode, size, modified = fields[0], fields[3], fields[7], fields[9]
    if error in _ABSENT:
        return None
    if error:
        raise AdbRequestFailed(f"{remote}: {os.strerror(error)}")
    return FileStat(mode=mode, size_bytes=size, modified_s=modified)


async def receive(socket: SmartSocket, remote: str, limit_bytes: int) -> bytes:
    """Return the first `limit_bytes` of a file."""
    socket.write(record(b"RECV", remote.encode()))
    content = bytearray()
    while len(content) < limit_bytes:
        name, length = RECORD.unpack(await socket.read_exactly(RECORD.size))
        if name == b"DONE":
            break
        data = await _answer(socket, name, b"DATA", length)
        content += data
    return bytes(content[:limit_bytes])


async def send(socket: SmartSocket, source: BinaryIO, remote: str, mode: int) -> int:
    """Write a file on the device; return the bytes sent. Raises AdbRequestFailed on a refusal."""
    try:
        sent = await _send_content(socket, source, remote, mode)
    except ConnectionError:
        # A device that refuses may close before all is sent; its reason can still be read.
        await _read_status(socket)
        raise
    await _read_status(socket)
    return sent


async def _send_content(socket: SmartSocket, source: BinaryIO, remote: str, mode: int) -> int:
    socket.write(record(b"SEND", f"{remote},{stat.S_IFREG | mode}".encode()))
    sent = 0
    while block := await _read_block(source):
        for at in range(0, len(block), CHUNK_BYTES):
            socket.write(record(b"DATA", block[at : at + CHUNK_BYTES]))
        await socket.drain()
        sent += len(block)
    socket.write(RECORD.pack(b"DONE", int(time.time())))
    return sent


async def _read_block(source: BinaryIO) -> bytes:
    try:
        return await run_in_io_pool(source.read, READ_BYTES)
    except OSError as error:
        raise HostError(f"the file to push cannot be read: {error}") from error


async def _read_status(socket: SmartSocket) -> None:
    name, length = RECORD.unpack(await socket.read_exactly(RECORD.size))
    await _answer(socket, name, b"OKAY", length)


async def _answer(socket: SmartSocket, name: bytes, expected: bytes, length: int) -> bytes:
    if name not in (expected, b"FAIL") or length > READ_BYTES:
        raise AdbProtocolError(f"{name!r} with length {length} where {expected!r} belongs")
    payload = await socket.read_exactly(length)
    if name == b"FAIL":
        raise AdbRequestFailed(payload.decode(errors="replace"))
    return payload


async def _expect(socket: SmartSocket, expected: bytes) -> None:
    if (name := await socket.read_exactly(4)) != expected:
        raise AdbProtocolError(f"{name!r} where {expected!r} belongs")


async def open_source(source: Path) -> BinaryIO:
    """Open a local file for reading, off the event loop."""
    try:
        return await run_in_io_pool(source.open, "rb")
    except OSError as error:
        raise HostError(f"the file to push cannot be opened: {error}") from error
