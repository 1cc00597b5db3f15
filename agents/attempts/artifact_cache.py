"""The host's cache of artifacts: downloaded from the farm once, also ahead of need, and verified."""

import asyncio
import hashlib
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import BinaryIO

import structlog

from agents.farm_api import FarmApi
from agents.host.atomic_file import (
    TEMPORARY_SUFFIX,
    file_digest,
    make_folder,
    run_in_io_pool,
    sweep_temporaries,
    sync_path,
    translate_disk_errors,
)
from farm.clock import Clock
from farm.core.base.ids import Digest, is_digest
from farm.core.base.units import size_text
from farm.core.errors import (
    ArtifactMissing,
    Blame,
    FarmError,
    FarmFault,
    FarmUnreachable,
    Forbidden,
    HostDiskFailed,
    HostDiskFull,
    NotFound,
)

log = structlog.get_logger(__name__)

#: For one artifact, whatever its size; a slower link needs a bigger host cache, not a longer wait.
FETCH_DEADLINE_S = 900.0
#: The time after which a file that did not fit, and that no job has asked for again, is no longer wanted.
_UNFIT_S = 600.0
#: Between two uses, where the clock stands still or was set back.
_TICK_S = 0.001


class ArtifactLost(FarmError):
    """The farm does not have an artifact that its own plan names; asking again does not bring it back."""

    code = "farm.artifact_lost"
    blame = Blame.FARM
    default_hint = "upload the file again: `farm variant build`, `farm variant add` or `farm harness add`"


@dataclass(frozen=True, slots=True, kw_only=True)
class _CachedArtifact:
    """A file of the cache."""

    digest: Digest
    size_bytes: int
    used_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _UnfitArtifact:
    """A file for which there was no space, though the disk could hold it."""

    size_bytes: int
    #: The last time it was asked for.
    asked_s: float


