"""The host's cache of artifacts: fetched from the farm once, verified, pushed to any number of phones."""

import asyncio
import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from agents.durable import TEMPORARY_SUFFIX, disk_errors_named, sweep_temporaries, sync_folder
from agents.farm_api import FarmApi
from farm.clock import Clock
from farm.core.errors import ArtifactMissing, FarmTrouble, NotFound
from farm.core.ids import Digest

#: For one artifact, whatever its size; a slower link needs a bigger host cache, not a longer wait.
FETCH_DEADLINE_S = 900.0
#: Files used within this time are never trimmed: a push may be about to open them.
IN_USE_S = 3600.0


class BlobCache:
    """Files named by their digest.

    Invariant: a file that `fetch` names had that digest when this process last looked.
    """

    def __init__(self, folder: Path, api: FarmApi, clock: Clock, *, limit_bytes: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        sweep_temporaries(folder)
        self._folder = folder
        self._api = api
        self._clock = clock
        self._limit_bytes = limit_bytes
        self._verified: set[Digest] = set()
        self._lock_by_digest: defaultdict[Digest, asyncio.Lock] = defaultdict(asyncio.Lock)

    def distrust(self, digests: Iterable[Digest]) -> None:
        """Have files looked at again before `fetch` names them: one of them was found damaged."""
        self._verified.difference_update(digests)

    async def fetch(self, digest: Digest) -> Path:
        """The path of an artifact's bytes on this host; callers that ask at once share one download.

        Raises:
            FarmTrouble: the farm does not answer, sends other bytes, or has lost what its plan names.
            HostDiskFull: no room.
        """
        path = self._folder / digest
        async with self._lock_by_digest[digest]:
            if not await asyncio.to_thread(self._is_good, path, digest):
                await self._download(path, digest)
                await asyncio.to_thread(self._trim)
            self._verified.add(digest)
            await asyncio.to_thread(self._touch, path)
        return path

    def _is_good(self, path: Path, digest: Digest) -> bool:
        return path.exists() and (digest in self._verified or file_digest(path) == digest)

    async def _download(self, path: Path, digest: Digest) -> None:
        part = path.with_name(path.name + TEMPORARY_SUFFIX)
        try:
            async with asyncio.timeout(FETCH_DEADLINE_S):
                found = await self._receive(part, digest)
        except (NotFound, ArtifactMissing) as error:
            # The farm named it, so that it is missing is nobody's mistake but the farm's.
            raise FarmTrouble(f"the farm has lost artifact {digest[:12]}: {error.message}") from error
        except TimeoutError as error:
            raise FarmTrouble(f"artifact {digest[:12]} took over {FETCH_DEADLINE_S:g} s") from error
        if found != digest:
            raise FarmTrouble(f"the farm sent other bytes ({found[:12]}) for artifact {digest[:12]}")
        await asyncio.to_thread(_settle, part, path)

    async def _receive(self, part: Path, digest: Digest) -> str:
        running = hashlib.sha256()
        with disk_errors_named(part), await asyncio.to_thread(part.open, "wb") as stream:

            def take(chunk: bytes) -> None:
                stream.write(chunk)
                running.update(chunk)

            async with self._api.blob(digest) as chunks:
                async for chunk in chunks:
                    await asyncio.to_thread(take, chunk)
        return running.hexdigest()

    def _touch(self, path: Path) -> None:
        now_s = self._clock.now().timestamp()
        os.utime(path, (now_s, now_s))

    def _trim(self) -> None:
        room_bytes = self._limit_bytes
        in_use_since = self._clock.now().timestamp() - IN_USE_S
        files = [(path.stat(), path) for path in self._folder.iterdir() if path.suffix != TEMPORARY_SUFFIX]
        for state, path in sorted(files, key=lambda file: file[0].st_mtime, reverse=True):
            room_bytes -= state.st_size
            if room_bytes < 0 and state.st_mtime < in_use_since:
                path.unlink(missing_ok=True)


def file_digest(path: Path) -> Digest:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return Digest(hashlib.file_digest(stream, "sha256").hexdigest())


def _settle(part: Path, path: Path) -> None:
    with disk_errors_named(path):
        descriptor = os.open(part, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        part.replace(path)
        sync_folder(path.parent)
