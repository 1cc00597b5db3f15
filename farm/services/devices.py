"""What there is to say about each phone."""

from sqlalchemy.engine import Connection

from farm.core.device import blockers
from farm.core.ids import DeviceId
from farm.store import attempts, devices
from farm.store.devices import Device
from farm.wire.views import DeviceView


def list_device_views(connection: Connection) -> list[DeviceView]:
    """All devices, by id."""
    busy = cpus_in_use(connection)
    return [_view(device, busy) for device in devices.list_devices(connection)]


def cpus_in_use(connection: Connection) -> set[str]:
    """CPU domains on which a run is alive, or may have left something alive."""
    return attempts.busy_cpus(connection) | devices.uncleaned_cpus(connection)


def waiting_reasons(connection: Connection) -> dict[DeviceId, tuple[str, ...]]:
    """By device, why it gets no benchmark job now; empty when it can, or when it is at one."""
    return {view.device_id: view.waiting_for for view in list_device_views(connection)}


def _view(device: Device, busy_cpus: set[str]) -> DeviceView:
    facts = device.facts
    state = device.state(cpu_busy=device.cpu_domain in busy_cpus)
    return DeviceView(
        device_id=device.device_id,
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
        virtual=facts.virtual if facts else False,
        fence=device.fence,
        job_id=device.job_id,
        waiting_for=tuple(blocker.value for blocker in blockers(state, check=False)),
        condition=device.condition,
        seen_at=device.seen_at,
    )