@dataclass(eq=False)
class ArtifactCache:
    """Artifacts named by digest, within a size limit; the least recently used are removed first.

    Invariant: a file that `fetch` returns had that digest when this process last verified it, and stays while
    an active attempt needs it.
    """

    folder: Path
    api: FarmApi
    clock: Clock
    _: KW_ONLY
    #: Files that active or next attempts need stay beyond it.
    limit_bytes: int
    #: The files that active attempts need.
    needed_digests: Callable[[], Iterable[Digest]] = tuple

    def __post_init__(self) -> None:
        """Open the folder; partial downloads of an earlier process are removed."""
        make_folder(self.folder)
        sweep_temporaries(self.folder)
        self._expected: frozenset[Digest] = frozenset()
        self._last_use_s = max((file.used_s for file in self._cached()), default=0.0)
        self._verified: set[Digest] = set()
        self._size_by_digest: dict[Digest, int] = {}
        self._unfit: dict[Digest, _UnfitArtifact] = {}
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
            ArtifactLost: the farm has lost what its plan names.
            FarmFault: the farm does not answer, or sends other bytes.
            HostDiskFull: no room.
        """
        path = self.folder / digest
        async with self._lock_by_digest[digest]:
            if not await run_in_io_pool(self._is_good, path, digest):
                try:
                    await self._download_into_space(path, digest)
                except HostDiskFull as error:
                    if not isinstance(error, HostDiskFailed):
                        await self._record_unfit(digest)
                    raise
                await self._trim(self.limit_bytes)
            self._unfit.pop(digest, None)
            self._verified.add(digest)
            # Later than every use before, earlier processes included, whatever the clock did.
            self._last_use_s = max(self.clock.now().timestamp(), self._last_use_s + _TICK_S)
            await run_in_io_pool(os.utime, path, (self._last_use_s, self._last_use_s))
        return path

    async def shortage(self) -> str | None:
        """Return why this disk can take no new work: a file did not fit, and still does not; or None."""
        free_bytes = (await run_in_io_pool(shutil.disk_usage, self.folder)).free if self._unfit else 0
        now_s = self.clock.monotonic()
        for digest, unfit in list(self._unfit.items()):
            if unfit.size_bytes <= free_bytes or now_s - unfit.asked_s > _UNFIT_S:
                del self._unfit[digest]
        if not self._unfit:
            return None
        largest_bytes = max(unfit.size_bytes for unfit in self._unfit.values())
        return f"the agent's disk has no space for a file of {size_text(largest_bytes)} in {self.folder}"

    async def _download_into_space(self, path: Path, digest: Digest) -> None:
        try:
            await self._download(path, digest)
        except HostDiskFull:
            # Once more, without everything that is not needed.
            if not await self._trim(0):
                raise
            await self._download(path, digest)

    async def _record_unfit(self, digest: Digest) -> None:
        """Record a file that did not fit; one that this disk can never hold is no reason to wait."""
        size_bytes = self._size_by_digest.get(digest, 0)
        if size_bytes <= (await run_in_io_pool(shutil.disk_usage, self.folder)).total:
            self._unfit[digest] = _UnfitArtifact(size_bytes=size_bytes, asked_s=self.clock.monotonic())

    def _is_good(self, path: Path, digest: Digest) -> bool:
        return path.exists() and (digest in self._verified or file_digest(path) == digest)

    async def _download(self, path: Path, digest: Digest) -> None:
        """Download a file; a partial download is kept and resumed by the next call."""
        part = path.with_name(path.name + TEMPORARY_SUFFIX)
        keep = False
        try:
            async with asyncio.timeout(FETCH_DEADLINE_S):
                received = await self._receive(part, digest)
        except (NotFound, ArtifactMissing) as error:
            # The farm's own plan names it: a missing artifact is the farm's fault.
            raise ArtifactLost(f"the farm has lost artifact {digest[:12]}: {error.message}") from error
        except Forbidden as error:
            raise FarmFault(f"the farm keeps back artifact {digest[:12]}: {error.message}") from error
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
            async with self.api.blob(digest, offset_bytes=partial_bytes) as body:
                self._size_by_digest[digest] = body.offset_bytes + body.size_bytes
                await run_in_io_pool(_check_space, part, body.size_bytes)
                hasher = hashlib.sha256()
                if partial_bytes:
                    await run_in_io_pool(_truncate_to, stream, body.offset_bytes, hasher)

                def write(chunk: bytes) -> None:
                    stream.write(chunk)
                    hasher.update(chunk)

                async for chunk in body.chunks:
                    await run_in_io_pool(write, chunk)
        return hasher.hexdigest()

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
            if not lock.locked() and file.digest not in {*self._expected, *self.needed_digests()}:
                async with lock:
                    self._verified.discard(file.digest)
                    await run_in_io_pool((self.folder / file.digest).unlink, True)
                freed_bytes += file.size_bytes
        if freed_bytes:
            log.info("host_cache_trimmed", freed_bytes=freed_bytes)
        return freed_bytes

    def _cached(self) -> list[_CachedArtifact]:
        files = [(path, path.stat()) for path in self.folder.iterdir() if is_digest(path.name)]
        return [
            _CachedArtifact(digest=Digest(path.name), size_bytes=state.st_size, used_s=state.st_mtime)
            for path, state in files
        ]


def _check_space(part: Path, size_bytes: int) -> None:
    """Raise HostDiskFull where `size_bytes` do not fit, before the disk is filled with a part of them."""
    if shutil.disk_usage(part.parent).free < size_bytes:
        needs = f"which needs {size_text(size_bytes)}"
        raise HostDiskFull(f"no space left for artifact {part.stem[:12]}, {needs}, in {part.parent}")


def _truncate_to(stream: BinaryIO, size_bytes: int, hasher: "hashlib._Hash") -> None:
    """Truncate a partial download, and add the bytes that stay to its digest."""
    stream.truncate(size_bytes)
    stream.seek(0)
    while chunk := stream.read(1024 * 1024):
        hasher.update(chunk)


def _finish_download(part: Path, path: Path) -> None:
    with translate_disk_errors(path):
        sync_path(part)
        part.replace(path)
        sync_path(path.parent)


@dataclass(eq=False, kw_only=True)
class ArtifactPrefetcher:
    """Downloads artifacts into the host's cache, one at a time, never while that disturbs a measurement."""

    artifacts: ArtifactCache
    #: True while a measurement runs on this host's own CPU.
    is_disturbing: Callable[[], bool]
    tasks: asyncio.TaskGroup
    #: True if the farm's last answer named any: there is more work for this host.
    is_more: bool = False
    _fetching: asyncio.Task[None] | None = None

    def prefetch(self, digests: Iterable[Digest]) -> None:
        """Pin these artifacts, and fetch them unless a fetch is running; every answer repeats the list."""
        digests = tuple(digests)
        self.artifacts.pin(digests)
        self.is_more = bool(digests)
        if self._fetching is None or self._fetching.done():
            self._fetching = self.tasks.create_task(self._fetch(digests), name="prefetch")

    async def _fetch(self, digests: Iterable[Digest]) -> None:
        for digest in digests:
            if self.is_disturbing():
                return
            try:
                await self.artifacts.fetch(digest)
            except (FarmError, OSError) as error:
                # The attempt that needs it fetches it again, and reports the error.
                log.debug("prefetch_failed", digest=digest, reason=str(error))
