"""How backups lie in a folder: one folder each, and the artifacts of all of them, each once.

    TARGET/artifacts/ab/ab12...                the files of all backups, by digest
    TARGET/2026-11-20T19-30-12Z/farm.sqlite3   the database at that moment
    TARGET/2026-11-20T19-30-12Z/manifest.json
    TARGET/.2026-11-21T...                     one that was interrupted, or is being made

A backup gets its name when it is whole, and not before.
"""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from pydantic import TypeAdapter, ValidationError

from farm.blobs.copy import disk_fault, file_digest, make_folder, translated_disk_errors
from farm.core.errors import BackupDamaged, Conflict, InvalidInput
from farm.core.operations.backup import BACKUP_FORMAT, BackupManifest

ARTIFACTS, DATABASE, MANIFEST = "artifacts", "farm.sqlite3", "manifest.json"
_LOCK = ".lock"
_MANIFEST = TypeAdapter(BackupManifest)


def write_manifest(folder: Path, manifest: BackupManifest) -> None:
    """Put the manifest into a backup's folder."""
    (folder / MANIFEST).write_bytes(_MANIFEST.dump_json(manifest, indent=2) + b"\n")


def find_backup(source: Path) -> Path:
    """The backup that is meant: the folder of one, or the latest of a folder of several.

    Raises:
        InvalidInput: there is none.
    """
    if (source / MANIFEST).is_file():
        return source
    backups = sorted(path.parent for path in source.glob(f"[!.]*/{MANIFEST}"))
    if not backups:
        hint = "a folder whose name begins with a dot was interrupted" if list(source.glob(".2*")) else None
        raise InvalidInput(
            f"{source} is no backup, and holds none", hint=hint or "`farm admin backup FOLDER` makes one"
        )
    return backups[-1]


def read_manifest(backup: Path) -> BackupManifest:
    """What a backup says of itself.

    Raises:
        BackupDamaged: it says nothing that makes sense.
        InvalidInput: a newer release made it.
    """
    try:
        manifest = _MANIFEST.validate_json((backup / MANIFEST).read_bytes())
    except ValidationError as error:
        raise BackupDamaged(f"the manifest of {backup} cannot be read") from error
    if manifest.format > BACKUP_FORMAT:
        raise InvalidInput(
            f"{backup} was made by a newer release ({manifest.farm_version})",
            hint="restore it with that release, or a newer one",
        )
    return manifest


def check_database(backup: Path, manifest: BackupManifest) -> None:
    """Compare the backup's database with its manifest, byte by byte.

    Raises:
        BackupDamaged: it is not what was written.
    """
    path = backup / DATABASE
    if not path.is_file() or path.stat().st_size != manifest.database_bytes:
        raise BackupDamaged(f"{path} does not have the {manifest.database_bytes} bytes that were written")
    if (actual := file_digest(path)) != manifest.database_digest:
        raise BackupDamaged(f"{path} has digest {actual}, its manifest says {manifest.database_digest}")


def artifacts_of(backup: Path) -> Path:
    """Where the artifacts of a backup are."""
    return backup.parent / ARTIFACTS


@contextmanager
def staging_folder(target: Path, name: str) -> Iterator[Path]:
    """A folder to make a backup in; it gets its name at the end, or goes again.

    What an earlier one left that was interrupted is removed first.

    Raises:
        Conflict: another backup into the same folder is under way, or has this name.
        FarmFault: the folder cannot be written; a full disk is FarmDiskFull.
    """
    with translated_disk_errors(target), _exclusive_lock(target):
        if (target / name).exists():
            raise Conflict(f"there is a backup {target / name}", hint="wait a second, and try again")
        for left in target.glob(".2*"):
            shutil.rmtree(left)
        draft = target / f".{name}"
        draft.mkdir()
        try:
            yield draft
            draft.replace(target / name)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _exclusive_lock(target: Path) -> Iterator[None]:
    make_folder(target)
    with _lock_file(target) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Conflict(
                f"another backup into {target} is under way", hint="wait until it has ended"
            ) from error
        yield


def _lock_file(target: Path) -> TextIO:
    try:
        return (target / _LOCK).open("w")
    except FileNotFoundError as error:
        # The folder is there, and takes no files: /proc says it in these words.
        raise disk_fault(target, error) from error
