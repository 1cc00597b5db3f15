"""What there is to say about each phone, and which one a person means."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from shlex import quote

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.core.devices.device import Blocker, DeviceState, blockers
from farm.core.devices.remediation import advice, sort_for_display
from farm.core.errors import InvalidInput, NotFound
from farm.core.jobs.pending_reasons import StateOrigin
from farm.services.devices.blocked_since import blocked_since
from farm.store.devices import capacity as device_capacity
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.upkeep import device_actions
from farm.wire.documents.devices import DeviceView


def list_device_views(connection: Connection) -> list[DeviceView]:
    """All devices, by id."""
    load = load_of(connection)
    return [_view(connection, device, load) for device in devices.list_devices(connection)]


def device_view(connection: Connection, device: Device) -> DeviceView:
    """One device."""
    return _view(connection, device, load_of(connection))


def device_named(connection: Connection, name: str) -> Device:
    """The device that a person means: by its id, its label, or the unique beginning of either.

    Raises:
        NotFound: there is none.
        InvalidInput: several begin so.
    """
    known = devices.list_devices(connection)
    exact = [device for device in known if name == device.device_id]
    exact = exact or [device for device in known if name == device.label]
    found = exact or [device for device in known if _matches_prefix(device, name)]
    match found:
        case [device]:
            return device
        case []:
            hint = f"known here: {_names(known)}" if known else "no phone was seen yet: docs/devices.md"
            raise NotFound(f"no device `{name}`", hint=hint)
        case _:
            raise InvalidInput(f"`{name}` may be {_names(found)}", hint="say more of the id, or the label")


@dataclass(slots=True, kw_only=True)
class Load:
    """What devices share, as far as it is taken."""

    busy_cpus: set[str] = field(default_factory=set)
    runs_by_host: Counter[HostId] = field(default_factory=Counter)

    def state_of(self, device: Device) -> DeviceState:
        """All that decides whether a device can be given work."""
        host_runs = self.runs_by_host[device.host_id]
        return device.state(cpu_busy=device.cpu_domain in self.busy_cpus, host_runs=host_runs)

    def take(self, device: Device) -> None:
        """Count a run that has begun since."""
        self.runs_by_host[device.host_id] += 1
        if device.cpu_domain is not None:
            self.busy_cpus.add(device.cpu_domain)


def load_of(connection: Connection) -> Load:
    """What is taken now."""
    runs_by_host = device_capacity.runs_by_host(connection)
    return Load(busy_cpus=cpus_in_use(connection), runs_by_host=runs_by_host)


def cpus_in_use(connection: Connection) -> set[str]:
    """CPU domains on which a run is alive, or may have left something alive, or an errand is to be done."""
    return device_capacity.unquiet_cpus(connection) | device_actions.cpus_to_keep_idle(connection)


def waiting_reasons(connection: Connection) -> dict[DeviceId, tuple[str, ...]]:
    """By device, why it gets no benchmark job now; empty when it can, or when it is at one."""
    load = load_of(connection)
    return {
        device.device_id: tuple(blocker.value for blocker in _blockers(device, load))
        for device in devices.list_devices(connection)
    }


def _matches_prefix(device: Device, name: str) -> bool:
    return bool(name) and any(known.startswith(name) for known in (device.device_id, device.label or ""))


def _names(known: Sequence[Device]) -> str:
    names = [device.name for device in known]
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def _blockers(device: Device, load: Load) -> list[Blocker]:
    return sort_for_display(blockers(load.state_of(device), check=False))


def _view(connection: Connection, device: Device, load: Load) -> DeviceView:
    facts = device.facts
    found = _blockers(device, load)
    began = blocked_since(connection, device, found[0]) if found else StateOrigin()
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
        reserved_by=device.reserved_by,
        reserved_until=device.reserved_until,
        virtual=facts.virtual if facts else False,
        fence=device.fence,
        job_id=device.job_id,
        waiting_for=tuple(blocker.value for blocker in found),
        blocked_by=tuple(blocker.name.lower() for blocker in found),
        since=began.at,
        why=began.cause,
        advice=_advice(device, found),
        condition=device.condition,
        recovery=device.recovery,
        seen_at=device.seen_at,
    )


def _advice(device: Device, found: Sequence[Blocker]) -> str | None:
    if not found:
        return None
    return advice(found[0], device.presence, name=quote(device.name), host=device.host_id)
