"""Requests of operators on a phone's state: to have it checked, to declare it clean, to re-baseline it.

Re-baselined, it has its latest reference run accepted, and a range of its own begins.
"""

from shlex import quote

from sqlalchemy.engine import Connection

from farm.core.checks.reference_run import ReferenceRun
from farm.core.devices.device import Admin, Health, Presence
from farm.core.devices.host_state import HostState
from farm.core.errors import Conflict
from farm.core.operations.alarm import AlarmKind, AlarmSubject
from farm.database.transaction import Tx
from farm.services.devices.admin import device_change
from farm.services.devices.views import device_id_named, device_named
from farm.store.checks import reference_runs
from farm.store.devices import devices
from farm.store.devices import transitions as device_transitions
from farm.store.devices.devices import Device
from farm.store.hosts import hosts
from farm.store.jobs import jobs
from farm.store.operations.alarms import clear_alarm
from farm.wire.documents.devices import DeviceChange, OperatorRequest, RebaselineRequest


def request_check(tx: Tx, name: str, request: OperatorRequest) -> DeviceChange:
    """Queue a check of a phone before everything else; one that is open already is that.

    Raises like `device_named`, and Conflict: it could not be checked as it is now.
    """
    device = device_named(tx.connection, name)
    if (obstacle := _obstacle(device)) is not None:
        raise obstacle
    cause = f"asked for by {request.by}" + (f": {request.reason}" if request.reason else "")
    actor = f"user:{request.by}"
    job_id = jobs.add_check(tx.by(actor), device.device_id, cause=cause)
    if job_id is None:
        return device_change(
            tx.connection, device, f"a check of {device.name} is queued already", changed=False
        )
    busy = "" if device.job_id is None else f", when job {device.job_id} has ended"
    return device_change(tx.connection, device, f"{device.name} is checked next{busy}: job {job_id}")


def assert_clean(tx: Tx, name: str, request: OperatorRequest) -> DeviceChange:
    """Take an operator's word that nothing of ours is left on a phone (I7), where no agent could look.

    Raises like `device_named`, and Conflict: a run may be alive there, or its agent can look itself.
    """
    device = device_named(tx.connection, name)
    if device.cleaned_fence >= device.fence:
        return device_change(tx.connection, device, f"{device.name} is clean already", changed=False)
    _refuse_unless_unreachable(tx.connection, device)
    device_transitions.record_asserted_clean(tx.by(f"user:{request.by}"), device, reason=request.reason)
    after = devices.get_device(tx.connection, device.device_id)
    return device_change(tx.connection, after, f"{after.name} is taken for clean, by {request.by}'s word")


def _obstacle(device: Device) -> Conflict | None:
    """Return the reason why a phone cannot be checked as it is."""
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
    """Refuse while an agent may have a run there: no operator's word counts then."""
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


def rebaseline(tx: Tx, name: str, request: RebaselineRequest) -> DeviceChange:
    """Have a phone compared with its own runs from now on; what was measured before stays as it is.

    Raises like `device_named`, and Conflict: it has no reference run that could be accepted, is retired, or
    someone else was quicker.
    """
    device_id = device_id_named(tx.connection, name)
    device_transitions.lock_device(tx.connection, device_id)
    device = devices.get_device(tx.connection, device_id)
    if device.admin is Admin.RETIRED:
        raise Conflict(f"{device.name} is retired", hint=f"farm device admit {quote(device.name)}")
    last = _last_run(tx.connection, device)
    actor, was = f"user:{request.by}", last.verdict.replace("_", " ")
    level = f"{last.value_ns / 1e6:.1f} ms, which was {was}"
    if not device_transitions.rebaseline_device(tx.by(actor), device, level, reason=request.reason):
        raise Conflict(f"{device.name}: someone else re-baselined it at the same moment")
    cause = f"{request.by} accepted its level: {request.reason}"
    clear_alarm(tx.by("farm"), (AlarmKind.REFERENCE_DRIFT, AlarmSubject.DEVICE, device_id), cause=cause)
    message = f"{device.name} is compared with its own reference runs from now on; the last took {level}"
    after = devices.get_device(tx.connection, device_id)
    return device_change(tx.connection, after, message + _queue_check(tx, after, request))


def _last_run(connection: Connection, device: Device) -> ReferenceRun:
    """Return the run that is accepted."""
    runs = reference_runs.own_runs(connection, device.device_id, limit=1)
    if not runs:
        check = f"farm device check {quote(device.name)}"
        raise Conflict(f"{device.name} has no reference run yet: there is nothing to accept", hint=check)
    return runs[0]


def _queue_check(tx: Tx, device: Device, request: OperatorRequest) -> str:
    """Have a phone checked whose health the old range may have cost."""
    if device.health is Health.GOOD:
        return ""
    try:
        return f". {request_check(tx, device.device_id, request).message}"
    except Conflict as obstacle:
        return f". It has yet to pass a check, and {obstacle.message}"
