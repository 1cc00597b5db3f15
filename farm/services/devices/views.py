"""Describe each phone, and since when and why it is kept from work; find the one that a person names."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nsmallest
from itertools import chain
from shlex import quote

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId, JobId
from farm.core.devices.admin import AdminEvent
from farm.core.devices.device import Blocker, DeviceState, blockers
from farm.core.devices.host_state import HostEvent
from farm.core.devices.remediation import MESSAGE_BY_BLOCKER, advice, sort_for_display
from farm.core.devices.selector import parse_selector, select_devices
from farm.core.errors import InvalidInput, NotFound
from farm.core.jobs.pending_reasons import StateOrigin
from farm.core.jobs.retry import JOB_DEFERRED
from farm.core.operations.event import DeviceEvent, EventKind, EventSubject, OperatorEvent
from farm.core.upkeep.device_action import DeviceActionEvent
from farm.store.devices import devices
from farm.store.devices import workload as device_workload
from farm.store.devices.devices import Device, DeviceName, DeviceStatus
from farm.store.devices.facts import known_devices
from farm.store.devices.fleet import AlikeDevices, alike_among, first_alike, ids_called, list_alike
from farm.store.jobs import attempts
from farm.store.jobs.jobs import find_open_check
from farm.store.operations.event_log import last_events
from farm.store.upkeep import device_actions
from farm.wire.documents.devices import DeviceView

#: Facts that are shown of each device; None before they were read.
_SHOWN_FACTS = ("device_model", "manufacturer", "soc", "android", "api_level", "abi", "build_fingerprint")
#: Devices that are read at once where some are looked for.
_SEARCHED = 500
_HEALTH_KINDS = (DeviceEvent.HEALTH_CHANGED, DeviceEvent.FOUND)
#: Events of the phone that began it.
_KINDS_BY_BLOCKER: Mapping[Blocker, Sequence[EventKind]] = {
    Blocker.NOT_ONLINE: (DeviceEvent.PRESENCE_CHANGED, DeviceEvent.FOUND),
    Blocker.PENDING: (DeviceEvent.FOUND,),
    Blocker.CORDONED: (AdminEvent.CORDONED,),
    Blocker.RETIRED: (AdminEvent.RETIRED,),
    Blocker.RESERVED: (OperatorEvent.RESERVED,),
    Blocker.HEALTH_UNKNOWN: _HEALTH_KINDS,
    Blocker.HEALTH_SUSPECT: _HEALTH_KINDS,
    Blocker.HEALTH_BAD: _HEALTH_KINDS,
    Blocker.DEVICE_ACTION: (DeviceActionEvent.REQUESTED,),
}


def list_device_views(connection: Connection, *, after: DeviceId, limit: int) -> list[DeviceView]:
    """Return a page of the devices, by id; those after one."""
    load = load_of(connection)
    page = devices.devices_page(connection, after=after, limit=limit)
    return [_view(connection, device, load) for device in page]


def find_device_views(
    connection: Connection,
    *,
    after: DeviceId,
    limit: int,
    is_wanted: "Callable[[Device, FleetDevice], bool]",
) -> list[DeviceView]:
    """Return a page of the devices that are wanted, by id; those after one.

    At first only as many devices are read as the page has: where all are wanted, those are the page.
    """
    load = load_of(connection)
    wanted: list[Device] = []
    size = limit
    while page := devices.devices_page(connection, after=after, limit=size):
        wanted += [device for device in page if is_wanted(device, _fleet_device(device, load))]
        if len(wanted) >= limit:
            break
        after, size = page[-1].device_id, _SEARCHED
    return [_view(connection, device, load) for device in wanted[:limit]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDevice:
    """A device as one of many: what keeps it from work, and the job that it runs."""

    device_id: DeviceId
    name: str
    blocked_by: tuple[Blocker, ...]
    job_id: JobId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetGroup:
    """Devices in one state: what keeps them from work, and the job of one of them where each has one."""

    blocked_by: tuple[Blocker, ...]
    job_id: JobId | None
    alike: AlikeDevices


def fleet_status(connection: Connection) -> list[FleetGroup]:
    """Return all devices by what keeps them from benchmark jobs now, those with the least id first."""
    load = load_of(connection)
    return [
        FleetGroup(blocked_by=tuple(_blockers(own.status, load)), job_id=own.status.job_id, alike=own)
        for own in list_alike(connection)
    ]


def first_devices(connection: Connection, groups: Sequence[FleetGroup], *, limit: int) -> list[DeviceId]:
    """Return the first devices of some groups, by id. `groups` are as `fleet_status` has them."""
    # Behind `limit` groups, none has a device among the first ones.
    some = [first_alike(connection, group.alike, limit=limit) for group in groups[:limit]]
    return nsmallest(limit, chain.from_iterable(some))


def _fleet_device(device: DeviceStatus, load: "Load") -> FleetDevice:
    return FleetDevice(
        device_id=device.device_id,
        name=device.name,
        blocked_by=tuple(_blockers(device, load)),
        job_id=device.job_id,
    )


def views_of(connection: Connection, device_ids: Collection[DeviceId]) -> list[DeviceView]:
    """Return the views of these devices, in their order; unknown ones are missing."""
    load = load_of(connection)
    known = devices.devices_by_id(connection, device_ids)
    return [_view(connection, known[device_id], load) for device_id in device_ids if device_id in known]


def device_view(connection: Connection, device: Device) -> DeviceView:
    """Return the view of one device."""
    return _view(connection, device, load_of(connection))


def selected_devices(connection: Connection, texts: Sequence[str]) -> list[DeviceId]:
    """Return the devices that fit any of the selectors, as text, in the order of their ids.

    Raises:
        InvalidInput: a text is no selector.
        SelectorEmpty: one of them fits no device.
    """
    selectors = [parse_selector(text) for text in texts]
    return [device.device_id for device in select_devices(selectors, known_devices(connection))]


def device_named(connection: Connection, name: str) -> Device:
    """Return the device with this id, label, or unique prefix of either.

    Raises:
        NotFound: there is none.
        InvalidInput: several begin so.
    """
    found = devices.find_device(connection, DeviceId(name))
    return found or devices.get_device(connection, device_id_named(connection, name))


def device_id_named(connection: Connection, name: str) -> DeviceId:
    """Return the id of the device that `device_named` returns; raises like it."""
    match ids_called(connection, name):
        case []:
            return _id_with_prefix(connection, name)
        case [device_id]:
            return device_id
        case _:
            return DeviceId(name)


def _id_with_prefix(connection: Connection, prefix: str) -> DeviceId:
    fleet = devices.list_device_names(connection)
    match [own for own in fleet if _matches_prefix(own, prefix)]:
        case [match]:
            return match.device_id
        case []:
            hint = f"known here: {_names(fleet)}" if fleet else "no phone was seen yet: docs/devices.md"
            raise NotFound(f"no device `{prefix}`", hint=hint)
        case matches:
            raise InvalidInput(
                f"`{prefix}` may be {_names(matches)}", hint="say more of the id, or the label"
            )


@dataclass(slots=True, kw_only=True)
class Load:
    """The use of what devices share."""

    busy_cpus: set[str] = field(default_factory=set)
    runs_by_host: Counter[HostId] = field(default_factory=Counter)

    def state_of(self, device: DeviceStatus) -> DeviceState:
        """Return the state that decides whether a device can be given work."""
        host_runs = self.runs_by_host[device.host_id]
        return device.state(cpu_busy=device.cpu_domain in self.busy_cpus, host_runs=host_runs)

    def take(self, device: Device) -> None:
        """Count a run that has begun since."""
        self.runs_by_host[device.host_id] += 1
        if device.cpu_domain is not None:
            self.busy_cpus.add(device.cpu_domain)


def load_of(connection: Connection) -> Load:
    """Return what is in use now: a CPU also while a process may be left on it, or an action is due."""
    return Load(
        busy_cpus=device_workload.unquiet_cpus(connection) | device_actions.cpus_to_keep_idle(connection),
        runs_by_host=device_workload.runs_by_host(connection),
    )


def waiting_reasons(
    connection: Connection, device_ids: Collection[DeviceId]
) -> dict[DeviceId, tuple[Blocker, ...]]:
    """Return why each of these devices gets no benchmark job now; empty when it can, or runs one."""
    if not device_ids:
        return {}
    load = load_of(connection)
    return {
        device_id: reasons
        for status, alike in alike_among(connection, device_ids)
        for reasons in [tuple(_blockers(status, load))]
        for device_id in alike
    }


def _matches_prefix(device: DeviceName, name: str) -> bool:
    return bool(name) and any(text.startswith(name) for text in (device.device_id, device.label or ""))


def _names(fleet: Sequence[DeviceName]) -> str:
    names = [device.shown for device in fleet]
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def _blockers(device: DeviceStatus, load: Load) -> list[Blocker]:
    return sort_for_display(blockers(load.state_of(device), check=False))


def _view(connection: Connection, device: Device, load: Load) -> DeviceView:
    facts = device.facts
    blocks = _blockers(device, load)
    began = blocked_since(connection, device, blocks[0]) if blocks else StateOrigin()
    return DeviceView.of(
        device,
        **{name: getattr(facts, name, None) for name in _SHOWN_FACTS},
        host=device.host_id,
        virtual=facts is not None and facts.virtual,
        waiting_for=tuple(MESSAGE_BY_BLOCKER[blocker] for blocker in blocks),
        blocked_by=tuple(blocks),
        since=began.since,
        why=_check_deferral(connection, device, blocks) or began.cause,
        advice=_advice(device, blocks),
    )


def _check_deferral(connection: Connection, device: Device, blocks: Sequence[Blocker]) -> str | None:
    """Return why the check was deferred that a device waits for; None if it was not."""
    if not blocks or blocks[0] not in (Blocker.HEALTH_UNKNOWN, Blocker.HEALTH_SUSPECT):
        return None
    check = find_open_check(connection, device.device_id)
    last = (
        None
        if check is None or check.attempt_id is None
        else attempts.find_attempt(connection, check.attempt_id)
    )
    if last is None or last.code != JOB_DEFERRED:
        return None
    return f"its check is deferred: {last.message}"


def _advice(device: Device, blocks: Sequence[Blocker]) -> str | None:
    if not blocks:
        return None
    return advice(blocks[0], device.presence, name=quote(device.name), host=device.host_id)


def blocked_since(connection: Connection, device: Device, blocker: Blocker) -> StateOrigin:
    """Return since when a blocker of a device holds, by whom and why, as far as that is recorded."""
    match blocker:
        case Blocker.SESSION_NOT_LIVE:
            return StateOrigin(since=device.seen_at)
        case Blocker.BUSY:
            return StateOrigin(since=device.claimed_at)
        case Blocker.NOT_CLEANED:
            return StateOrigin(since=_last_ended_at(connection, device))
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
        return StateOrigin(since=event.at, by=event.actor, cause=event.cause)
    return StateOrigin()


def _last_ended_at(connection: Connection, device: Device) -> datetime | None:
    if device.last_attempt_id is None:
        return None
    last = attempts.find_attempt(connection, device.last_attempt_id)
    return None if last is None else last.finished_at
