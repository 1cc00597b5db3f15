"""Artifacts between folders: linked on one disk, copied between two, never incomplete."""

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from farm.core.base.ids import Digest, is_digest
from farm.core.errors import FarmDiskFull, FarmFault

_CHUNK_BYTES = 1024 * 1024


def artifact_path(folder: Path, digest: Digest) -> Path:
    """Return the path of an artifact in a folder of artifacts.

    Raises:
        FarmFault: the text is no digest, and could lead anywhere.
    """
    if not is_digest(digest):
        raise FarmFault(
            f"{digest[:100]!r} is no digest of an artifact",
            hint="something else than a farm wrote to this database; restore a backup from before that",
        )
    return folder / digest[:2] / digest


def put_artifact_file(source: Path, target: Path, digest: Digest) -> bool:
    """Put an immutable file at another place, too; an existing file of the same size stays, unread.

    False when the bytes of the source have another digest: nothing is put.

    Raises:
        FileNotFoundError: there is no such file.
        FarmFault: it cannot be written; a full disk is FarmDiskFull.
    """
    size_bytes = source.stat().st_size
    if target.exists() and target.stat().st_size == size_bytes:
        return True
    with translated_disk_errors(target.parent):
        make_folder(target.parent)
        draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            _link_or_copy(source, draft)
            if not has_digest(draft, digest):
                return False
            draft.replace(target)
            return True
        finally:
            draft.unlink(missing_ok=True)


def file_digest(path: Path) -> Digest:
    """Return the SHA-256 of a file's bytes."""
    sha256 = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            sha256.update(chunk)
    return Digest(sha256.hexdigest())


def has_digest(path: Path, digest: Digest) -> bool:
    """Return whether a file can be read and its bytes have a digest; raises FileNotFoundError."""
    try:
        return file_digest(path) == digest
    except OSError as error:
        # A broken block of the disk: its bytes are lost as well.
        if error.errno != errno.EIO:
            raise
        return False


def copy_durably(source: Path, target: Path) -> None:
    """Copy a file; on return its bytes are on the disk."""
    shutil.copyfile(source, target)
    sync_file(target)


def sync_file(path: Path) -> None:
    """Sync a file, or a folder's names, so that they survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def translated_disk_errors(folder: Path) -> Iterator[None]:
    """Translate errors of the disk into those of the farm; a missing file is left to the caller."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise disk_fault(folder, error) from error


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents.

    Raises:
        FarmFault: it cannot be made, for one because the file system takes no folders.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_fault(folder, error) from error


def disk_fault(folder: Path, error: OSError) -> FarmFault:
    """Return the error for a failed write into a folder."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    kind = FarmDiskFull if full else FarmFault
    return kind(
        f"{folder} cannot be written: {error.strerror or error}",
        hint="free space there, or choose another place",
    )


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        # Another disk, or one without links, or with too many links of this file.
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
            raise
        copy_durably(source, target)
