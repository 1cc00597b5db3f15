"""The host's cache of artifacts: fetched from the farm once, verified, pushed to any number of phones."""

import asyncio
import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import structlog

from agents.farm_api import FarmApi
from agents.host.atomic_file import TEMPORARY_SUFFIX, sweep_temporaries, sync_folder, translate_disk_errors
from agents.host.io_pool import run_in_io_pool
from farm.clock import Clock
from farm.core.base.ids import Digest, is_digest
from farm.core.errors import ArtifactMissing, FarmFault, FarmUnreachable, Forbidden, HostDiskFull, NotFound

log = structlog.get_logger(__name__)

#: For one artifact, whatever its size; a slower link needs a bigger host cache, not a longer wait.
FETCH_DEADLINE_S = 900.0
#: Between two uses, where the clock stands still or was put back.
_TICK_S = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class _CachedArtifact:
    """A file of the cache."""

    digest: Digest
    size_bytes: int
    used_s: float


class ArtifactCache:
    """Files named by their digest, within a limit: the least recently used go first.

    Invariant: a file that `fetch` names had that digest when this process last looked, and stays while an
    attempt in hand needs it.
    """

    def __init__(
        self,
        folder: Path,
        api: FarmApi,
        clock: Clock,
        *,
        limit_bytes: int,
        needed_digests: Callable[[], Iterable[Digest]] = tuple,
    ) -> None:
        """Open a folder; what an earlier life did not finish fetching is removed.

        Args:
            folder: made when missing.
            api: where files come from.
            clock: the time.
            limit_bytes: kept to as far as attempts in hand, and what comes next, leave a choice.
            in_hand: the files that attempts in hand need.
        """
        folder.mkdir(parents=True, exist_ok=True)
        sweep_temporaries(folder)
        self._folder = folder
        self._api = api
        self._clock = clock
        self._limit_bytes = limit_bytes
        self._needed_digests = needed_digests
        self._expected: frozenset[Digest] = frozenset()
        self._last_use_s = max((file.used_s for file in self._cached()), default=0.0)
        self._verified: set[Digest] = set()
        self._lock_by_digest: defaultdict[Digest, asyncio.Lock] = defaultdict(asyncio.Lock)

    def invalidate(self, digests: Iterable[Digest]) -> None:
        """Have files looked at again before `fetch` names them: one of them was found damaged."""
        self._verified.difference_update(digests)

    def pin(self, digests: Iterable[Digest]) -> None:
        """Keep these as if they were in hand, until others are expected: jobs that come next need them."""
        self._expected = frozenset(digests)

    async def fetch(self, digest: Digest) -> Path:
        """The path of an artifact's bytes on this host; callers that ask at once share one download.

        Raises:
            FarmFault: the farm does not answer, sends other bytes, or has lost what its plan names.
            HostDiskFull: no room.
        """
        path = self._folder / digest
        async with self._lock_by_digest[digest]:
            if not await run_in_io_pool(self._is_good, path, digest):
                await self._download_with_room(path, digest)
                await self._trim(self._limit_bytes)
            self._verified.add(digest)
            used_s = self._next_use_s()
            await run_in_io_pool(os.utime, path, (used_s, used_s))
        return path

    def _is_good(self, path: Path, digest: Digest) -> bool:
        return path.exists() and (digest in self._verified or file_digest(path) == digest)

    async def _download_with_room(self, path: Path, digest: Digest) -> None:
        """A disk that is fuller than the limit foresees is relieved of all that nobody needs, once."""
        try:
            await self._download(path, digest)
        except HostDiskFull:
            if not await self._trim(0):
                raise
            await self._download(path, digest)

    async def _download(self, path: Path, digest: Digest) -> None:
        """Fetch a file; what a broken line leaves of it stays, and the next call goes on from there."""
        part = path.with_name(path.name + TEMPORARY_SUFFIX)
        keep = False
        try:
            async with asyncio.timeout(FETCH_DEADLINE_S):
                found = await self._receive(part, digest)
        except (NotFound, ArtifactMissing, Forbidden) as error:
            # The farm named it, so that it is missing is nobody's mistake but the farm's.
            raise FarmFault(f"the farm has lost artifact {digest[:12]}: {error.message}") from error
        except FarmUnreachable:
            keep = part.stat().st_size > 0
            raise
        except TimeoutError as error:
            keep = True
            raise FarmFault(f"artifact {digest[:12]} took over {FETCH_DEADLINE_S:g} s") from error
        else:
            if found != digest:
                raise FarmFault(f"the farm sent other bytes ({found[:12]}) for artifact {digest[:12]}")
            await run_in_io_pool(_finish_download, part, path)
        finally:
            if not keep:
                part.unlink(missing_ok=True)

    async def _receive(self, part: Path, digest: Digest) -> str:
        with translate_disk_errors(part), await run_in_io_pool(part.open, "a+b") as stream:
            there_bytes = await run_in_io_pool(stream.seek, 0, os.SEEK_END)
            async with self._api.blob(digest, offset_bytes=there_bytes) as body:
                running = hashlib.sha256()
                if there_bytes:
                    await run_in_io_pool(_truncate_to, stream, body.offset_bytes, running)

                def take(chunk: bytes) -> None:
                    stream.write(chunk)
                    running.update(chunk)

                async for chunk in body.chunks:
                    await run_in_io_pool(take, chunk)
        return running.hexdigest()

    def _next_use_s(self) -> float:
        """Later than any use before, also of an earlier life, wherever the clock went meanwhile."""
        self._last_use_s = max(self._clock.now().timestamp(), self._last_use_s + _TICK_S)
        return self._last_use_s

    async def _trim(self, limit_bytes: int) -> int:
        """Remove what nobody needs, least recently used first, until the rest is within a limit; how much."""
        cached = sorted(await run_in_io_pool(self._cached), key=lambda file: file.used_s)
        excess_bytes = sum(file.size_bytes for file in cached) - limit_bytes
        freed_bytes = 0
        for file in cached:
            if freed_bytes >= excess_bytes:
                break
            # Nobody is being given this one now, and nobody will be while it goes.
            lock = self._lock_by_digest[file.digest]
            if not lock.locked() and file.digest not in self._needed():
                async with lock:
                    self._verified.discard(file.digest)
                    await run_in_io_pool(_remove, self._folder / file.digest)
                freed_bytes += file.size_bytes
        if freed_bytes:
            log.info("host_cache_trimmed", freed_bytes=freed_bytes)
        return freed_bytes

    def _needed(self) -> frozenset[Digest]:
        return self._expected.union(self._needed_digests())

    def _cached(self) -> list[_CachedArtifact]:
        files = [(path, path.stat()) for path in self._folder.iterdir() if is_digest(path.name)]
        return [
            _CachedArtifact(digest=Digest(path.name), size_bytes=state.st_size, used_s=state.st_mtime)
            for path, state in files
        ]


def file_digest(path: Path) -> Digest:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return Digest(hashlib.file_digest(stream, "sha256").hexdigest())


def _truncate_to(stream: BinaryIO, size_bytes: int, running: "hashlib._Hash") -> None:
    """Keep the first bytes of a file, to go on after them, and count them in its digest."""
    stream.truncate(size_bytes)
    stream.seek(0)
    while chunk := stream.read(1024 * 1024):
        running.update(chunk)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _finish_download(part: Path, path: Path) -> None:
    with translate_disk_errors(path):
        descriptor = os.open(part, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        part.replace(path)
        sync_folder(path.parent)
