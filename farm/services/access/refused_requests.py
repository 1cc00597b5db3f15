"""Who asked for what is not theirs: kept for whoever looks after the farm, and bounded."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.operations.event import DeviceEvent, EventKind, FarmEvent, Subject
from farm.store.devices.devices import Device
from farm.store.operations.events import last_told_at, record_event

ANOTHERS_HINT = "when nobody restored a database or copied a folder, somebody uses this host's credential"

#: However often a host asks, the log tells of it once in so long: a flood of requests is none of rows.
TOLD_EVERY = timedelta(minutes=1)


#: Who shows no token, or one that lets nobody in.
NOBODY = "nobody"
#: As that, where agents call: neither hides the other. No person's name and no host's is written like this.
NO_AGENT = "nobody:agent"


def note_refusal(connection: Connection, host_id: HostId, cause: str, *, now: datetime) -> None:
    """Record that a host's credential was used for what is another's."""
    actor = f"agent:{host_id}"
    _tell(connection, FarmEvent.ACCESS_REFUSED, Subject.HOST, host_id, cause, actor=actor, now=now)


def note_callers_refusal(connection: Connection, actor: str, cause: str, *, now: datetime) -> None:
    """Record that a person or script, or somebody nobody knows, asked for what they may not."""
    _tell(connection, FarmEvent.ACCESS_REFUSED, Subject.ACCESS, actor, cause, actor=actor, now=now)


def note_second_claim(connection: Connection, device: Device, host_id: HostId, *, now: datetime) -> None:
    """Record that a host has a phone online that is online at another one, and stays there (I21)."""
    cause = f"host {host_id} has it online, too: it stays with {device.host_id}"
    kind = DeviceEvent.CLAIM_REFUSED
    _tell(connection, kind, Subject.DEVICE, device.device_id, cause, actor=f"agent:{host_id}", now=now)


def note_claimants(
    connection: Connection, device: Device, claimants: Sequence[str], host_id: HostId, *, now: datetime
) -> None:
    """Record that a host has several phones of one name, and that none of them is used."""
    cause = f"host {host_id} has several phones that say they are this one: {', '.join(claimants)}"
    kind = DeviceEvent.CLAIM_REFUSED
    _tell(connection, kind, Subject.DEVICE, device.device_id, cause, actor=f"agent:{host_id}", now=now)


def _tell(
    connection: Connection,
    kind: EventKind,
    subject: Subject,
    subject_id: str,
    cause: str,
    *,
    actor: str,
    now: datetime,
) -> None:
    before = last_told_at(connection, kind, subject, subject_id)
    if before is None or now - before >= TOLD_EVERY:
        record_event(
            connection,
            at=now,
            actor=actor,
            kind=kind,
            subject=subject,
            subject_id=subject_id,
            cause=cause,
        )
