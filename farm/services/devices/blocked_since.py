"""Since when a phone is kept from work, who did it and why, as far as somebody noted it."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.devices.admin import AdminEvent
from farm.core.devices.device import Blocker
from farm.core.devices.host_state import HostEvent
from farm.core.jobs.pending_reasons import Since
from farm.core.operations.event import DeviceEvent, EventKind, Subject
from farm.store.devices.devices import Device
from farm.store.jobs import attempts
from farm.store.operations.event_history import last_events

_HEALTH_KINDS = (DeviceEvent.HEALTH_CHANGED, DeviceEvent.FOUND)
#: Which events of the phone began it.
_KINDS_BY_BLOCKER: Mapping[Blocker, Sequence[EventKind]] = {
    Blocker.NOT_ONLINE: (DeviceEvent.PRESENCE_CHANGED, DeviceEvent.FOUND),
    Blocker.PENDING: (DeviceEvent.FOUND,),
    Blocker.CORDONED: (AdminEvent.CORDONED,),
    Blocker.RETIRED: (AdminEvent.RETIRED,),
    Blocker.HELD: (DeviceEvent.HELD,),
    Blocker.HEALTH_UNKNOWN: _HEALTH_KINDS,
    Blocker.HEALTH_SUSPECT: _HEALTH_KINDS,
    Blocker.HEALTH_BAD: _HEALTH_KINDS,
    Blocker.ERRAND: (DeviceEvent.ERRAND_ASKED,),
}


def since(connection: Connection, device: Device, blocker: Blocker) -> Since:
    """What is known of how one of a phone's blockers began."""
    match blocker:
        case Blocker.SESSION_NOT_LIVE:
            return Since(at=device.seen_at)
        case Blocker.BUSY:
            return Since(at=device.claimed_at)
        case Blocker.NOT_CLEANED:
            return Since(at=_last_ended_at(connection, device))
        case Blocker.HOST_DRAINING:
            kinds = (HostEvent.DRAINED, HostEvent.RETIRED)
            return _told(connection, Subject.HOST, device.host_id, kinds)
        case Blocker.CPU_SHARED | Blocker.HOST_FULL:
            return Since()
        case _:
            return _told(connection, Subject.DEVICE, device.device_id, _KINDS_BY_BLOCKER[blocker])


def _told(connection: Connection, subject: Subject, subject_id: str, kinds: Sequence[EventKind]) -> Since:
    for event in last_events(connection, subject, subject_id, kinds=kinds):
        return Since(at=event.at, by=event.actor, cause=event.cause)
    return Since()


def _last_ended_at(connection: Connection, device: Device) -> datetime | None:
    if device.last_attempt_id is None:
        return None
    last = attempts.find_attempt(connection, device.last_attempt_id)
    return None if last is None else last.finished_at
