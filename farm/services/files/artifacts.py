"""Keep the farm's files and their rows in step, even if a process dies between the changes of both.

A file goes in three steps: its row is marked expired first; only then, in a transaction that still finds it
so, the file is moved into the trash; from there it is removed days later. An upload puts the file in place
first and then, in one transaction, finds it there and marks its row as kept. So a kept row has its file,
whatever the order of the two.
"""

from collections.abc import Collection

from sqlalchemy.engine import Connection

from farm.blobs.disk import DiskBlobs
from farm.core.base.ids import Digest
from farm.core.base.units import size_text
from farm.core.errors import ArtifactExpired, ArtifactMissing, FarmBusy, NotFound, QuotaReached
from farm.database.transaction import Tx
from farm.store.files.artifacts import (
    Artifact,
    expire_artifacts,
    find_artifact,
    put_artifact,
    stored_artifacts,
    stored_bytes,
)

FILE_IS_GONE = "its file is gone from the disk"
FILE_IS_DAMAGED = "its file is damaged on the disk"


def record_upload(
    tx: Tx, blobs: DiskBlobs, digest: Digest, size_bytes: int, *, most_bytes: int | None = None
) -> None:
    """Record an upload whose file is in place; what has arrived of others by the actor takes bytes, too.

    Raises:
        QuotaReached: with it, the actor's files take more than `most_bytes`; nothing is recorded.
        FarmBusy: a sweep removed an earlier copy at this moment and the trash had no space for it.
    """
    if blobs.size_bytes(digest) is None and not blobs.restore(digest):
        raise FarmBusy(
            f"artifact {digest} was removed while it was sent again",
            hint="send it once more: nothing else waits",
        )
    # With the new one, which is rolled back: of two uploads at once, the second sees the first.
    if put_artifact(tx, digest, size_bytes) and most_bytes is not None:
        taken_bytes = stored_bytes(tx.connection, tx.actor) + sum(blobs.arriving(tx.actor).values())
        _check_quota(taken_bytes - size_bytes, size_bytes, most_bytes)


def check_quota(
    connection: Connection, blobs: DiskBlobs, digest: Digest, size_bytes: int, *, actor: str, most_bytes: int
) -> None:
    """Check that an upload will fit, before its bytes are read; those that are stored take nothing more.

    What has arrived of other uploads of the actor takes bytes, too.

    Raises:
        QuotaReached: it will not.
    """
    artifact = find_artifact(connection, digest)
    if artifact is None or artifact.expired_at is not None:
        others = (size for other, size in blobs.arriving(actor).items() if other != digest)
        _check_quota(stored_bytes(connection, actor) + sum(others), size_bytes, most_bytes)


def _check_quota(taken_bytes: int, new_bytes: int, most_bytes: int) -> None:
    if taken_bytes + new_bytes > most_bytes:
        raise QuotaReached(
            f"{size_text(new_bytes)} more are too much: the files that you uploaded take"
            f" {size_text(taken_bytes)}, and may take {size_text(most_bytes)}",
            hint="`farm storage files` lists them, and `farm storage remove` frees what no matrix needs;"
            " an operator sets the quota, FARM_STORED_BYTES_PER_PERSON",
        )


def get_artifact(connection: Connection, digest: Digest) -> Artifact:
    """Return an artifact whose bytes the farm has.

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
    """Return the size of a file that is about to be referred to.

    Errors call it `called`: `the file of resnet18/float32/lite`.

    Raises:
        ArtifactMissing: the farm does not have it, or has it no more.
    """
    artifact = find_artifact(connection, digest)
    if artifact is None:
        raise ArtifactMissing(f"{called}, {digest}, was not uploaded")
    if artifact.expired_at is not None:
        raise ArtifactMissing(f"{called}, {digest}, expired and must be uploaded again")
    return artifact.size_bytes


def set_aside_unreferenced(tx: Tx, blobs: DiskBlobs, digests: Collection[Digest]) -> list[Digest]:
    """Move files that no row refers to into the trash."""
    stored = {artifact.digest for artifact in stored_artifacts(tx.connection, digests)}
    return [digest for digest in digests if digest not in stored and blobs.set_aside(digest, tx.now)]


def expire_missing(tx: Tx, blobs: DiskBlobs, digests: Collection[Digest]) -> list[Digest]:
    """Mark artifacts as expired whose files were removed from outside."""
    lost = [digest for digest in digests if blobs.size_bytes(digest) is None]
    return expire_artifacts(tx, lost, cause=FILE_IS_GONE)
