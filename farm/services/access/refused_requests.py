"""Record requests for what is not the caller's own, for the operators, in a bounded number."""

from datetime import timedelta

from farm.core.base.ids import DeviceId, HostId
from farm.core.operations.event import AccessEvent, DeviceEvent, EventKind, EventSubject
from farm.database.transaction import Tx
from farm.store.operations.events import last_event_at, record_event

#: However often a host asks, the log tells of it once in so long: a flood of requests is none of rows.
RECORD_EVERY = timedelta(minutes=1)


#: A caller without a token, or with one that is not valid.
ANONYMOUS = "anonymous"
#: As that, where agents call: neither hides the other. No person's name and no host's is written like this.
ANONYMOUS_AGENT = "anonymous:agent"


def record_refusal(tx: Tx, host_id: HostId, cause: str) -> None:
    """Record that a host's credential was used for what is another's."""
    actor = f"agent:{host_id}"
    _record_throttled(tx.by(actor), AccessEvent.ACCESS_REFUSED, EventSubject.HOST, host_id, cause)


def record_caller_refusal(tx: Tx, cause: str) -> None:
    """Record that a person or script, or an unknown caller, asked for what they may not."""
    _record_throttled(tx, AccessEvent.ACCESS_REFUSED, EventSubject.ACCESS, tx.actor, cause)


def record_refused_claim(tx: Tx, device_id: DeviceId, cause: str, host_id: HostId) -> None:
    """Record that a host does not get a device that it reports (I21)."""
    kind, actor = DeviceEvent.CLAIM_REFUSED, f"agent:{host_id}"
    _record_throttled(tx.by(actor), kind, EventSubject.DEVICE, device_id, cause)


def _record_throttled(tx: Tx, kind: EventKind, subject: EventSubject, subject_id: str, cause: str) -> None:
    before = last_event_at(tx.connection, kind, subject, subject_id)
    if before is None or tx.now - before >= RECORD_EVERY:
        record_event(tx, kind, subject_id, subject=subject, cause=cause)
