"""Actions of `farm admin` on databases and folders, without a running farm, and what they print."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from farm.blobs.owner import find_owner, set_owner
from farm.cli.shell.identity import require_identity
from farm.cli.shell.output import err
from farm.cli.shell.settings import farm_config
from farm.cli.shell.tables import Listing, name, prose
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.base.units import size_text
from farm.core.errors import BackupDamaged, InvalidInput
from farm.core.operations.backup import BackupManifest
from farm.daemon import data_folder_lock, make_data_folder
from farm.database.connect import check_server, display_url, open_database, url_of
from farm.database.engine import Database, opened_engine
from farm.database.migrate import SchemaState, check_newest, schema_state, upgrade
from farm.database.transaction import bind_tx
from farm.file_modes import owner_only_files
from farm.presentation.text import local_time_text, plural
from farm.services.files.backup.backup import Backup, find_backup, make_backup, read_manifest, verify_backup
from farm.services.files.backup.restore import RestoreResult, begin_epoch, check_empty, restore_backup
from farm.store.operations.database_copy import Progress
from farm.store.operations.database_epochs import DatabaseEpoch, list_epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """The parts of a restore, with their database."""

    backup: Path
    manifest: BackupManifest
    config: FarmConfig
    #: Address of the database, without its password.
    place: str


def read_schema(data: Path | None) -> SchemaState:
    """Return the schema of the farm's database; raises InvalidInput if there is none."""
    with _open_existing(data) as database:
        return database.read(schema_state)


def run_migration(data: Path | None) -> SchemaState:
    """Migrate the farm's database to the newest schema.

    Raises:
        InvalidInput: there is no database, or a farm is using it.
        SchemaMismatch: the schema is of a newer release.
    """
    with _open_existing(data) as database, _exclusive_use(farm_config(data_dir=data)):
        upgrade(database.engine)
        return database.read(schema_state)


@owner_only_files()
def run_backup(target: Path, data: Path | None, *, with_artifacts: bool) -> Backup:
    """Make a backup; raises like `make_backup`, and InvalidInput if there is no farm."""
    config = farm_config(data_dir=data)
    with _open_existing(data) as database, _progress("backing up") as progress:
        return make_backup(
            database,
            config.blobs_dir,
            target,
            SystemClock(),
            with_artifacts=with_artifacts,
            progress=progress,
        )


def run_verification(source: Path) -> Backup:
    """Read every byte of a backup.

    Raises:
        InvalidInput: there is no backup.
        BackupDamaged: something of it is damaged.
    """
    folder = find_backup(source)
    with _progress("verifying") as progress:
        manifest, damaged = verify_backup(folder, progress=progress)
    if damaged:
        names = ", ".join(map(str, damaged[:3])) + (" ..." if len(damaged) > 3 else "")
        raise BackupDamaged(
            f"{plural(len(damaged), 'artifact')} damaged or missing: {names}",
            hint="remove the damaged files: the next backup into this folder copies them again",
        )
    return Backup(folder=folder, manifest=manifest)


def read_epochs(data: Path | None) -> list[DatabaseEpoch]:
    """Return the epochs of the farm's database, oldest first."""
    with _open_existing(data) as database:
        database.read(check_newest)
        return database.read(list_epochs)


def start_epoch(data: Path | None, *, cause: str) -> list[DatabaseEpoch]:
    """Begin a new epoch, in which the database has its folder of artifacts; return all epochs, oldest first.

    Raises:
        InvalidInput: there is no farm, or one runs in this folder: ids that it assigns now would belong
            to neither epoch.
    """
    now = SystemClock().now()
    config = farm_config(data_dir=data)
    with _open_existing(data) as database, _exclusive_use(config):
        database.read(check_newest)
        epoch = database.write(
            bind_tx(begin_epoch, now=now, actor=f"user:{require_identity()}"), cause=cause, forgot_since=now
        )
        set_owner(config.blobs_dir, epoch.epoch)
        return database.read(list_epochs)


def plan_restore(source: Path, data: Path | None) -> RestorePlan:
    """Check everything that can be checked before a restore.

    Raises:
        InvalidInput: there is no backup, or the server refuses the connection.
        Conflict: the database is not empty.
    """
    config = farm_config(data_dir=data)
    backup = find_backup(source)
    manifest = read_manifest(backup)
    check_server(config)
    with opened_engine(url_of(config)) as engine:
        check_empty(engine)
    return RestorePlan(backup=backup, manifest=manifest, config=config, place=display_url(config))


@owner_only_files()
def run_restore(plan: RestorePlan) -> RestoreResult:
    """Restore a backup; raises like `restore_backup`, and InvalidInput if a farm runs in the data folder."""
    config = plan.config
    with _exclusive_use(config), _progress("restoring") as progress:
        return restore_backup(
            plan.backup,
            url_of(config),
            config.blobs_dir,
            SystemClock(),
            actor=f"user:{require_identity()}",
            progress=progress,
        )


