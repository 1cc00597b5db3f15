"""Database epochs: a restored database begins a new one, because it may lack the latest changes."""

import secrets
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.database.rows import to_record
from farm.database.tables import database_epochs
from farm.database.transaction import Tx

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
    return [to_record(DatabaseEpoch, row) for row in connection.execute(_OLDEST_FIRST)]


def add_epoch(tx: Tx, *, cause: str) -> DatabaseEpoch:
    """Begin the next epoch."""
    # The current epoch is the latest one, so a clock that is behind must not date the new one earlier.
    began_at = max(tx.now, current_epoch(tx.connection).began_at + timedelta(microseconds=1))
    epoch = DatabaseEpoch(epoch=secrets.token_hex(8), began_at=began_at, cause=cause)
    tx.connection.execute(database_epochs.insert().values(asdict(epoch)))
    return epoch
