"""An operator accepts what a phone's golden run takes now: a band of its own begins."""

from datetime import datetime
from shlex import quote

from sqlalchemy.engine import Connection

from farm.core.checks.reference_run import ReferenceRun
from farm.core.devices.device import Admin, Health
from farm.core.errors import Conflict
from farm.core.operations.alarm import AlarmKind, AlarmSubject
from farm.services.checks.requested import request_check
from farm.services.devices.admin import device_change
from farm.services.devices.views import device_named
from farm.services.operations.alarms import clear_alarm
from farm.store.checks import reference_runs
from farm.store.devices import devices
from farm.store.devices import transitions as device_transitions
from farm.store.devices.devices import Device
from farm.wire.documents.devices import DeviceChange, OperatorRequest, RebaselineRequest


def rebaseline(connection: Connection, name: str, asked: RebaselineRequest, *, now: datetime) -> DeviceChange:
    """Have a phone compared with its own runs from now on; what was measured before stays as it is.

    Raises:
        NotFound: there is no such phone.
        InvalidInput: several might be meant.
        Conflict: it has no golden run that could be accepted, is retired, or somebody else was quicker.
    """
    device_id = device_named(connection, name).device_id
    device_transitions.lock_device(connection, device_id)
    device = devices.get_device(connection, device_id)
    if device.admin is Admin.RETIRED:
        raise Conflict(f"{device.name} is retired", hint=f"farm device admit {quote(device.name)}")
    last = _last_run(connection, device)
    actor, was = f"user:{asked.by}", last.verdict.replace("_", " ")
    level = f"{last.value_ns / 1e6:.1f} ms, which was {was}"
    if not device_transitions.rebaseline_device(
        connection, device, level, now=now, actor=actor, reason=asked.reason
    ):
        raise Conflict(f"{device.name}: somebody else accepted its level at the same moment")
    cause = f"{asked.by} accepted its level: {asked.reason}"
    clear_alarm(connection, AlarmKind.REFERENCE_DRIFT, AlarmSubject.DEVICE, device_id, cause=cause, now=now)
    said = f"{device.name} is compared with its own reference runs from now on; the last took {level}"
    after = devices.get_device(connection, device_id)
    return device_change(connection, after, said + _queue_check(connection, after, asked, now=now))


def _last_run(connection: Connection, device: Device) -> ReferenceRun:
    """What is accepted."""
    found = reference_runs.own_runs(connection, device.device_id, limit=1)
    if not found:
        check = f"farm device check {quote(device.name)}"
        raise Conflict(f"{device.name} has no golden run yet: there is nothing to accept", hint=check)
    return found[0]


def _queue_check(connection: Connection, device: Device, asked: OperatorRequest, *, now: datetime) -> str:
    """Have a phone checked whose health the old band may have cost."""
    if device.health is Health.GOOD:
        return ""
    try:
        return f". {request_check(connection, device.device_id, asked, now=now).said}"
    except Conflict as obstacle:
        return f". It has yet to pass a check, and {obstacle.message}"
