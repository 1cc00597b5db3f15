"""Verification of stored artifacts: one whose bytes are damaged is expired, so that it can be sent again."""

from collections.abc import Iterator
from hashlib import sha256

import structlog

from farm.blobs.disk import DiskBlobs
from farm.clock import Clock
from farm.core.base.ids import Digest
from farm.database.engine import Database
from farm.database.transaction import Tx, bind_tx
from farm.services.files.artifacts import FILE_IS_DAMAGED
from farm.services.files.builtin_programs import builtin_digests, register_builtin_programs
from farm.services.files.folder_owner import check_sweepable
from farm.store.files.artifacts import expire_artifacts, stored_artifacts

_log = structlog.get_logger(__name__)

_CHUNK_BYTES = 1024 * 1024


def expire_if_damaged(database: Database, blobs: DiskBlobs, clock: Clock, digest: Digest) -> bool:
    """Read an artifact, and expire it, with an event, if its bytes are damaged; return whether they are."""
    if not blobs.is_damaged(digest):
        return False
    if database.write(bind_tx(_expire_damaged, now=clock.now()), blobs, digest):
        _log.warning("artifact_damaged", digest=digest, hint="upload the file again")
    if digest in builtin_digests():
        register_builtin_programs(database, blobs, now=clock.now())
    return True


def _expire_damaged(tx: Tx, blobs: DiskBlobs, digest: Digest) -> bool:
    # Not, if it was sent again since it was read.
    return blobs.set_damaged_aside(digest, tx.now) and bool(
        expire_artifacts(tx, [digest], cause=FILE_IS_DAMAGED)
    )


class Scrubber:
    """Reads all artifacts again and again, a bounded number of bytes whenever called."""

    def __init__(self, database: Database, blobs: DiskBlobs, clock: Clock, *, bytes_per_call: int) -> None:
        self._database = database
        self._blobs = blobs
        self._clock = clock
        self._bytes_per_call = bytes_per_call
        self._reading: Iterator[int] = iter(())

    def __call__(self) -> None:
        """Read on where the last call stopped; a call reads each file once at most."""
        left_bytes = self._bytes_per_call
        for read_bytes in self._reading:
            left_bytes -= read_bytes
            if left_bytes <= 0:
                return
        self._reading = self._read_all()

    def _read_all(self) -> Iterator[int]:
        """Read all artifacts; yield the bytes of each chunk. Each file counts a chunk, however small."""
        self._database.read(check_sweepable, self._blobs.folder)
        for artifact in self._database.read(stored_artifacts):
            hasher = sha256()
            if (file := self._blobs.find(artifact.digest)) is None:
                continue
            with file:
                try:
                    while chunk := file.read(_CHUNK_BYTES):
                        hasher.update(chunk)
                        yield _CHUNK_BYTES
                    is_damaged = hasher.hexdigest() != artifact.digest
                except OSError:
                    is_damaged = True
            if is_damaged:
                expire_if_damaged(self._database, self._blobs, self._clock, artifact.digest)
