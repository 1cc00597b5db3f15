"""Up to which number no event can come any more: what a reader may show without missing one later.

An event gets its number when it is written and is seen when its transaction commits. SQLite has one writer,
and farm processes on PostgreSQL write in turn; but who writes there without asking for a turn, or commits as
the server shuts it out, may be seen before an earlier number, and a number that was given may never come. So
a reader asks for the last number given, and then who is writing events at that moment. Whoever was given a
number up to there and has not committed is among them: a transaction locks the table before it draws a
number, and until it ends. Once they are over, all numbers up to there are settled. It takes no column and no
belief in turns, and holds in a database that was restored elsewhere.
"""

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.database.tables import events

_LAST_NUMBER = sa.text("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM events_event_id_seq")
#: Who has written to the table in a transaction that goes on. Oids are a database's own.
_WRITERS = sa.text(
    "SELECT virtualtransaction FROM pg_locks"
    " WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted"
    " AND relation = 'events'::regclass"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventWatermark:
    """The last number given, and the transactions that may still commit events up to there."""

    event_id: int
    writers: frozenset[str]


def event_watermark(connection: Connection) -> EventWatermark:
    """How far the log has come; what is read on a later snapshot, once all `writers` are over, is settled."""
    if connection.dialect.name == "sqlite":
        last = connection.execute(sa.select(sa.func.max(events.c.event_id))).scalar()
        return EventWatermark(event_id=last or 0, writers=frozenset())
    # In this order: who draws a number later is after the frontier.
    last = connection.execute(_LAST_NUMBER).scalar_one()
    return EventWatermark(event_id=last, writers=_writers(connection))


def unfinished_writers(connection: Connection, writers: Collection[str]) -> frozenset[str]:
    """Those of the transactions that are not over."""
    return _writers(connection) & frozenset(writers) if writers else frozenset()


def _writers(connection: Connection) -> frozenset[str]:
    return frozenset(connection.execute(_WRITERS).scalars())
