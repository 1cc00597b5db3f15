"""The `sync` service: files to and from the phone (AOSP: daemon/file_sync_service.cpp)."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from agents.adb.sync import CHUNK_BYTES, RECORD, STAT_V1, STAT_V2, record
from agents.virtual.connection import MAX_DATA_BYTES, ByteStream, InvalidPacket, Service, ServiceStream
from agents.virtual.faults import FaultState

PATH_LIMIT_BYTES = 1024
_MASK32 = 0xFFFFFFFF
#: DATA records collected for one write to the host.
_BATCH_BYTES = MAX_DATA_BYTES - CHUNK_BYTES


def sync_service(faults: FaultState) -> Service:
    """Return the `sync:` service."""
    return lambda stream: SyncSession(stream, faults).serve()


class SyncSession:
    """The file transfers of one host, one after the other."""

    def __init__(self, stream: ServiceStream, faults: FaultState) -> None:
        self._stream = stream
        self._source = ByteStream(stream)
        self._faults = faults

    async def serve(self) -> None:
        """Answer requests until QUIT; an unknown request ends the stream."""
        while True:
            name, length = await self._read_record()
            if name == b"QUIT":
                return
            if length > PATH_LIMIT_BYTES:
                await self._fail("path too long")
                return
            await self._answer(name, os.fsdecode(await self._source.read_exactly(length)))

    async def _answer(self, name: bytes, path: str) -> None:
        match name:
            case b"STAT":
                await self._stream.write(b"STAT" + _stat_v1(path))
            case b"STA2":
                await self._stream.write(b"STA2" + _stat_v2(path, follow=True))
            case b"LST2":
                await self._stream.write(b"LST2" + _stat_v2(path, follow=False))
            case b"LIST":
                await self._stream.write(_listing(path) + b"DONE" + bytes(16))
            case b"RECV":
                await self._receive(path)
            case b"SEND":
                await self._send(path)
            case _:
                await self._fail(f"unknown request {name!r}")
                raise InvalidPacket(f"sync request {name!r}")

    async def _receive(self, path: str) -> None:
        try:
            with open(path, "rb") as source:  # noqa: ASYNC230, PTH123 - chunks of local files; names of any bytes
                while batch := source.read(_BATCH_BYTES):
                    parts = (batch[at : at + CHUNK_BYTES] for at in range(0, len(batch), CHUNK_BYTES))
                    await self._stream.write(b"".join(record(b"DATA", part) for part in parts))
        except OSError as error:
            await self._fail(f"open failed: {error.strerror}")
            return
        await self._stream.write(RECORD.pack(b"DONE", 0))

    async def _send(self, request: str) -> None:
        path, _, mode = request.rpartition(",")
        target = Path(path)
        try:
            sink = _new_file(target, mode)
        except OSError as error:
            await self._refuse(target, f"couldn't create file: {error.strerror}")
            return
        try:
            modified_s = await self._write_file(sink)
            _apply_push_fault(target, self._faults)
        except OSError as error:
            await self._refuse(target, f"write failed: {error.strerror}")
            return
        except BaseException:
            _discard(target)
            raise
        os.utime(target, (modified_s, modified_s))
        await self._stream.write(RECORD.pack(b"OKAY", 0))

    async def _refuse(self, target: Path, reason: str) -> None:
        _discard(target)
        await self._fail(reason)
        # A host sends everything before it reads an answer.
        while (head := await self._read_record())[0] != b"DONE":
            await self._read_data(*head)

    async def _write_file(self, sink: BinaryIO) -> int:
        faults = self._faults.current()
        flip = self._faults.take("corrupt_pushes")
        with sink:
            while (head := await self._read_record())[0] != b"DONE":
                data = await self._read_data(*head)
                if faults.disk_full:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                sink.write(bytes([data[0] ^ 0xFF]) + data[1:] if flip and data else data)
                # Here and not at the end, where nothing is left to drain: a full disk must be reported.
                sink.flush()
                flip = False
        # The length of the last record is the file's time.
        return head[1]

    async def _read_data(self, name: bytes, length: int) -> bytes:
        if name != b"DATA" or length > CHUNK_BYTES:
            await self._fail("data chunk expected")
            raise InvalidPacket(f"{name!r} of {length} bytes where DATA belongs")
        return await self._source.read_exactly(length)

    async def _read_record(self) -> tuple[bytes, int]:
        name, length = RECORD.unpack(await self._source.read_exactly(RECORD.size))
        return name, length

    async def _fail(self, reason: str) -> None:
        await self._stream.write(record(b"FAIL", reason.encode()))


def _new_file(target: Path, mode: str) -> BinaryIO:
    bits = int(mode) if mode.isdigit() else stat.S_IFREG | 0o644
    if stat.S_IFMT(bits) not in (0, stat.S_IFREG):
        raise OSError(errno.EINVAL, "only regular files")
    target.parent.mkdir(parents=True, exist_ok=True)
    # A running program keeps its inode; the new file gets the name.
    target.unlink(missing_ok=True)
    sink = target.open("wb")
    os.fchmod(sink.fileno(), stat.S_IMODE(bits) & 0o777)
    return sink


def _apply_push_fault(target: Path, faults: FaultState) -> None:
    """Damage a pushed file as faulty flash does."""
    size_bytes = target.stat().st_size
    if faults.take("power_cut_pushes"):
        target.write_bytes(bytes(size_bytes))
    if faults.take("truncate_pushes"):
        os.truncate(target, size_bytes // 2)


def _discard(target: Path) -> None:
    with suppress(OSError):
        target.unlink()


def _stat_v1(path: str) -> bytes:
    try:
        status = os.lstat(path)
    except OSError:
        return STAT_V1.pack(0, 0, 0)
    return STAT_V1.pack(status.st_mode, status.st_size & _MASK32, int(status.st_mtime) & _MASK32)


def _stat_v2(path: str, *, follow: bool) -> bytes:
    try:
        status = os.stat(path, follow_symlinks=follow)  # noqa: PTH116 - names of any bytes
    except OSError as error:
        return STAT_V2.pack(error.errno or errno.EIO, *[0] * 10)
    times = int(status.st_atime), int(status.st_mtime), int(status.st_ctime)
    owner = status.st_nlink, status.st_uid, status.st_gid
    return STAT_V2.pack(0, status.st_dev, status.st_ino, status.st_mode, *owner, status.st_size, *times)


def _listing(path: str) -> bytes:
    """Return the entries of a folder; none where it cannot be read."""
    with suppress(OSError), os.scandir(path) as entries:
        rows = [(os.fsencode(entry.name), _stat_v1(entry.path)) for entry in entries]
        return b"".join(b"DENT" + row + len(name).to_bytes(4, "little") + name for name, row in rows)
    return b""
