"""The event watermark: the id up to which no event can appear any more, so that a reader misses none.

An event gets its id when it is written and becomes visible when its transaction commits. SQLite has one
writer, and farm processes on PostgreSQL write one after the other; but a writer without the lock, or one that
commits as the server disconnects it, may become visible before an earlier id, and a given id may never
appear. So a reader reads the last id given, and then the transactions that write events at that moment. Every
transaction with an id up to there that has not committed is among them, because it locks the table before it
draws an id and until it ends. Once they are over, all ids up to there are final. This needs no column and no
order of writers, and holds in a database that was restored elsewhere.
"""

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.database.tables import events

_LAST_NUMBER = sa.text("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM events_event_id_seq")
#: Open transactions that have written to the table. An oid is unique within its database only.
_WRITERS = sa.text(
    "SELECT virtualtransaction FROM pg_locks"
    " WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted"
    " AND relation = 'events'::regclass"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventWatermark:
    """The last id given, and the transactions that may still commit events up to it."""

    event_id: int
    writers: frozenset[str]


def event_watermark(connection: Connection) -> EventWatermark:
    """Return the watermark; events up to it are final in a snapshot taken after all `writers` are over."""
    if connection.dialect.name == "sqlite":
        last = connection.execute(sa.select(sa.func.max(events.c.event_id))).scalar()
        return EventWatermark(event_id=last or 0, writers=frozenset())
    # In this order: a transaction that draws an id later is above the watermark.
    last = connection.execute(_LAST_NUMBER).scalar_one()
    return EventWatermark(event_id=last, writers=_writers(connection))


def unfinished_writers(connection: Connection, writers: Collection[str]) -> frozenset[str]:
    """Return those of the transactions that are not over."""
    return _writers(connection) & frozenset(writers) if writers else frozenset()


def _writers(connection: Connection) -> frozenset[str]:
    return frozenset(connection.execute(_WRITERS).scalars())
