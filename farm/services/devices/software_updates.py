"""Phones that come back with another system build or other drivers."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import FactsId, HostId
from farm.core.devices.device import Admin, DeviceFacts
from farm.core.devices.software_version import build_by_facts, software_changes
from farm.core.operations.event import DeviceEvent, EventSubject
from farm.store.devices.devices import Device
from farm.store.jobs import jobs
from farm.store.operations.events import record_event
from farm.store.results.provenance import facts_by_id


def record_update(
    connection: Connection, device: Device, facts: DeviceFacts, host_id: HostId, *, now: datetime
) -> None:
    """Tell of what was updated on a phone, and have it checked before its next job.

    Args:
        connection: the database.
        device: as it was before these facts came.
        facts: what its agent read now.
        host_id: whose agent that is.
        now: the time.
    """
    changes = software_changes(device.facts, facts) if device.facts is not None else ()
    if not changes:
        return
    cause = "; ".join(map(str, changes))
    record_event(
        connection,
        at=now,
        actor=f"agent:{host_id}",
        kind=DeviceEvent.UPDATED,
        subject=EventSubject.DEVICE,
        subject_id=device.device_id,
        from_state=changes[0].before,
        to_state=changes[0].after,
        cause=cause,
    )
    if device.admin is Admin.ACTIVE:
        jobs.add_check(connection, device.device_id, now=now, cause=f"it was updated: {cause}")


def builds_of(connection: Connection, facts_ids: set[FactsId | None]) -> dict[FactsId, int]:
    """The builds that measurements of a phone were made on; empty where all are of one snapshot."""
    known = {facts_id for facts_id in facts_ids if facts_id is not None}
    return build_by_facts(facts_by_id(connection, sorted(known))) if len(known) > 1 else {}
