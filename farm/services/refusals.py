"""Who asked for what is not theirs: kept for whoever looks after the farm, and bounded."""

from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.event import FarmEvent, Subject
from farm.core.ids import HostId
from farm.store.events import last_told_at, record_event

ANOTHERS_HINT = "when nobody restored a database or copied a folder, somebody uses this host's credential"

#: However often a host asks, the log tells of it once in so long: a flood of requests is none of rows.
TOLD_EVERY = timedelta(minutes=1)


def note_refusal(connection: Connection, host_id: HostId, cause: str, *, now: datetime) -> None:
    """Record that a host's credential was used for what is another's."""
    kind, subject = FarmEvent.ACCESS_REFUSED, Subject.HOST
    before = last_told_at(connection, kind, subject, host_id)
    if before is None or now - before >= TOLD_EVERY:
        record_event(
            connection,
            at=now,
            actor=f"agent:{host_id}",
            kind=kind,
            subject=subject,
            subject_id=host_id,
            cause=cause,
        )
