"""What happened to one thing, read back from the event log."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.store.tables import events


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change: who made it, what it was, why."""

    at: datetime
    actor: str
    kind: str
    from_state: str | None
    to_state: str | None
    cause: str | None


def last_events(
    connection: Connection,
    subject: str,
    subject_id: object,
    *,
    kinds: Collection[str] = (),
    limit: int = 1,
) -> list[Event]:
    """The newest events of one thing, newest first; of these kinds only, where some are named."""
    query = (
        sa.select(events)
        .where(events.c.subject == subject, events.c.subject_id == str(subject_id))
        .order_by(events.c.event_id.desc())
        .limit(limit)
    )
    if kinds:
        query = query.where(events.c.kind.in_(kinds))
    return [
        Event(
            at=row.at,
            actor=row.actor,
            kind=row.kind,
            from_state=row.from_state,
            to_state=row.to_state,
            cause=row.cause,
        )
        for row in connection.execute(query)
    ]
