"""Putting a backup into an empty database of either kind, so that agents can go on from there."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy.engine import Connection, Engine

from farm.blobs.copy import (
    artifact_path,
    copy_durably,
    file_digest,
    make_folder,
    put_artifact_file,
    sync_file,
    translated_disk_errors,
)
from farm.clock import Clock
from farm.core.base.ids import Digest
from farm.core.errors import BackupDamaged, Conflict
from farm.core.operations.backup import BackupManifest
from farm.database.engine import create_engine, disable_idle_timeout, exclude_other_writers, sqlite_url
from farm.database.errors import transient_errors_as_busy
from farm.database.migrate import upgrade
from farm.database.schema_state import check_known, schema_state
from farm.services.files.artifacts import FILE_IS_GONE
from farm.services.files.backup.database_epochs import begin_epoch
from farm.services.files.backup.layout import DATABASE, artifacts_of, check_database, read_manifest
from farm.store.files.artifacts import expire_artifacts, stored_artifacts
from farm.store.operations.database_copy import Progress, copy_rows, count_rows, has_rows, unknown_tables
from farm.store.operations.database_epochs import DatabaseEpoch

_MOVE_AWAY_HINT = "move it away first: a restore never writes over a database"
_CREATE_ANOTHER_HINT = "create another one, and name that"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """What a restore came to."""

    epoch: DatabaseEpoch
    rows: int
    artifacts: int
    #: Of artifacts the backup does not have: they are marked as expired.
    missing: int


@transient_errors_as_busy()
def restore_backup(
    backup: Path,
    url: str,
    artifacts: Path,
    clock: Clock,
    *,
    actor: str,
    progress: Progress = lambda what, count: None,
) -> RestoreResult:
    """Restore a backup. Either all of it is there in the end, or the database is as empty as before.

    Args:
        backup: its folder.
        url: an empty database, which no farm is using.
        artifacts: the farm's folder of them; what is there may stay.
        clock: the time.
        actor: who does it.
        progress: told what is copied with how many so far.

    Raises:
        BackupDamaged: something is not what it was when the backup was made.
        Conflict: the database is not empty.
        SchemaMismatch: the backup, or the database, is a newer release's.
        FarmFault: a place cannot be written; a full disk is FarmDiskFull, a server that goes away FarmBusy.
    """
    manifest = read_manifest(backup)
    check_database(backup, manifest)
    with _open_target(url) as target:
        check_empty(target)
        with _staging_copy(backup, target, artifacts) as staged:
            _check_rows(staged, manifest)
            present, missing = _restore_artifacts(staged, artifacts_of(backup), artifacts, progress)
            work = _RestoredRows(manifest=manifest, missing=missing, now=clock.now(), actor=actor)
            epoch, rows = _fill_target(staged, target, work, progress)
    return RestoreResult(epoch=epoch, rows=rows, artifacts=present, missing=len(missing))


@transient_errors_as_busy()
def check_empty(target: Engine) -> None:
    """Refuse a database that has anything in it; it stays as it is.

    Raises:
        Conflict: so it has.
        SchemaMismatch: it is a newer release's.
    """
    if target.dialect.name == "sqlite":
        # What is left of a database beside its file would be taken for part of the new one.
        left = [each for each in _files_of(_path_of(target)) if each.exists()]
        if left:
            raise Conflict(f"there is a database already: {left[0]}", hint=_MOVE_AWAY_HINT)
        return
    with target.connect() as connection:
        if strange := unknown_tables(connection):
            raise Conflict(
                f"the database is somebody else's: it has a table {strange[0]}", hint=_CREATE_ANOTHER_HINT
            )
        check_known(schema_state(connection))
        if has_rows(connection):
            raise Conflict("the database is not empty", hint=_CREATE_ANOTHER_HINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RestoredRows:
    """What has to be done to a copy of the rows before a farm may go on with them."""

    manifest: BackupManifest
    missing: list[Digest]
    now: datetime
    actor: str

    def finish(self, connection: Connection) -> DatabaseEpoch:
        expire_artifacts(connection, self.missing, now=self.now, cause=FILE_IS_GONE)
        made_at = self.manifest.made_at
        return begin_epoch(
            connection,
            cause=f"restored from the backup of {made_at:%Y-%m-%d %H:%M:%S} UTC",
            forgot_since=made_at,
            now=self.now,
            actor=self.actor,
        )


@contextmanager
def _open_target(url: str) -> Iterator[Engine]:
    engine = create_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _staging_copy(backup: Path, target: Engine, artifacts: Path) -> Iterator[Engine]:
    """A copy of the backup's database with this release's schema; the backup itself stays as it is.

    It is made where it will be needed, under a name that nobody takes for a database in use.
    """
    folder = _path_of(target).parent if target.dialect.name == "sqlite" else artifacts.parent
    path = folder / ".restoring.sqlite3"
    with translated_disk_errors(folder):
        make_folder(folder)
        _remove(path)
        try:
            copy_durably(backup / DATABASE, path)
            with _open_target(sqlite_url(path)) as engine:
                upgrade(engine)
                yield engine
        finally:
            _remove(path)


def _check_rows(staged: Engine, manifest: BackupManifest) -> None:
    with staged.connect() as connection:
        found = count_rows(connection)
    # A newer release may have further tables; that a row is missing from one of then it may not.
    short = [name for name, count in manifest.rows.items() if found.get(name, count) != count]
    if short:
        raise BackupDamaged(f"the backup's database has not all rows of {', '.join(short)}")


def _restore_artifacts(
    staged: Engine, source: Path, target: Path, progress: Progress
) -> tuple[int, list[Digest]]:
    """How many are there now, and which the backup does not have."""
    missing: list[Digest] = []
    with staged.connect() as connection:
        kept = stored_artifacts(connection)
    for count, artifact in enumerate(kept, start=1):
        if not _restore_artifact(source, target, artifact.digest):
            missing.append(artifact.digest)
        progress("artifact files", count)
    return len(kept) - len(missing), missing


def _restore_artifact(source: Path, target: Path, digest: Digest) -> bool:
    here, there = artifact_path(source, digest), artifact_path(target, digest)
    if not there.exists():
        try:
            put_artifact_file(here, there)
        except FileNotFoundError:
            return False
    if (actual := file_digest(there)) != digest:
        raise BackupDamaged(
            f"artifact {digest} has digest {actual} in {there}",
            hint=f"remove that file; if the one in {here} is the same, restore another backup",
        )
    return True


def _fill_target(
    staged: Engine, target: Engine, work: _RestoredRows, progress: Progress
) -> tuple[DatabaseEpoch, int]:
    """Have everything in the target at once; the new epoch, and how many rows came from the backup."""
    if target.dialect.name == "sqlite":
        with staged.connect().execution_options(farm_writes=True) as connection, connection.begin():
            rows = sum(count_rows(connection).values())
            epoch = work.finish(connection)
        _put_in_place(staged, _path_of(target))
        return epoch, rows
    upgrade(target)
    with (
        staged.connect() as source,
        # Nobody else writes, so nothing has to be put in an order.
        target.connect().execution_options(farm_writes=True, isolation_level="READ COMMITTED") as connection,
        connection.begin(),
    ):
        disable_idle_timeout(connection)
        exclude_other_writers(connection)
        if has_rows(connection):
            raise Conflict("somebody began to use the database", hint="stop the farm that uses it")
        rows = sum(copy_rows(source, connection, progress).values())
        epoch = work.finish(connection)
        connection.exec_driver_sql("ANALYZE")
    return epoch, rows


def _put_in_place(staged: Engine, path: Path) -> None:
    # Closing moves all of the write-ahead log into the file.
    staged.dispose()
    source = _path_of(staged)
    sync_file(source)
    source.rename(path)
    sync_file(path.parent)


def _path_of(engine: Engine) -> Path:
    assert engine.url.database is not None
    return Path(engine.url.database)


def _remove(path: Path) -> None:
    for each in _files_of(path):
        each.unlink(missing_ok=True)


def _files_of(path: Path) -> list[Path]:
    """An SQLite file, and what there may be beside it."""
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]
