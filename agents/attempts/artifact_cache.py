"""The host's cache of artifacts: downloaded from the farm once, verified, pushed to any number of phones."""

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
#: Between two uses, where the clock stands still or was set back.
_TICK_S = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class _CachedArtifact:
    """A file of the cache."""

    digest: Digest
    size_bytes: int
    used_s: float


class ArtifactCache:
    """Artifacts named by digest, within a size limit; the least recently used are removed first.

    Invariant: a file that `fetch` returns had that digest when this process last verified it, and stays while
    an active attempt needs it.
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
        """Open a folder; unfinished downloads of an earlier run are removed.

        Args:
            folder: made when missing.
            api: where files come from.
            clock: the time.
            limit_bytes: the size limit; files that active or next attempts need stay beyond it.
            needed_digests: the files that active attempts need.
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
        """Have `fetch` verify these files again: one of them was corrupt."""
        self._verified.difference_update(digests)

    def pin(self, digests: Iterable[Digest]) -> None:
        """Keep these files as if active attempts needed them, until the next call: jobs that come next do."""
        self._expected = frozenset(digests)

    async def fetch(self, digest: Digest) -> Path:
        """Return the path of an artifact on this host; concurrent callers share one download.

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
        """Download; when the disk is full, remove everything that is not needed and try once more."""
        try:
            await self._download(path, digest)
        except HostDiskFull:
            if not await self._trim(0):
                raise
            await self._download(path, digest)

    async def _download(self, path: Path, digest: Digest) -> None:
        """Download a file; a partial download is kept and resumed by the next call."""
        part = path.with_name(path.name + TEMPORARY_SUFFIX)
        keep = False
        try:
            async with asyncio.timeout(FETCH_DEADLINE_S):
                received = await self._receive(part, digest)
        except (NotFound, ArtifactMissing, Forbidden) as error:
            # The farm's own plan names it: a missing artifact is the farm's fault.
            raise FarmFault(f"the farm has lost artifact {digest[:12]}: {error.message}") from error
        except FarmUnreachable:
            keep = part.stat().st_size > 0
            raise
        except TimeoutError as error:
            keep = True
            raise FarmFault(
                f"the download of artifact {digest[:12]} took more than {FETCH_DEADLINE_S:g} s"
            ) from error
        else:
            if received != digest:
                raise FarmFault(f"the farm sent other bytes ({received[:12]}) for artifact {digest[:12]}")
            await run_in_io_pool(_finish_download, part, path)
        finally:
            if not keep:
                part.unlink(missing_ok=True)

    async def _receive(self, part: Path, digest: Digest) -> str:
        with translate_disk_errors(part), await run_in_io_pool(part.open, "a+b") as stream:
            partial_bytes = await run_in_io_pool(stream.seek, 0, os.SEEK_END)
            async with self._api.blob(digest, offset_bytes=partial_bytes) as body:
                hasher = hashlib.sha256()
                if partial_bytes:
                    await run_in_io_pool(_truncate_to, stream, body.offset_bytes, hasher)

                def write(chunk: bytes) -> None:
                    stream.write(chunk)
                    hasher.update(chunk)

                async for chunk in body.chunks:
                    await run_in_io_pool(write, chunk)
        return hasher.hexdigest()

    def _next_use_s(self) -> float:
        """Return a time later than every use before, earlier runs included, whatever the clock did."""
        self._last_use_s = max(self._clock.now().timestamp(), self._last_use_s + _TICK_S)
        return self._last_use_s

    async def _trim(self, limit_bytes: int) -> int:
        """Remove unneeded files, least recently used first, down to the limit; return the bytes freed."""
        cached = sorted(await run_in_io_pool(self._cached), key=lambda file: file.used_s)
        excess_bytes = sum(file.size_bytes for file in cached) - limit_bytes
        freed_bytes = 0
        for file in cached:
            if freed_bytes >= excess_bytes:
                break
            # The lock keeps `fetch` from returning this file while it is removed.
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
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return Digest(hashlib.file_digest(stream, "sha256").hexdigest())


def _truncate_to(stream: BinaryIO, size_bytes: int, hasher: "hashlib._Hash") -> None:
    """Truncate a partial download, and add the bytes that stay to its digest."""
    stream.truncate(size_bytes)
    stream.seek(0)
    while chunk := stream.read(1024 * 1024):
        hasher.update(chunk)


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
