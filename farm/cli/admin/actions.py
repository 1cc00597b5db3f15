"""Actions of `farm admin` on databases and folders, without a running farm."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from farm.cli.shell.identity import require_identity
from farm.cli.shell.output import err
from farm.cli.shell.settings import farm_config
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.errors import InvalidInput
from farm.core.operations.backup import BackupManifest
from farm.daemon import data_folder_lock, make_data_folder
from farm.database.connect import check_server, display_url, open_database, url_of
from farm.database.engine import Database, create_engine
from farm.database.migrate import upgrade
from farm.database.schema_state import SchemaState, check_newest, schema_state
from farm.services.files.backup.backup import Backup, make_backup
from farm.services.files.backup.database_epochs import begin_epoch
from farm.services.files.backup.layout import find_backup, read_manifest
from farm.services.files.backup.restore import RestoreResult, check_empty, restore_backup
from farm.store.operations.database_copy import Progress
from farm.store.operations.database_epochs import DatabaseEpoch, list_epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """What is restored, and to which database."""

    backup: Path
    manifest: BackupManifest
    config: FarmConfig
    #: Address of the database, without its password.
    place: str


def read_schema(data: Path | None) -> SchemaState:
    """Return the schema of the farm's database; raises InvalidInput if there is none."""
    with _open_existing(data) as database:
        return database.read(schema_state)


def migrate(data: Path | None) -> SchemaState:
    """Migrate the farm's database to the newest schema.

    Raises:
        InvalidInput: there is no database, or a farm is using it.
        SchemaMismatch: the schema is of a newer release.
    """
    with _open_existing(data) as database, _exclusive_use(_config(data)):
        upgrade(database.engine)
        return database.read(schema_state)


def run_backup(target: Path, data: Path | None, *, with_artifacts: bool) -> Backup:
    """Make a backup; raises like `make_backup`, and InvalidInput if there is no farm."""
    config = _config(data)
    with _open_existing(data) as database, _progress("backing up") as progress:
        return make_backup(
            database,
            config.blobs_dir,
            target,
            SystemClock(),
            with_artifacts=with_artifacts,
            progress=progress,
        )


def read_epochs(data: Path | None) -> list[DatabaseEpoch]:
    """Return the epochs of the farm's database, oldest first."""
    with _open_existing(data) as database:
        database.read(check_newest)
        return database.read(list_epochs)


def start_epoch(data: Path | None, *, cause: str) -> list[DatabaseEpoch]:
    """Begin a new epoch, and return all epochs, oldest first.

    Raises:
        InvalidInput: there is no farm, or one runs in this folder: ids that it assigns meanwhile would belong
            to neither epoch.
    """
    now = SystemClock().now()
    with _open_existing(data) as database, _exclusive_use(_config(data)):
        database.read(check_newest)
        database.write(
            begin_epoch, cause=cause, forgot_since=now, now=now, actor=f"user:{require_identity()}"
        )
        return database.read(list_epochs)


def plan_restore(source: Path, data: Path | None) -> RestorePlan:
    """Check everything that can be checked before a restore.

    Raises:
        InvalidInput: there is no backup, or the server refuses the connection.
        Conflict: the database is not empty.
    """
    config = _config(data)
    backup = find_backup(source)
    manifest = read_manifest(backup)
    check_server(config)
    engine = create_engine(url_of(config))
    try:
        check_empty(engine)
    finally:
        engine.dispose()
    return RestorePlan(backup=backup, manifest=manifest, config=config, place=display_url(config))


def restore(plan: RestorePlan) -> RestoreResult:
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


def _config(data: Path | None) -> FarmConfig:
    return farm_config(data_dir=data)


@contextmanager
def _open_existing(data: Path | None) -> Iterator[Database]:
    config = _config(data)
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
