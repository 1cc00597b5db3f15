"""What there is to say about each phone, and which one a person means."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from shlex import quote

from sqlalchemy.engine import Connection

from farm.core.admin import AdminEvent
from farm.core.advice import advice, telling_first
from farm.core.device import Blocker, blockers
from farm.core.errors import InvalidInput, NotFound
from farm.core.ids import DeviceId
from farm.store import attempts, devices, errands, leftovers
from farm.store.devices import Device
from farm.store.story import Event, last_events
from farm.wire.device_views import DeviceView


def list_device_views(connection: Connection) -> list[DeviceView]:
    """All devices, by id."""
    busy = cpus_in_use(connection)
    return [_view(connection, device, busy) for device in devices.list_devices(connection)]


def device_view(connection: Connection, device: Device) -> DeviceView:
    """One device."""
    return _view(connection, device, cpus_in_use(connection))


def device_named(connection: Connection, name: str) -> Device:
    """The device that a person means: by its id, its label, or the unique beginning of either.

    Raises:
        NotFound: there is none.
        InvalidInput: several begin so.
    """
    known = devices.list_devices(connection)
    exact = [device for device in known if name == device.device_id]
    exact = exact or [device for device in known if name == device.label]
    found = exact or [device for device in known if _begins(device, name)]
    match found:
        case [device]:
            return device
        case []:
            hint = f"known here: {_names(known)}" if known else "no phone was seen yet: docs/devices.md"
            raise NotFound(f"no device `{name}`", hint=hint)
        case _:
            raise InvalidInput(f"`{name}` may be {_names(found)}", hint="say more of the id, or the label")


def cpus_in_use(connection: Connection) -> set[str]:
    """CPU domains on which a run is alive, or may have left something alive, or an errand is to be done."""
    left = attempts.busy_cpus(connection) | leftovers.uncleaned_cpus(connection)
    return left | errands.awaiting_cpus(connection)


def waiting_reasons(connection: Connection) -> dict[DeviceId, tuple[str, ...]]:
    """By device, why it gets no benchmark job now; empty when it can, or when it is at one."""
    busy = cpus_in_use(connection)
    return {
        device.device_id: tuple(blocker.value for blocker in _blockers(device, busy))
        for device in devices.list_devices(connection)
    }


def _begins(device: Device, name: str) -> bool:
    return bool(name) and any(known.startswith(name) for known in (device.device_id, device.label or ""))


def _names(known: Sequence[Device]) -> str:
    names = [device.name for device in known]
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def _blockers(device: Device, busy_cpus: set[str]) -> list[Blocker]:
    return telling_first(blockers(device.state(cpu_busy=device.cpu_domain in busy_cpus), check=False))


#: Which events tell since when a phone is as it is, and why, by the first thing in its way.
_HEALTH_KINDS = ("device_health_changed", "device_found")
_KINDS_BY_BLOCKER: Mapping[Blocker, Sequence[str]] = {
    Blocker.NOT_ONLINE: ("device_presence_changed", "device_found"),
    Blocker.PENDING: ("device_found",),
    Blocker.CORDONED: (AdminEvent.CORDONED,),
    Blocker.RETIRED: (AdminEvent.RETIRED,),
    Blocker.HELD: ("device_held",),
    Blocker.HEALTH_UNKNOWN: _HEALTH_KINDS,
    Blocker.HEALTH_SUSPECT: _HEALTH_KINDS,
    Blocker.HEALTH_BAD: _HEALTH_KINDS,
    Blocker.ERRAND: ("errand_asked",),
}


def _view(connection: Connection, device: Device, busy_cpus: set[str]) -> DeviceView:
    facts = device.facts
    found = _blockers(device, busy_cpus)
    since, why = _since(connection, device, found)
    return DeviceView(
        device_id=device.device_id,
        label=device.label,
        tags=device.tags,
        unit=device.unit,
        serial=device.serial,
        host=device.host_id,
        device_model=facts.device_model if facts else None,
        manufacturer=facts.manufacturer if facts else None,
        soc=facts.soc if facts else None,
        android=facts.android if facts else None,
        api_level=facts.api_level if facts else None,
        abi=facts.abi if facts else None,
        build_fingerprint=facts.build_fingerprint if facts else None,
        presence=device.presence,
        detail=device.detail,
        health=device.health,
        admin=device.admin,
        held_by=device.held_by,
        held_until=device.held_until,
        virtual=facts.virtual if facts else False,
        fence=device.fence,
        job_id=device.job_id,
        waiting_for=tuple(blocker.value for blocker in found),
        blocked_by=tuple(blocker.name.lower() for blocker in found),
        since=since,
        why=why,
        advice=_advice(device, found),
        condition=device.condition,
        seen_at=device.seen_at,
    )


def _advice(device: Device, found: Sequence[Blocker]) -> str | None:
    if not found:
        return None
    return advice(found[0], device.presence, name=quote(device.name), host=device.host_id)


def _since(
    connection: Connection, device: Device, found: Sequence[Blocker]
) -> tuple[datetime | None, str | None]:
    """Since when the first blocker holds, and why."""
    blocker = found[0] if found else None
    match blocker:
        case Blocker.SESSION_NOT_LIVE:
            return device.seen_at, None
        case Blocker.BUSY:
            return device.claimed_at, None
        case Blocker.NOT_CLEANED | Blocker.CPU_SHARED | None:
            return None, None
        case _:
            event = _last_event(connection, device, _KINDS_BY_BLOCKER[blocker])
            return (event.at, event.cause) if event else (None, None)


def _last_event(connection: Connection, device: Device, kinds: Sequence[str]) -> Event | None:
    return next(iter(last_events(connection, "device", device.device_id, kinds=kinds)), None)