@contextmanager
def _open_existing(data: Path | None) -> Iterator[Database]:
    config = farm_config(data_dir=data)
    if config.database_url is None and not config.database_path.exists():
        raise InvalidInput(
            f"there is no farm in {config.data_dir}", hint="set its location with --data or FARM_DATABASE_URL"
        )
    check_server(config)
    with closing(open_database(config)) as database:
        yield database


@contextmanager
def _exclusive_use(config: FarmConfig) -> Iterator[None]:
    make_data_folder(config.data_dir)
    with data_folder_lock(config.data_dir):
        yield


@contextmanager
def _progress(activity: str) -> Iterator[Progress]:
    """Show a progress line on a terminal."""
    console = err()
    if not console.is_terminal:
        yield lambda what, count: None
        return
    with console.status(activity) as status:
        yield lambda what, count: status.update(f"{activity}: {count} {what}")


def schema_text(before: SchemaState, after: SchemaState) -> str:
    """Return the schema of the database, or its migration."""
    if before.revision != after.revision:
        return f"migrated from schema {before.revision or 'none'} to {after.revision}"
    if after.is_newest:
        return f"the database has schema {after.revision}, the newest of this release"
    if not after.is_known:
        return f"the database has schema {after.revision} of a newer release; this release has {after.newest}"
    return f"the database has schema {after.revision or 'none'}; this release works with {after.newest}"


def backup_text(manifest: BackupManifest) -> str:
    """Return the contents of a backup in one line, and missing artifacts in a second."""
    files = f"{plural(manifest.artifacts, 'artifact')} of {size_text(manifest.artifact_bytes)}"
    text = (
        f"{sum(manifest.rows.values())} rows in {size_text(manifest.database_bytes)}, "
        f"{files if manifest.with_artifacts else 'no artifacts'}, schema {manifest.schema_revision}"
    )
    if manifest.missing:
        text += f"\nnote: {plural(len(manifest.missing), 'artifact')} removed during the backup"
    if manifest.damaged:
        text += (
            f"\nnote: {plural(len(manifest.damaged), 'artifact')} damaged on the farm's disk and left out:"
            f" upload again what has the digest {', '.join(digest[:12] for digest in manifest.damaged)}"
        )
    return text


def backup_document(backup: Backup) -> dict[str, Any]:
    """Return the JSON document."""
    manifest = TypeAdapter(BackupManifest).dump_python(backup.manifest, mode="json")
    return {"folder": str(backup.folder), **manifest}


def restore_plan_text(plan: RestorePlan) -> str:
    """Return what a restore will do."""
    manifest, folder = plan.manifest, plan.config.blobs_dir
    is_taken_over = find_owner(folder) not in (None, manifest.epoch)
    return "\n".join(
        (
            f"backup     {plan.backup}, of {manifest.made_at:%Y-%m-%d %H:%M:%S} UTC on {manifest.source}",
            f"contents   {backup_text(manifest)}",
            f"database   {plan.place}: empty; receives all rows",
            f"artifacts  {folder}: receives the files, each verified",
            *(
                ["           it belongs to another database, which then cannot use it"]
                if is_taken_over
                else []
            ),
            "then       changes since the backup are lost: agents reconnect, report their state and resend",
            "           the reports of the last 7 days; numbers continue after a gap",
        )
    )


def restore_text(restored: RestoreResult, data: Path | None) -> str:
    """Return the result of a restore, and the next step."""
    files = plural(restored.artifacts, "artifact")
    up = "farm up" if data is None else f"farm up --data {shlex.quote(str(data))}"
    text = f"restored {restored.rows} rows and {files}; start the farm: {up}"
    if restored.missing:
        text += (
            f"\nnote: {plural(restored.missing, 'artifact')} without an intact file in the backup: marked as"
            " expired; upload them again where they are needed"
        )
    return text


def restore_document(plan: RestorePlan, restored: RestoreResult) -> dict[str, Any]:
    """Return the JSON document."""
    return {
        "backup": str(plan.backup),
        "database": plan.place,
        "rows": restored.rows,
        "artifacts": restored.artifacts,
        "missing": restored.missing,
        "epoch": restored.epoch.epoch,
    }


#: The epochs of a database, the current one last.
epoch_table = Listing[DatabaseEpoch](
    name("epoch", lambda epoch: epoch.epoch),
    # The time of the first epoch of a database is not recorded.
    name("since", lambda epoch: local_time_text(epoch.began_at) if epoch.began_at.timestamp() else None),
    prose("why", lambda epoch: epoch.cause),
)


def epoch_documents(epochs: Sequence[DatabaseEpoch]) -> list[dict[str, Any]]:
    """Return the JSON document."""
    return [
        {"epoch": epoch.epoch, "began_at": epoch.began_at.isoformat(), "cause": epoch.cause}
        for epoch in epochs
    ]
