"""Reserve a phone for a person and release it; it is checked before it is measured on again."""

from datetime import datetime, timedelta
from shlex import quote

from sqlalchemy.engine import Connection

from farm.core.devices.device import Admin, Health
from farm.core.errors import Conflict, HostError
from farm.database.notifications import notify_hosts
from farm.database.transaction import Tx
from farm.services.devices.admin import device_change
from farm.services.devices.views import device_named
from farm.store.devices import devices
from farm.store.devices import transitions as device_transitions
from farm.store.devices.devices import Device
from farm.store.hosts import hosts
from farm.store.jobs import jobs
from farm.wire.documents.devices import AdbAccess, DeviceChange, ReleaseRequest, ReservationRequest

_HANDLED_CAUSE = "a person handled it"


def reserve(tx: Tx, name: str, request: ReservationRequest) -> DeviceChange:
    """Give a phone to a person from now on; a run under way ends first. The own hold gets a new end.

    Raises like `device_named`, and Conflict: someone else holds it, it is retired, or someone was quicker.
    """
    device = device_named(tx.connection, name)
    if device.admin is Admin.RETIRED:
        raise Conflict(
            f"{device.name} is retired", hint=f"farm device admit {quote(device.name)} takes it back"
        )
    if device.reserved_by not in (None, request.by):
        raise _reserved_by_other(device)
    until = tx.now + timedelta(seconds=request.for_s)
    cause = f"by {request.by} until {_moment(until)}" + (f": {request.reason}" if request.reason else "")
    actor = f"user:{request.by}"
    if not device_transitions.put_reservation(tx.by(actor), device, by=request.by, until=until, cause=cause):
        raise Conflict(f"{device.name}: someone else was quicker", hint="look who holds it, and try again")
    after = devices.get_device(tx.connection, device.device_id)
    return device_change(
        tx.connection, after, f"{after.name} is reserved by {request.by} until {_moment(until)}"
    )


def release(tx: Tx, name: str, request: ReleaseRequest) -> DeviceChange:
    """Give a phone back to the pool, by way of a check.

    Raises like `device_named`, and Conflict: someone else holds it, or ended the reservation in between.
    """
    device = device_named(tx.connection, name)
    if device.reserved_by is None:
        return device_change(tx.connection, device, f"no one holds {device.name}", changed=False)
    if device.reserved_by != request.by and not request.force:
        raise _reserved_by_other(device)
    is_holder = device.reserved_by == request.by
    default_cause = (
        f"{request.by} is done with it"
        if is_holder
        else f"{request.by} ended the reservation of {device.reserved_by}"
    )
    cause = request.reason or default_cause
    if not _end(tx.by(f"user:{request.by}"), device, cause=cause):
        raise Conflict(
            f"{device.name}: its reservation has just changed",
            hint="`farm device show ID` shows who has reserved it",
        )
    after = devices.get_device(tx.connection, device.device_id)
    return device_change(tx.connection, after, f"{after.name} is back in the pool; it is checked first")


def end_overdue_reservations(tx: Tx) -> None:
    """Return to the pool what was reserved until now."""
    for device_id in device_transitions.overdue_reservations(tx):
        device = devices.get_device(tx.connection, device_id)
        if _end(tx.by("farm"), device, cause="its time is over"):
            notify_hosts(tx.connection, [device.host_id])


def adb_access(connection: Connection, name: str, by: str) -> AdbAccess:
    """Return where adb reaches a device that the caller has reserved.

    Raises:
        NotFound: there is no such phone.
        InvalidInput: several might be meant.
        Conflict: the caller does not hold it, or its last run is not over yet.
        HostError: the host's agent is not connected, or does not say where its adb server is.
    """
    device = device_named(connection, name)
    _check_reserved(device, by)
    session = hosts.current_session(connection, device.host_id)
    adb_address = hosts.find_adb_address(connection, device.host_id)
    if session is None:
        raise HostError(f"the agent of host {device.host_id} is not connected")
    if adb_address is None:
        raise HostError(
            f"the agent of host {device.host_id} does not say where its adb server listens there",
            hint="it shares one of another machine, or is of an older release: bring it up to this one",
        )
    assert device.reserved_until is not None, "the schema pairs them"
    return AdbAccess.of(device, session, host=device.host_id, adb_address=adb_address)


def _check_reserved(device: Device, by: str) -> None:
    if device.reserved_by is None:
        raise Conflict(
            f"{device.name} is not reserved by you, so the farm may use it at any time",
            hint=f"reserve it first: farm device reserve {quote(device.name)} --for 1h",
        )
    if device.reserved_by != by:
        raise _reserved_by_other(device)
    if device.job_id is not None or device.cleaned_fence < device.fence:
        raise Conflict(
            f"the last run on {device.name} is not over yet",
            hint=f"farm device reserve {quote(device.name)} --for 1h waits for it",
        )


def _end(tx: Tx, device: Device, *, cause: str) -> bool:
    """End a hold. What was known of the phone's health is no longer: anything may have happened to it."""
    if not device_transitions.end_reservation(tx, device, cause=cause):
        return False
    trusted = [Health.GOOD, Health.SUSPECT]
    device_transitions.move_health(
        tx, device.device_id, sources=trusted, to=Health.UNKNOWN, cause=_HANDLED_CAUSE
    )
    if device.admin is Admin.ACTIVE:
        jobs.add_check(tx.by("farm"), device.device_id, cause=_HANDLED_CAUSE)
    return True


def _reserved_by_other(device: Device) -> Conflict:
    until = f" until {_moment(device.reserved_until)}" if device.reserved_until else ""
    return Conflict(
        f"{device.name} is reserved by {device.reserved_by}{until}",
        hint=f"ask {device.reserved_by}, or take it: farm device release {quote(device.name)} --force",
    )


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
