"""What operators say of a phone's state themselves: that it is to be checked, or that it is clean."""

from datetime import datetime
from shlex import quote

from sqlalchemy.engine import Connection

from farm.core.devices.device import Admin, Presence
from farm.core.devices.host_state import HostState
from farm.core.errors import Conflict
from farm.services.devices.admin import device_change
from farm.services.devices.views import device_named
from farm.store.devices import devices
from farm.store.devices import transitions as device_transitions
from farm.store.devices.devices import Device
from farm.store.hosts import hosts
from farm.store.jobs import jobs
from farm.wire.documents.devices import DeviceChange, OperatorRequest


def request_check(
    connection: Connection, name: str, asked: OperatorRequest, *, now: datetime
) -> DeviceChange:
    """Queue a check of a phone before everything else; one that is open already is that.

    Raises:
        NotFound: there is no such phone.
        InvalidInput: several might be meant.
        Conflict: it could not be checked as it is now.
    """
    device = device_named(connection, name)
    if (obstacle := _obstacle(device)) is not None:
        raise obstacle
    cause = f"asked for by {asked.by}" + (f": {asked.reason}" if asked.reason else "")
    actor = f"user:{asked.by}"
    job_id = jobs.add_check(connection, device.device_id, now=now, cause=cause, actor=actor)
    if job_id is None:
        return device_change(connection, device, f"a check of {device.name} is queued already", changed=False)
    busy = "" if device.job_id is None else f", when job {device.job_id} has ended"
    return device_change(connection, device, f"{device.name} is checked next{busy}: job {job_id}")


def assert_clean(connection: Connection, name: str, asked: OperatorRequest, *, now: datetime) -> DeviceChange:
    """Take an operator's word that nothing of ours is left on a phone (I7), where no agent could look.

    Raises:
        NotFound: there is no such phone.
        InvalidInput: several might be meant.
        Conflict: a run may be alive there, or its agent can look itself.
    """
    device = device_named(connection, name)
    if device.cleaned_fence >= device.fence:
        return device_change(connection, device, f"{device.name} is clean already", changed=False)
    _refuse_unless_unreachable(connection, device)
    device_transitions.record_asserted_clean(
        connection, device, now=now, actor=f"user:{asked.by}", reason=asked.reason
    )
    after = devices.get_device(connection, device.device_id)
    return device_change(connection, after, f"{after.name} is taken for clean, by {asked.by}'s word")


def _obstacle(device: Device) -> Conflict | None:
    """Why a phone cannot be checked as it is."""
    name, host = device.name, device.host_id
    if device.admin is not Admin.ACTIVE:
        return Conflict(f"{name} is {device.admin}", hint="only phones of the pool are checked")
    if device.reserved_by is not None:
        return Conflict(
            f"{name} is reserved by {device.reserved_by}", hint="it is checked when the reservation ends"
        )
    if not device.session_live:
        return Conflict(f"the agent on {host} is not connected", hint="`farm host list` shows since when")
    if device.presence is not Presence.ONLINE:
        return Conflict(
            f"{name} is {device.presence}", hint=f"`farm device show {quote(name)}` says what to do"
        )
    if device.host_state is not HostState.ACTIVE:
        return Conflict(f"host {host} is {device.host_state}", hint=f"farm host activate {host}")
    return None


def _refuse_unless_unreachable(connection: Connection, device: Device) -> None:
    """While an agent may have a run there, nobody's word counts."""
    if device.job_id is not None:
        raise Conflict(
            f"job {device.job_id} is on {device.name}", hint="wait for its end, or for its host to be lost"
        )
    session = hosts.current_session(connection, device.host_id)
    if session is not None:
        raise Conflict(
            f"the agent on {device.host_id} is {session.state}, and can see for itself",
            hint="it cleans the phone up when that is online; where it never will be again: "
            f"farm host retire {device.host_id}",
        )
