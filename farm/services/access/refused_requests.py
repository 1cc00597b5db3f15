"""Who asked for what is not theirs: kept for whoever looks after the farm, and bounded."""

from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.core.operations.event import DeviceEvent, EventKind, EventSubject, FarmEvent
from farm.store.operations.events import last_event_at, record_event

#: However often a host asks, the log tells of it once in so long: a flood of requests is none of rows.
RECORD_EVERY = timedelta(minutes=1)


#: Who shows no token, or one that lets nobody in.
ANONYMOUS = "nobody"
#: As that, where agents call: neither hides the other. No person's name and no host's is written like this.
ANONYMOUS_AGENT = "nobody:agent"


def record_refusal(connection: Connection, host_id: HostId, cause: str, *, now: datetime) -> None:
    """Record that a host's credential was used for what is another's."""
    actor = f"agent:{host_id}"
    _record_throttled(
        connection, FarmEvent.ACCESS_REFUSED, EventSubject.HOST, host_id, cause, actor=actor, now=now
    )


def record_caller_refusal(connection: Connection, actor: str, cause: str, *, now: datetime) -> None:
    """Record that a person or script, or somebody nobody knows, asked for what they may not."""
    _record_throttled(
        connection, FarmEvent.ACCESS_REFUSED, EventSubject.ACCESS, actor, cause, actor=actor, now=now
    )


def record_refused_claim(
    connection: Connection, device_id: DeviceId, cause: str, host_id: HostId, *, now: datetime
) -> None:
    """Record that a host does not get a device that it reports (I21)."""
    kind, actor = DeviceEvent.CLAIM_REFUSED, f"agent:{host_id}"
    _record_throttled(connection, kind, EventSubject.DEVICE, device_id, cause, actor=actor, now=now)


def _record_throttled(
    connection: Connection,
    kind: EventKind,
    subject: EventSubject,
    subject_id: str,
    cause: str,
    *,
    actor: str,
    now: datetime,
) -> None:
    before = last_event_at(connection, kind, subject, subject_id)
    if before is None or now - before >= RECORD_EVERY:
        record_event(
            connection,
            at=now,
            actor=actor,
            kind=kind,
            subject=subject,
            subject_id=subject_id,
            cause=cause,
        )
