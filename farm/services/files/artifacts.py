"""Keeps the farm's files and their rows in step, whoever dies between a change of one and of the other.

A file goes in two steps: its row is marked expired first, and only then, in a transaction that still finds it
so, the file is set aside and removed. An upload puts the file in place first and then, in one transaction,
finds it there and marks its row as kept. So a kept row has its file, whatever the order of the two.
"""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.blobs.disk import DiskBlobs
from farm.core.base.ids import Digest
from farm.core.errors import ArtifactExpired, ArtifactMissing, FarmBusy, NotFound
from farm.store.files.artifacts import (
    Artifact,
    expire_artifacts,
    find_artifact,
    put_artifact,
    stored_artifacts,
)

FILE_IS_GONE = "its file is gone from the disk"


def record_upload(
    connection: Connection, blobs: DiskBlobs, digest: Digest, size_bytes: int, *, now: datetime
) -> None:
    """Record an upload whose file is in place.

    Raises:
        FarmBusy: a sweep removed an earlier copy at this moment, and this one with it.
    """
    if blobs.size_bytes(digest) is None and not blobs.restore(digest):
        raise FarmBusy(
            f"artifact {digest} was removed while it was sent again",
            hint="send it once more: nothing else waits",
        )
    put_artifact(connection, digest, size_bytes, now=now)


def get_artifact(connection: Connection, digest: Digest) -> Artifact:
    """An artifact whose bytes the farm has.

    Raises:
        NotFound: it never had them.
        ArtifactExpired: it let them go.
    """
    artifact = find_artifact(connection, digest)
    if artifact is None:
        raise NotFound(f"there is no artifact {digest}")
    if artifact.expired_at is not None:
        raise ArtifactExpired(f"artifact {digest} expired at {artifact.expired_at:%Y-%m-%d %H:%M} UTC")
    return artifact


def uploaded_size(connection: Connection, digest: Digest, *, called: str) -> int:
    """The bytes of a file that is about to be referred to.

    Args:
        connection: the database.
        digest: its digest.
        called: what it is, for errors: `the file of resnet18/float32/lite`.

    Raises:
        ArtifactMissing: the farm does not have it, or has it no more.
    """
    artifact = find_artifact(connection, digest)
    if artifact is None:
        raise ArtifactMissing(f"{called}, {digest}, was not uploaded")
    if artifact.expired_at is not None:
        raise ArtifactMissing(f"{called}, {digest}, expired and must be uploaded again")
    return artifact.size_bytes


def stage_unreferenced(connection: Connection, blobs: DiskBlobs, digests: Collection[Digest]) -> list[Digest]:
    """Take files out of their places that no row keeps; `blobs` removes them when nobody waits for it."""
    kept = {artifact.digest for artifact in stored_artifacts(connection, digests)}
    return [digest for digest in digests if digest not in kept and blobs.set_aside(digest)]


def expire_missing(
    connection: Connection, blobs: DiskBlobs, digests: Collection[Digest], *, now: datetime
) -> list[Digest]:
    """Mark artifacts as expired whose files somebody else removed."""
    lost = [digest for digest in digests if blobs.size_bytes(digest) is None]
    return expire_artifacts(connection, lost, now=now, cause=FILE_IS_GONE)
