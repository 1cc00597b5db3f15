"""Backing a farm up while it is at work: one moment of its database, and every artifact of that moment."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from farm import __version__
from farm.blobs.copy import artifact_path, file_digest, put_artifact_file, sync_file
from farm.clock import Clock
from farm.core.base.ids import Digest
from farm.core.operations.backup import BackupManifest
from farm.database.engine import Database, create_engine, sqlite_url
from farm.database.schema_state import schema_state
from farm.services.files.backup.layout import ARTIFACTS, DATABASE, MANIFEST, staging_folder, write_manifest
from farm.store.files.artifacts import Artifact, stored_artifacts
from farm.store.operations.database_copy import Progress, count_rows
from farm.store.operations.database_epochs import current_epoch
from farm.store.operations.snapshot import fold_write_ahead_log, write_snapshot


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
    """Make a backup in a folder, beside those that are there; artifacts that it has already cost nothing.

    Args:
        database: the farm's; it may be in use.
        artifacts: the farm's folder of them.
        target: where to; made when missing.
        clock: the time.
        with_artifacts: False for the database alone.
        progress: told what is copied with how many so far.

    Raises:
        SchemaMismatch: the database is not of this release.
        Conflict: another backup into the folder is under way.
        FarmFault: the folder cannot be written; a full disk is FarmDiskFull.
    """
    made_at = clock.now().astimezone(UTC)
    name = f"{made_at:%Y-%m-%dT%H-%M-%SZ}"
    with staging_folder(target, name) as draft:
        path = draft / DATABASE
        write_snapshot(database.engine, path, progress)
        manifest, kept = _inspect_copy(path, made_at, database.engine.dialect.name)
        fold_write_ahead_log(path)
        manifest = replace(manifest, database_digest=file_digest(path), database_bytes=path.stat().st_size)
        if with_artifacts:
            manifest = _copy_artifacts(manifest, kept, artifacts, target / ARTIFACTS, progress)
        write_manifest(draft, manifest)
        for each in (path, draft / MANIFEST, draft):
            sync_file(each)
    sync_file(target)
    return Backup(folder=target / name, manifest=manifest)


def _inspect_copy(path: Path, made_at: datetime, source: str) -> tuple[BackupManifest, list[Artifact]]:
    """What the copy says of itself, which is what will be restored; and its artifacts."""
    engine = create_engine(sqlite_url(path))
    try:
        with engine.connect() as connection:
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
    finally:
        engine.dispose()


def _copy_artifacts(
    manifest: BackupManifest, kept: Iterable[Artifact], source: Path, target: Path, progress: Progress
) -> BackupManifest:
    """After the database, whose artifacts were all there at its moment."""
    missing: list[Digest] = []
    count, size_bytes = 0, 0
    for artifact in kept:
        try:
            put_artifact_file(artifact_path(source, artifact.digest), artifact_path(target, artifact.digest))
        except FileNotFoundError:
            missing.append(artifact.digest)
        else:
            count, size_bytes = count + 1, size_bytes + artifact.size_bytes
            progress("artifact files", count)
    return replace(
        manifest, with_artifacts=True, artifacts=count, artifact_bytes=size_bytes, missing=tuple(missing)
    )
