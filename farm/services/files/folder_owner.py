"""A folder of artifacts belongs to one database: a sweep for another one would remove its files.

The folder carries the epoch of its database. An older copy of the database, which a restore to another place
left behind, does not have that epoch.
"""

from pathlib import Path

from sqlalchemy.engine import Connection

from farm.blobs.owner import find_owner, set_owner
from farm.core.errors import Conflict, FarmFault
from farm.store.operations.database_epochs import current_epoch, list_epochs

_HINT = (
    "set FARM_DATABASE_URL or FARM_DATABASE_URL_FILE as before; another farm needs another folder (--data or"
    ' FARM_BLOBS_PATH); after a restore by other means: `farm admin epoch --begin "why"`'
)


def claim_folder(connection: Connection, folder: Path) -> None:
    """Record the current epoch of the database in its folder of artifacts.

    Raises:
        Conflict: the folder belongs to another database; nothing is changed.
    """
    check_folder(connection, folder)
    set_owner(folder, current_epoch(connection).epoch)


def check_folder(connection: Connection, folder: Path) -> None:
    """Refuse a folder that belongs to another database.

    Raises:
        Conflict: it does.
    """
    owner = find_owner(folder)
    if owner is not None and owner not in {epoch.epoch for epoch in list_epochs(connection)}:
        raise _other_database(folder)


def check_new_farm(folder: Path) -> None:
    """Refuse a folder that belongs to a database, for a farm whose database is about to be created.

    Raises:
        Conflict: it does.
    """
    if find_owner(folder) is not None:
        raise _other_database(folder)


def check_sweepable(connection: Connection, folder: Path) -> None:
    """Refuse to remove anything from a folder that does not say that it is this database's.

    Raises:
        Conflict: it belongs to another one.
        FarmFault: it belongs to none: the disk that has it is probably not mounted.
    """
    check_folder(connection, folder)
    if find_owner(folder) is None:
        raise FarmFault(
            f"{folder} does not belong to this farm's database, so nothing is removed there",
            hint="is its disk mounted? A farm that starts takes a folder that belongs to no database",
        )


def _other_database(folder: Path) -> Conflict:
    return Conflict(f"the artifacts in {folder} belong to another database", hint=_HINT)
