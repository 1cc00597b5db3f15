"""adb's file transfer: sync version 1, and the records of both stats (AOSP: file_sync_protocol.h)."""

import stat
import struct
import time
from pathlib import Path
from typing import BinaryIO

from agents.adb.smartsocket import AdbProtocolError, AdbRequestFailed, SmartSocket
from agents.host.atomic_file import run_in_io_pool
from farm.core.errors import HostError

CHUNK_BYTES = 64 * 1024
READ_BYTES = 16 * CHUNK_BYTES
RECORD = struct.Struct("<4sI")
#: Mode, size, modification time: what follows the id of a version 1 answer.
STAT_V1 = struct.Struct("<III")
#: Error, device, inode, mode, links, user, group, size, access, modification and change time.
STAT_V2 = struct.Struct("<IQQIIIIQqqq")


def record(name: bytes, payload: bytes) -> bytes:
    """Return one sync record: id, length, payload."""
    return RECORD.pack(name, len(payload)) + payload


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
    socket.write(record(b"SEND", f"{remote},{stat.S_IFREG | mode}".encode()))
    sent = 0
    try:
        while block := await _read_block(source):
            for at in range(0, len(block), CHUNK_BYTES):
                socket.write(record(b"DATA", block[at : at + CHUNK_BYTES]))
            await socket.drain()
            sent += len(block)
    except ConnectionError:
        # A device that refuses may close before all is sent; its reason can still be read.
        await _read_status(socket)
        raise
    socket.write(RECORD.pack(b"DONE", int(time.time())))
    await _read_status(socket)
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


async def open_source(source: Path) -> BinaryIO:
    """Open a local file for reading, off the event loop."""
    try:
        return await run_in_io_pool(source.open, "rb")
    except OSError as error:
        raise HostError(f"the file to push cannot be opened: {error}") from error
