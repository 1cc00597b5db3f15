"""Since when a phone is kept from work, who did it and why, as far as somebody noted it."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.devices.admin import AdminEvent
from farm.core.devices.device import Blocker
from farm.core.devices.host_state import HostEvent
from farm.core.jobs.pending_reasons import StateOrigin
from farm.core.operations.event import DeviceEvent, EventKind, EventSubject
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
    Blocker.RESERVED: (DeviceEvent.RESERVED,),
    Blocker.HEALTH_UNKNOWN: _HEALTH_KINDS,
    Blocker.HEALTH_SUSPECT: _HEALTH_KINDS,
    Blocker.HEALTH_BAD: _HEALTH_KINDS,
    Blocker.DEVICE_ACTION: (DeviceEvent.ACTION_REQUESTED,),
}


def blocked_since(connection: Connection, device: Device, blocker: Blocker) -> StateOrigin:
    """What is known of how one of a phone's blockers began."""
    match blocker:
        case Blocker.SESSION_NOT_LIVE:
            return StateOrigin(at=device.seen_at)
        case Blocker.BUSY:
            return StateOrigin(at=device.claimed_at)
        case Blocker.NOT_CLEANED:
            return StateOrigin(at=_last_ended_at(connection, device))
        case Blocker.HOST_DRAINING:
            kinds = (HostEvent.DRAINED, HostEvent.RETIRED)
            return _last_event(connection, EventSubject.HOST, device.host_id, kinds)
        case Blocker.CPU_SHARED | Blocker.HOST_FULL:
            return StateOrigin()
        case _:
            return _last_event(connection, EventSubject.DEVICE, device.device_id, _KINDS_BY_BLOCKER[blocker])


def _last_event(
    connection: Connection, subject: EventSubject, subject_id: str, kinds: Sequence[EventKind]
) -> StateOrigin:
    for event in last_events(connection, subject, subject_id, kinds=kinds):
        return StateOrigin(at=event.at, by=event.actor, cause=event.cause)
    return StateOrigin()


def _last_ended_at(connection: Connection, device: Device) -> datetime | None:
    if device.last_attempt_id is None:
        return None
    last = attempts.find_attempt(connection, device.last_attempt_id)
    return None if last is None else last.finished_at
