"""The event log: one row for each change of state, in the change's own transaction."""

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.store.tables import events


def record_event(
    connection: Connection,
    *,
    at: datetime,
    actor: str,
    kind: str,
    subject: str,
    subject_id: object,
    from_state: str | None = None,
    to_state: str | None = None,
    cause: str | None = None,
) -> None:
    """Append one event; `subject` is the kind of thing, `subject_id` which one."""
    connection.execute(
        events.insert().values(
            at=at,
            actor=actor,
            kind=kind,
            subject=subject,
            subject_id=str(subject_id),
            from_state=from_state,
            to_state=to_state,
            cause=cause,
        )
    )


def record_moves(
    connection: Connection,
    *,
    at: datetime,
    actor: str,
    kind: str,
    subject: str,
    subject_ids: Sequence[object],
    from_state: str,
    to_state: str,
    cause: str | None = None,
) -> None:
    """Append one event for each of many things that moved alike."""
    same = {
        "at": at,
        "actor": actor,
        "kind": kind,
        "subject": subject,
        "from_state": from_state,
        "to_state": to_state,
        "cause": cause,
    }
    if subject_ids:
        connection.execute(events.insert(), [{**same, "subject_id": str(each)} for each in subject_ids])


def record_if_moved(
    connection: Connection,
    update: sa.Update,
    *,
    at: datetime,
    actor: str,
    kind: str,
    subject: str,
    subject_id: object,
    from_state: str,
    to_state: str,
    cause: str | None = None,
) -> bool:
    """Run a compare-and-set and append its event; False, and no event, when it found nothing to move."""
    if connection.execute(update).rowcount == 0:
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
