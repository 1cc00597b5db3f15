"""Administer a phone: whether it is in the pool, its label and tags."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.checks.check_schedule import is_due
from farm.core.devices.admin import TARGET_BY_EVENT, AdminEvent, advance
from farm.core.devices.device import Admin, Health, Presence
from farm.core.errors import Conflict, InvalidInput
from farm.core.jobs.job import JobState
from farm.core.operations.event import WorkEvent
from farm.database.transaction import Tx
from farm.services.devices.views import device_id_named, device_named, device_view
from farm.store.checks.failures import last_checks
from farm.store.devices import devices
from farm.store.devices import transitions as device_transitions
from farm.store.devices import workload as device_workload
from farm.store.devices.devices import Device
from farm.store.jobs import jobs
from farm.store.matrices import lazy_expansion
from farm.store.operations.events import record_event
from farm.wire.documents.devices import (
    MAX_TAGS,
    DeviceChange,
    LabelRequest,
    OperatorRequest,
    RetirementPlan,
    TagRequest,
)

_LOST_RACE_MESSAGE = "someone else changed it at the same moment"
_LOOK_AGAIN_HINT = "look again with `farm device show`, then decide"


def change_admin(tx: Tx, name: str, event: AdminEvent, request: OperatorRequest) -> DeviceChange:
    """Admit, cordon or uncordon a phone.

    Raises like `device_named`, and Conflict: it is in no state for that, or someone else was quicker.
    """
    device = device_named(tx.connection, name)
    if device.admin is TARGET_BY_EVENT[event]:
        return device_change(tx.connection, device, f"{device.name} is {device.admin} already", changed=False)
    _move(tx, device, event, request)
    after = devices.get_device(tx.connection, device.device_id)
    if after.presence is Presence.ONLINE:
        _queue_check_if_needed(tx, after)
    return device_change(tx.connection, after, f"{after.name} is {after.admin} now")


def retirement_plan(connection: Connection, name: str) -> RetirementPlan:
    """Return what retiring a device would end. Raises like `device_named`."""
    device = device_named(connection, name)
    waiting = device_workload.count_waiting(connection, [device.device_id])
    return RetirementPlan(
        device=device_view(connection, device),
        queued_jobs=sum(waiting.values()),
        matrices=tuple(sorted(matrix_id for matrix_id in waiting if matrix_id is not None)),
    )


def retire(tx: Tx, name: str, request: OperatorRequest) -> DeviceChange:
    """Retire a phone permanently: what waits for it is cancelled, a run under way goes on to its end.

    Raises like `device_named`, and Conflict: someone else holds it, or was quicker.
    """
    device = device_named(tx.connection, name)
    if device.admin is Admin.RETIRED:
        return device_change(tx.connection, device, f"{device.name} is retired already", changed=False)
    if device.reserved_by not in (None, request.by):
        raise Conflict(
            f"{device.name} is reserved by {device.reserved_by}",
            hint=f"ask {device.reserved_by} to release it",
        )
    _move(tx, device, AdminEvent.RETIRED, request)
    actor = f"user:{request.by}"
    device_transitions.end_reservation(tx.by(actor), device, cause="it is retired")
    cancelled = _cancel_lazy_expansions(tx.by(actor), device.device_id)
    cancelled += _cancel_jobs(tx.by(actor), device.device_id)
    after = devices.get_device(tx.connection, device.device_id)
    message = f"{after.name} is retired now; {cancelled} queued jobs were cancelled"
    message += "" if after.job_id is None else f", and job {after.job_id} runs to its end"
    return device_change(tx.connection, after, message)


def cancel_jobs_of_retired(tx: Tx) -> None:
    """End what was queued for retired phones after they were retired, such as another try of a job."""
    for device_id in device_workload.retired_with_jobs(tx.connection):
        _cancel_jobs(tx.by("farm"), device_id)


def change_label(tx: Tx, name: str, request: LabelRequest) -> DeviceChange:
    """Set or clear the label of a device.

    Raises like `device_named`, and Conflict: another phone has that name, or someone else was quicker.
    """
    device, label = device_named(tx.connection, name), request.label
    if device.label == label:
        return device_change(
            tx.connection, device, f"{device.device_id} has {_label_text(label)} already", changed=False
        )
    if label is not None:
        _check_unused(tx.connection, device, label)
    _put_label(tx, device, request)
    after = devices.get_device(tx.connection, device.device_id)
    return device_change(tx.connection, after, f"{after.device_id} has {_label_text(label)} now")


def change_tags(tx: Tx, name: str, request: TagRequest) -> DeviceChange:
    """Add and remove tags. Raises like `device_named`, and InvalidInput: it would have too many."""
    device_id = device_id_named(tx.connection, name)
    device_transitions.lock_device(tx.connection, device_id)
    device = devices.get_device(tx.connection, device_id)
    tags = sorted((set(device.tags) | set(request.add)) - set(request.remove))
    if len(tags) > MAX_TAGS:
        raise InvalidInput(f"{device.name} would have {len(tags)} tags, {MAX_TAGS} at most")
    if tags == sorted(device.tags):
        return device_change(
            tx.connection, device, f"{device.name} has {_tags_text(tags)} already", changed=False
        )
    device_transitions.put_tags(tx.by(f"user:{request.by}"), device, tags, reason=request.reason)
    after = devices.get_device(tx.connection, device_id)
    return device_change(tx.connection, after, f"{after.name} has {_tags_text(tags)} now")


def device_change(
    connection: Connection, device: Device, message: str, *, changed: bool = True
) -> DeviceChange:
    """Return the result of a request."""
    return DeviceChange(changed=changed, message=message, device=device_view(connection, device))


def _move(tx: Tx, device: Device, event: AdminEvent, request: OperatorRequest) -> None:
    if advance(device.admin, event) is None:
        verb = event.removeprefix("device_")
        raise Conflict(f"{device.name} is {device.admin}: that cannot be {verb}", hint=_LOOK_AGAIN_HINT)
    actor = f"user:{request.by}"
    if device_transitions.move_admin(tx.by(actor), device, event, cause=request.reason) is None:
        raise Conflict(f"{device.name}: {_LOST_RACE_MESSAGE}", hint=_LOOK_AGAIN_HINT)


def _cancel_lazy_expansions(tx: Tx, device_id: DeviceId) -> int:
    """Have nothing more queued there; jobs that never had a row have no event, so their matrices have one."""
    left_by_matrix = lazy_expansion.remaining_counts_on(tx.connection, device_id)
    for matrix_id, left in left_by_matrix.items():
        lazy_expansion.cancel_lazy_expansion(tx, matrix_id, device_id=device_id)
        cause = f"{device_id}: {left} jobs that were not queued yet, because it was retired"
        record_event(tx, WorkEvent.MATRIX_CANCELLED, matrix_id, cause=cause)
    return sum(left_by_matrix.values())


def _cancel_jobs(tx: Tx, device_id: DeviceId) -> int:
    message = f"{device_id} was retired"
    cancelled = jobs.cancel_jobs(
        tx, None, JobState.QUEUED, device_id=device_id, code="device.retired", message=message
    )
    return len(cancelled)


def _check_unused(connection: Connection, device: Device, label: str) -> None:
    """Refuse a label that another device has: it must mean one device."""
    for other in devices.list_devices(connection):
        if other.device_id != device.device_id and label in (other.device_id, other.label):
            raise Conflict(f"{label!r} is {other.device_id} already", hint="choose another label")


def _put_label(tx: Tx, device: Device, request: LabelRequest) -> None:
    with tx.connection.begin_nested() as savepoint:
        try:
            if device_transitions.put_label(
                tx.by(f"user:{request.by}"), device, request.label, reason=request.reason
            ):
                return
        except sa.exc.IntegrityError:
            savepoint.rollback()
    raise Conflict(f"{device.name}: {_LOST_RACE_MESSAGE}", hint=_LOOK_AGAIN_HINT)


def _label_text(label: str | None) -> str:
    return "no label" if label is None else f"the label {label!r}"


def _tags_text(tags: list[str]) -> str:
    return f"the tags {', '.join(tags)}" if tags else "no tags"


def _queue_check_if_needed(tx: Tx, device: Device) -> None:
    """Queue a check of an online phone whose health only a check can tell.

    It counts as one that has come back: a person may have fixed it in between.
    """
    if device.admin is not Admin.ACTIVE or device.health is Health.GOOD:
        return
    if is_due(device.health, last_checks(tx.connection, device.device_id), arrived=True, now=tx.now):
        jobs.add_check(tx.by("farm"), device.device_id, cause=f"its health is {device.health}")
