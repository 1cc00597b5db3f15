"""The event log: one row for each change of state, in the change's own transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.operations.event import EventKind, EventSubject
from farm.database.tables import events

#: Built once: every change of state appends one.
_INSERT = events.insert()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event to be recorded."""

    at: datetime
    actor: str
    kind: EventKind
    subject: EventSubject
    subject_id: object
    from_state: str | None
    to_state: str | None
    cause: str | None


def record_events(connection: Connection, new: Sequence[NewEvent]) -> None:
    """Append events in their order."""
    if new:
        connection.execute(_INSERT, [_row(event) for event in new])


def _row(new: NewEvent) -> dict[str, object]:
    return {
        "at": new.at,
        "actor": new.actor,
        "kind": new.kind,
        "subject": new.subject,
        "subject_id": str(new.subject_id),
        "from_state": new.from_state,
        "to_state": new.to_state,
        "cause": new.cause,
    }


def record_event(
    connection: Connection,
    *,
    at: datetime,
    actor: str,
    kind: EventKind,
    subject: EventSubject,
    subject_id: object,
    from_state: str | None = None,
    to_state: str | None = None,
    cause: str | None = None,
) -> None:
    """Append one event of a subject."""
    record_transitions(
        connection,
        at=at,
        actor=actor,
        kind=kind,
        subject=subject,
        cause_by_id={subject_id: cause},
        from_state=from_state,
        to_state=to_state,
    )


def record_transitions(
    connection: Connection,
    *,
    at: datetime,
    actor: str,
    kind: EventKind,
    subject: EventSubject,
    cause_by_id: Mapping[object, str | None],
    from_state: str | None,
    to_state: str | None,
) -> None:
    """Append one event for each of many subjects with the same transition, in the order of the mapping."""
    same = {
        "at": at,
        "actor": actor,
        "kind": kind,
        "subject": subject,
        "from_state": from_state,
        "to_state": to_state,
    }
    rows = [
        {**same, "subject_id": str(subject_id), "cause": cause} for subject_id, cause in cause_by_id.items()
    ]
    if rows:
        connection.execute(_INSERT, rows)


def record_if_moved(
    connection: Connection,
    update: sa.Update,
    *,
    at: datetime,
    actor: str,
    kind: EventKind,
    subject: EventSubject,
    subject_id: object,
    from_state: str,
    to_state: str,
    cause: str | None = None,
    parameters: Mapping[str, object] | None = None,
) -> bool:
    """Run a compare-and-set and append its event; False, and no event, if it changed no row.

    `parameters` are those of an update that was built once; such as are named after a column are set.
    """
    if connection.execute(update, parameters).rowcount == 0:
        return False
    record_event(
        connection,
        at=at,
        actor=actor,
        kind=kind,
        subject=subject,
        subject_id=subject_id,
        from_state=from_state,
        to_state=to_state,
        cause=cause,
    )
    return True


def last_event_at(
    connection: Connection, kind: EventKind, subject: EventSubject, subject_id: object
) -> datetime | None:
    """Return the time of the last event of a kind of a subject."""
    query = sa.select(events.c.at).where(
        events.c.subject == subject.value, events.c.subject_id == str(subject_id), events.c.kind == kind.value
    )
    return connection.execute(query.order_by(events.c.event_id.desc()).limit(1)).scalar()
