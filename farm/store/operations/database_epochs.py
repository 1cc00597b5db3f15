"""Database epochs: a restored database begins a new one, because it may lack the latest changes."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.database.tables import database_epochs

#: Built once: every exchange runs it.
_OLDEST_FIRST = sa.select(database_epochs).order_by(database_epochs.c.began_at, database_epochs.c.epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseEpoch:
    """A period in which no committed change was lost."""

    epoch: str
    began_at: datetime
    cause: str


def current_epoch(connection: Connection) -> DatabaseEpoch:
    """Return the current epoch."""
    return list_epochs(connection)[-1]


def list_epochs(connection: Connection) -> list[DatabaseEpoch]:
    """Return all epochs, oldest first; a migrated database has at least one."""
    return [
        DatabaseEpoch(epoch=row.epoch, began_at=row.began_at, cause=row.cause)
        for row in connection.execute(_OLDEST_FIRST)
    ]


def add_epoch(connection: Connection, *, cause: str, now: datetime) -> DatabaseEpoch:
    """Begin the next epoch."""
    # The current epoch is the latest one, so a clock that is behind must not date the new one earlier.
    began_at = max(now, current_epoch(connection).began_at + timedelta(microseconds=1))
    epoch = DatabaseEpoch(epoch=secrets.token_hex(8), began_at=began_at, cause=cause)
    connection.execute(
        database_epochs.insert().values(epoch=epoch.epoch, began_at=epoch.began_at, cause=epoch.cause)
    )
    return epoch
