"""Backup of a farm in use: one moment of its database, and every artifact of that moment.

    TARGET/artifacts/ab/ab12...                the files of all backups, by digest
    TARGET/2026-11-20T19-30-12Z/farm.sqlite3   the database at that moment
    TARGET/2026-11-20T19-30-12Z/manifest.json
    TARGET/.2026-11-21T...                     an interrupted backup, or one in progress

A backup gets its name when it is complete, and not before.
"""

import fcntl
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from farm import __version__
from farm.blobs.copy import (
    artifact_path,
    disk_fault,
    file_digest,
    has_digest,
    make_folder,
    put_artifact_file,
    sync_file,
    translated_disk_errors,
)
from farm.clock import Clock
from farm.core.base.ids import Digest
from farm.core.errors import BackupDamaged, Conflict, InvalidInput
from farm.core.operations.backup import BACKUP_FORMAT, BackupManifest
from farm.database.engine import Database, opened_engine, sqlite_url
from farm.database.migrate import schema_state
from farm.store.files.artifacts import Artifact, stored_artifacts
from farm.store.operations.database_copy import (
    Progress,
    count_rows,
    fold_write_ahead_log,
    stored_digests,
    write_snapshot,
)
from farm.store.operations.database_epochs import current_epoch

ARTIFACTS, DATABASE, MANIFEST = "artifacts", "farm.sqlite3", "manifest.json"
_LOCK = ".lock"
_MANIFEST = TypeAdapter(BackupManifest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A backup that was made."""

    folder: Path
    manifest: BackupManifest


def make_backup(
    database: Database,
    artifacts: Path,
    target: Path,
    clock: Clock,
    *,
    with_artifacts: bool = True,
    progress: Progress = lambda what, count: None,
) -> Backup:
    """Make a backup in a folder, beside existing ones; artifacts that the folder has are not copied again.

    Args:
        database: the farm's; it may be in use.
        artifacts: the farm's folder of artifacts.
        target: the folder of backups; created if missing.
        clock: the time.
        with_artifacts: False for the database alone.
        progress: called with a table or `artifact files`, and the number copied so far.

    Raises:
        SchemaMismatch: the database is not of this release.
        Conflict: another backup into the folder is in progress.
        FarmFault: the folder cannot be written; a full disk is FarmDiskFull.
    """
    made_at = clock.now().astimezone(UTC)
    name = f"{made_at:%Y-%m-%dT%H-%M-%SZ}"
    with _staging_folder(target, name) as draft:
        path = draft / DATABASE
        write_snapshot(database.engine, path, progress)
        manifest, stored = _inspect_copy(path, made_at, database.engine.dialect.name)
        fold_write_ahead_log(path)
        manifest = replace(manifest, database_digest=file_digest(path), database_bytes=path.stat().st_size)
        if with_artifacts:
            manifest = _copy_artifacts(manifest, stored, artifacts, target / ARTIFACTS, progress)
        (draft / MANIFEST).write_bytes(_MANIFEST.dump_json(manifest, indent=2) + b"\n")
        for entry in (path, draft / MANIFEST, draft):
            sync_file(entry)
    sync_file(target)
    return Backup(folder=target / name, manifest=manifest)


def _inspect_copy(path: Path, made_at: datetime, source: str) -> tuple[BackupManifest, list[Artifact]]:
    """Return the manifest and the artifacts of the copy, which is what will be restored."""
    with opened_engine(sqlite_url(path)) as engine, engine.connect() as connection:
        revision = schema_state(connection).revision
        assert revision is not None
        manifest = BackupManifest(
            farm_version=__version__,
            made_at=made_at,
            source=source,
            schema_revision=revision,
            epoch=current_epoch(connection).epoch,
            rows=count_rows(connection),
        )
        return manifest, stored_artifacts(connection)


def _copy_artifacts(
    manifest: BackupManifest, stored: Iterable[Artifact], source: Path, target: Path, progress: Progress
) -> BackupManifest:
    """Copy the artifacts after the database: they all existed at its moment. New copies are verified."""
    missing: list[Digest] = []
    damaged: list[Digest] = []
    count, size_bytes = 0, 0
    for artifact in stored:
        digest = artifact.digest
        try:
            is_intact = put_artifact_file(
                artifact_path(source, digest), artifact_path(target, digest), digest
            )
        except FileNotFoundError:
            missing.append(digest)
            continue
        if not is_intact:
            damaged.append(digest)
            continue
        count, size_bytes = count + 1, size_bytes + artifact.size_bytes
        progress("artifact files", count)
    return replace(
        manifest,
        with_artifacts=True,
        artifacts=count,
        artifact_bytes=size_bytes,
        missing=tuple(missing),
        damaged=tuple(damaged),
    )


def find_backup(source: Path) -> Path:
    """Return the folder of a backup: the given one, or the latest in a folder of several.

    Raises:
        InvalidInput: there is no backup.
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
    """Return the manifest of a backup.

    Raises:
        BackupDamaged: the manifest cannot be read.
        InvalidInput: a newer release made the backup.
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
    """Compare the size and the digest of a backup's database with its manifest.

    Raises:
        BackupDamaged: they differ.
    """
    path = backup / DATABASE
    if not path.is_file() or path.stat().st_size != manifest.database_bytes:
        raise BackupDamaged(f"{path} does not have the {manifest.database_bytes} bytes that were written")
    if (actual := file_digest(path)) != manifest.database_digest:
        raise BackupDamaged(f"{path} has digest {actual}, its manifest says {manifest.database_digest}")


def verify_backup(
    backup: Path, *, progress: Progress = lambda what, count: None
) -> tuple[BackupManifest, list[Path]]:
    """Read every byte of a backup; return its manifest and the damaged or missing files of its artifacts.

    Args:
        backup: its folder; nothing in it is changed.
        progress: called with `artifact files`, and the number read so far.

    Raises:
        BackupDamaged: its manifest or its database is damaged.
    """
    manifest = read_manifest(backup)
    check_database(backup, manifest)
    absent = {*manifest.missing, *manifest.damaged}
    damaged: list[Path] = []
    digests = stored_digests(backup / DATABASE) if manifest.with_artifacts else []
    for count, digest in enumerate(digests, start=1):
        path = artifact_path(backup.parent / ARTIFACTS, digest)
        try:
            is_intact = digest in absent or has_digest(path, digest)
        except FileNotFoundError:
            is_intact = False
        if not is_intact:
            damaged.append(path)
        progress("artifact files", count)
    return manifest, damaged


@contextmanager
def _staging_folder(target: Path, name: str) -> Iterator[Path]:
    """Yield a folder to make a backup in; it is renamed at the end, and removed after an error.

    The rest of an interrupted backup is removed first.

    Raises:
        Conflict: another backup into the same folder is in progress, or has this name.
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
    try:
        lock_file = (target / _LOCK).open("w")
    except FileNotFoundError as error:
        # The folder exists, but takes no files: /proc reports it as this error.
        raise disk_fault(target, error) from error
    with lock_file as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Conflict(
                f"another backup into {target} is under way", hint="wait until it has ended"
            ) from error
        yield
