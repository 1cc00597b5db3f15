"""The event log: one row for each change of state, in the change's own transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.operations.event import EventKind, EventSubject, SubjectEvent, subject_of
from farm.database.rows import insert_rows
from farm.database.tables import events
from farm.database.transaction import Tx

#: Built once: every change of state appends one.
_INSERT = events.insert()
_COLUMNS = [field.name for field in fields(SubjectEvent)]


def record_events(connection: Connection, new: Sequence[SubjectEvent]) -> None:
    """Append events in their order."""
    if new:
        connection.execute(_INSERT, [{name: getattr(event, name) for name in _COLUMNS} for event in new])


def record_event(
    tx: Tx,
    kind: EventKind,
    subject_id: object,
    *,
    subject: EventSubject | None = None,
    from_state: str | None = None,
    to_state: str | None = None,
    cause: str | None = None,
) -> None:
    """Append one event of a subject; `subject` where the name of the kind does not begin with it."""
    causes = {subject_id: cause}
    record_transitions(tx, kind, causes, subject=subject, from_state=from_state, to_state=to_state)


def record_transitions(
    tx: Tx,
    kind: EventKind,
    cause_by_id: Mapping[object, str | None],
    *,
    subject: EventSubject | None = None,
    from_state: str | None,
    to_state: str | None,
) -> None:
    """Append one event for each of many subjects with the same transition, in the order of the mapping."""
    same = {"at": tx.now, "actor": tx.actor, "kind": kind, "subject": subject or subject_of(kind)}
    states = {"from_state": from_state, "to_state": to_state}
    rows = [
        {**same, **states, "subject_id": str(subject_id), "cause": cause}
        for subject_id, cause in cause_by_id.items()
    ]
    if rows:
        tx.connection.execute(_INSERT, rows)


def record_alike(tx: Tx, kind: EventKind, subject_ids: Sequence[object], **states: str | None) -> None:
    """Append events that differ in their subjects alone, in order; any number by one statement.

    `states` are the other columns of an event: `from_state`, `to_state` and `cause`.
    """
    same = {"at": tx.now, "actor": tx.actor, "kind": kind, "subject": subject_of(kind), **states}
    rows = [[str(subject_id)] for subject_id in subject_ids]
    insert_rows(tx.connection, events, ["subject_id"], rows, same=same)


def record_if_moved(
    tx: Tx,
    update: sa.Update,
    kind: EventKind,
    subject_id: object,
    *,
    from_state: str,
    to_state: str,
    cause: str | None = None,
    parameters: Mapping[str, object] | None = None,
) -> bool:
    """Run a compare-and-set and append its event; False, and no event, if it changed no row.

    `parameters` are those of an update that was built once; such as are named after a column are set.
    """
    if tx.connection.execute(update, parameters).rowcount == 0:
        return False
    record_event(tx, kind, subject_id, from_state=from_state, to_state=to_state, cause=cause)
    return True


def last_event_at(
    connection: Connection, kind: EventKind, subject: EventSubject, subject_id: object
) -> datetime | None:
    """Return the time of the last event of a kind of a subject."""
    query = sa.select(events.c.at).where(
        events.c.subject == subject.value, events.c.subject_id == str(subject_id), events.c.kind == kind.value
    )
    return connection.execute(query.order_by(events.c.event_id.desc()).limit(1)).scalar()
