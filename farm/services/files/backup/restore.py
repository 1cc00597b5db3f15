"""Restore of a backup into an empty database of either kind, so that agents can continue from there.

A new epoch of the database begins, without the end of its history.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from farm.blobs.copy import (
    artifact_path,
    copy_durably,
    has_digest,
    make_folder,
    put_artifact_file,
    sync_file,
    translated_disk_errors,
)
from farm.blobs.owner import set_owner
from farm.clock import Clock
from farm.core.base.ids import Digest
from farm.core.devices.host_state import SessionState
from farm.core.errors import BackupDamaged, Conflict
from farm.core.operations.backup import BackupManifest
from farm.core.operations.event import FarmEvent
from farm.database import sequences
from farm.database.engine import disable_idle_timeout, exclude_other_writers, opened_engine, sqlite_url
from farm.database.errors import transient_errors_as_busy
from farm.database.migrate import check_known, schema_state, upgrade
from farm.database.tables import alarms, incidents, jobs, leader_leases, matrices
from farm.database.transaction import Tx, bind_tx
from farm.services.files.backup.backup import ARTIFACTS, DATABASE, check_database, read_manifest
from farm.store.devices.transitions import raise_all_fences
from farm.store.files.artifacts import expire_artifacts, stored_artifacts
from farm.store.hosts import hosts
from farm.store.operations import database_epochs
from farm.store.operations.database_copy import Progress, copy_rows, count_rows, has_rows, unknown_tables
from farm.store.operations.database_epochs import DatabaseEpoch
from farm.store.operations.events import record_event

_MOVE_AWAY_HINT = "move it away first: a restore never writes over a database"
_CREATE_ANOTHER_HINT = "create another one, and name that"
#: The least ids and fencing tokens to skip that agents quote: some were given after the backup was made.
_SKIPPED_IDS = 1_000_000
#: Further ones for each second since then, so that two restores of one backup never give the same ones.
_SKIPPED_IDS_PER_S = 10
#: Tables whose ids people type, and no agent acts on. An id that is given twice changes no result, but who
#: noted it is shown another object. So they skip as many as were probably given since the backup.
_NUMBERED_FOR_PEOPLE = frozenset({matrices.name, jobs.name, alarms.name, incidents.name})
_SKIPPED_NUMBERS = 100
#: A busy farm takes a matrix a minute.
_SKIPPED_NUMBERS_PER_S = 1 / 60
#: A backup usually has most of what was ever submitted; a matrix has many jobs.
_SKIPPED_SHARE = 1 / 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """The result of a restore."""

    epoch: DatabaseEpoch
    rows: int
    artifacts: int
    #: Of artifacts that the backup does not have, or has damaged: they are marked as expired.
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
    """Restore a backup completely, or leave the database as empty as before.

    Args:
        backup: its folder.
        url: an empty database, which no farm is using.
        artifacts: the farm's folder of artifacts, from then on this database's; it may have some already.
        clock: the time.
        actor: the person who restores.
        progress: called with a table or `artifact files`, and the number copied so far.

    Raises:
        BackupDamaged: the manifest or the database of the backup differs from what was written.
        Conflict: the database is not empty.
        SchemaMismatch: the backup or the database is of a newer release.
        FarmFault: a folder cannot be written; a full disk is FarmDiskFull, a server that goes away FarmBusy.
    """
    manifest = read_manifest(backup)
    check_database(backup, manifest)
    with opened_engine(url) as target:
        check_empty(target)
        with _staging_copy(backup, target, artifacts) as staged:
            _check_rows(staged, manifest)
            present, missing = _restore_artifacts(staged, backup.parent / ARTIFACTS, artifacts, progress)
            finish = partial(
                bind_tx(_finish, now=clock.now(), actor=actor), manifest=manifest, missing=missing
            )
            epoch, rows = _fill_target(staged, target, finish, progress)
    set_owner(artifacts, epoch.epoch)
    return RestoreResult(epoch=epoch, rows=rows, artifacts=present, missing=len(missing))


@transient_errors_as_busy()
def check_empty(target: Engine) -> None:
    """Refuse a database that is not empty; nothing is changed.

    Raises:
        Conflict: it is not empty, or of another program.
        SchemaMismatch: it is of a newer release.
    """
    if target.dialect.name == "sqlite":
        # A write-ahead log or journal without its database would be applied to the new one.
        existing = [path for path in _files_of(_path_of(target)) if path.exists()]
        if existing:
            raise Conflict(f"there is a database already: {existing[0]}", hint=_MOVE_AWAY_HINT)
        return
    with target.connect() as connection:
        if strange := unknown_tables(connection):
            raise Conflict(
                f"another application owns the database: it has a table {strange[0]}",
                hint=_CREATE_ANOTHER_HINT,
            )
        check_known(schema_state(connection))
        if has_rows(connection):
            raise Conflict("the database is not empty", hint=_CREATE_ANOTHER_HINT)


def _finish(tx: Tx, *, manifest: BackupManifest, missing: list[Digest]) -> DatabaseEpoch:
    """Change restored rows so that a farm may continue with them."""
    expire_artifacts(tx, missing, cause="the backup has no intact file of it")
    cause = f"restored from the backup of {manifest.made_at:%Y-%m-%d %H:%M:%S} UTC"
    return begin_epoch(tx, cause=cause, forgot_since=manifest.made_at)


@contextmanager
def _staging_copy(backup: Path, target: Engine, artifacts: Path) -> Iterator[Engine]:
    """Yield a copy of the backup's database, migrated to this release's schema; the backup stays unchanged.

    It is on the disk where it is needed, under a name that no farm uses.
    """
    folder = _path_of(target).parent if target.dialect.name == "sqlite" else artifacts.parent
    path = folder / ".restoring.sqlite3"
    with translated_disk_errors(folder):
        make_folder(folder)
        _remove(path)
        try:
            copy_durably(backup / DATABASE, path)
            with opened_engine(sqlite_url(path)) as engine:
                upgrade(engine)
                yield engine
        finally:
            _remove(path)


def _check_rows(staged: Engine, manifest: BackupManifest) -> None:
    with staged.connect() as connection:
        row_counts = count_rows(connection)
    # Tables that this release no longer has are not counted.
    incomplete = [name for name, count in manifest.rows.items() if row_counts.get(name, count) != count]
    if incomplete:
        raise BackupDamaged(f"the backup's database has not all rows of {', '.join(incomplete)}")


def _restore_artifacts(
    staged: Engine, source: Path, target: Path, progress: Progress
) -> tuple[int, list[Digest]]:
    """Restore the artifacts; return how many there are, and those without an intact file."""
    missing: list[Digest] = []
    with staged.connect() as connection:
        stored = stored_artifacts(connection)
    for count, artifact in enumerate(stored, start=1):
        if not _restore_artifact(source, target, artifact.digest):
            missing.append(artifact.digest)
        progress("artifact files", count)
    return len(stored) - len(missing), missing


def _restore_artifact(source: Path, target: Path, digest: Digest) -> bool:
    """Restore one artifact; False if the backup does not have it, or has it damaged."""
    there = artifact_path(target, digest)
    try:
        if has_digest(there, digest):
            return True
        there.unlink()
    except FileNotFoundError:
        pass
    try:
        return put_artifact_file(artifact_path(source, digest), there, digest)
    except FileNotFoundError:
        return False


def _fill_target(
    staged: Engine, target: Engine, finish: Callable[[Connection], DatabaseEpoch], progress: Progress
) -> tuple[DatabaseEpoch, int]:
    """Fill the target in one transaction; return the new epoch and the number of restored rows."""
    if target.dialect.name == "sqlite":
        with staged.connect().execution_options(farm_writes=True) as connection, connection.begin():
            rows = sum(count_rows(connection).values())
            epoch = finish(connection)
        # Disposing of the engine writes all of the write-ahead log into the file.
        staged.dispose()
        sync_file(_path_of(staged))
        _path_of(staged).rename(_path_of(target))
        sync_file(_path_of(target).parent)
        return epoch, rows
    upgrade(target)
    with (
        staged.connect() as source,
        # There is no other writer, so nothing needs to be serialized.
        target.connect().execution_options(farm_writes=True, isolation_level="READ COMMITTED") as connection,
        connection.begin(),
    ):
        disable_idle_timeout(connection)
        exclude_other_writers(connection)
        if has_rows(connection):
            raise Conflict("another process began to use the database", hint="stop the farm that uses it")
        rows = sum(copy_rows(source, connection, progress).values())
        epoch = finish(connection)
        connection.exec_driver_sql("ANALYZE")
    return epoch, rows


def _path_of(engine: Engine) -> Path:
    assert engine.url.database is not None
    return Path(engine.url.database)


def _remove(path: Path) -> None:
    for file in _files_of(path):
        file.unlink(missing_ok=True)


def _files_of(path: Path) -> list[Path]:
    """Return an SQLite file and the files that may be beside it."""
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]


def begin_epoch(tx: Tx, *, cause: str, forgot_since: datetime) -> DatabaseEpoch:
    """Begin an epoch of a database that was restored to an earlier state.

    Every agent opens a new session and reports its attempts. Numbers and tokens that may have been given
    since then are skipped. Every device is cleaned up before it gets work, because a run may be active there
    that this database does not know.

    Args:
        tx: of a database that no farm is using.
        cause: the reason, for people.
        forgot_since: the database does not have what happened after this moment.
    """
    forgotten_s = max(0.0, (tx.now - forgot_since).total_seconds())
    sequences.skip_sequence_numbers(tx.connection, partial(_skipped, forgotten_s=forgotten_s))
    epoch = database_epochs.add_epoch(tx, cause=cause)
    record_event(tx, FarmEvent.DATABASE_EPOCH_BEGUN, epoch.epoch, cause=cause)
    # Not closed: runs on the devices continue if their agents report them.
    for session in hosts.sessions_in_state(tx.connection, SessionState.LIVE):
        hosts.move_session(tx.by("farm"), session, SessionState.SILENT, cause=cause)
    raise_all_fences(tx, _skipped_ids(forgotten_s), cause=cause)
    tx.connection.execute(sa.delete(leader_leases))
    return epoch


def _skipped(table: sa.Table, last: int, *, forgotten_s: float) -> int:
    if table.name not in _NUMBERED_FOR_PEOPLE:
        return _skipped_ids(forgotten_s)
    return _SKIPPED_NUMBERS + int(_SKIPPED_SHARE * last + _SKIPPED_NUMBERS_PER_S * forgotten_s)


def _skipped_ids(forgotten_s: float) -> int:
    return _SKIPPED_IDS + int(_SKIPPED_IDS_PER_S * forgotten_s)
