"""Which history of the database this is: a restored one begins another, as it forgot the last one's end."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.database.tables import database_epochs

#: Built once: every exchange asks.
_OLDEST_FIRST = sa.select(database_epochs).order_by(database_epochs.c.began_at, database_epochs.c.epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseEpoch:
    """A stretch of history in which nothing was forgotten that was committed."""

    epoch: str
    began_at: datetime
    cause: str


def current_epoch(connection: Connection) -> DatabaseEpoch:
    """The history that is being written."""
    return list_epochs(connection)[-1]


def list_epochs(connection: Connection) -> list[DatabaseEpoch]:
    """All of them, the oldest first; a migrated database has one at least."""
    return [
        DatabaseEpoch(epoch=row.epoch, began_at=row.began_at, cause=row.cause)
        for row in connection.execute(_OLDEST_FIRST)
    ]


def add_epoch(connection: Connection, *, cause: str, now: datetime) -> DatabaseEpoch:
    """Begin the next history."""
    # The latest is the current one, whatever the clock of a machine that is new to it says.
    began_at = max(now, current_epoch(connection).began_at + timedelta(microseconds=1))
    begun = DatabaseEpoch(epoch=secrets.token_hex(8), began_at=began_at, cause=cause)
    connection.execute(
        database_epochs.insert().values(epoch=begun.epoch, began_at=begun.began_at, cause=begun.cause)
    )
    return begun
