"""What operators decide about a phone: whether it is in the pool, and what it is called."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.checks.check_schedule import is_due
from farm.core.devices.admin import TARGET_BY_EVENT, AdminEvent, advance
from farm.core.devices.device import Admin, Health, Presence
from farm.core.errors import Conflict, InvalidInput
from farm.core.jobs.job import JobState
from farm.core.operations.event import EventSubject, WorkEvent
from farm.services.devices.views import device_named, device_view
from farm.store.checks.outcomes import last_checks
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

_LOST_RACE_MESSAGE = "somebody else changed it at the same moment"
_LOOK_AGAIN_HINT = "look again with `farm device show`, then decide"


def change_admin(
    connection: Connection, name: str, event: AdminEvent, asked: OperatorRequest, *, now: datetime
) -> DeviceChange:
    """Admit, cordon or uncordon a phone.

    Raises:
        NotFound: there is no such phone.
        InvalidInput: several might be meant.
        Conflict: it is in no state for that, or somebody else was quicker.
    """
    device = device_named(connection, name)
    if device.admin is TARGET_BY_EVENT[event]:
        return device_change(connection, device, f"{device.name} is {device.admin} already", changed=False)
    _move(connection, device, event, asked, now=now)
    after = devices.get_device(connection, device.device_id)
    if after.presence is Presence.ONLINE:
        # As one that comes back: somebody may have seen to it meanwhile.
        _queue_check_if_needed(connection, after, arrived=True, now=now)
    return device_change(connection, after, f"{after.name} is {after.admin} now")


def retirement_plan(connection: Connection, name: str) -> RetirementPlan:
    """What retiring a phone would end.

    Raises:
        NotFound: there is no such phone.
        InvalidInput: several might be meant.
    """
    device = device_named(connection, name)
    waiting = device_workload.count_waiting(connection, [device.device_id])
    return RetirementPlan(
        device=device_view(connection, device),
        queued_jobs=sum(waiting.values()),
        matrices=tuple(sorted(matrix_id for matrix_id in waiting if matrix_id is not None)),
    )


def retire(connection: Connection, name: str, asked: OperatorRequest, *, now: datetime) -> DeviceChange:
    """Take a phone out of the farm for good: what waits for it is cancelled, a run under way ends by itself.

    Raises:
        NotFound: there is no such phone.
        InvalidInput: several might be meant.
        Conflict: somebody else holds it, or was quicker.
    """
    device = device_named(connection, name)
    if device.admin is Admin.RETIRED:
        return device_change(connection, device, f"{device.name} is retired already", changed=False)
    if device.reserved_by not in (None, asked.by):
        raise Conflict(
            f"{device.name} is reserved by {device.reserved_by}",
            hint=f"ask {device.reserved_by} to release it",
        )
    _move(connection, device, AdminEvent.RETIRED, asked, now=now)
    actor = f"user:{asked.by}"
    device_transitions.end_reservation(connection, device, now=now, actor=actor, cause="it is retired")
    cancelled = _cancel_lazy_expansions(connection, device.device_id, now=now, actor=actor)
    cancelled += _cancel_jobs(connection, device.device_id, now=now, actor=actor)
    after = devices.get_device(connection, device.device_id)
    said = f"{after.name} is retired now; {cancelled} queued jobs were cancelled"
    said += "" if after.job_id is None else f", and job {after.job_id} runs to its end"
    return device_change(connection, after, said)


def cancel_jobs_of_retired(connection: Connection, *, now: datetime) -> None:
    """End what was queued for retired phones after they were retired, such as another try of a job."""
    for device_id in device_workload.retired_with_jobs(connection):
        _cancel_jobs(connection, device_id, now=now, actor="farm")


def change_label(connection: Connection, name: str, asked: LabelRequest, *, now: datetime) -> DeviceChange:
    """Name a phone, or take its name away.

    Raises:
        NotFound: there is no such phone.
        InvalidInput: several might be meant.
        Conflict: another phone has that name, or somebody else was quicker.
    """
    device, label = device_named(connection, name), asked.label
    if device.label == label:
        return device_change(
            connection, device, f"{device.device_id} has {_quoted(label)} already", changed=False
        )
    if label is not None:
        _check_unused(connection, device, label)
    _put_label(connection, device, asked, now=now)
    after = devices.get_device(connection, device.device_id)
    return device_change(connection, after, f"{after.device_id} has {_quoted(label)} now")


def change_tags(connection: Connection, name: str, asked: TagRequest, *, now: datetime) -> DeviceChange:
    """Add and remove tags.

    Raises:
        NotFound: there is no such phone.
        InvalidInput: several might be meant, or it would have too many.
    """
    device_id = device_named(connection, name).device_id
    device_transitions.lock_device(connection, device_id)
    device = devices.get_device(connection, device_id)
    tags = sorted((set(device.tags) | set(asked.add)) - set(asked.remove))
    if len(tags) > MAX_TAGS:
        raise InvalidInput(f"{device.name} would have {len(tags)} tags, {MAX_TAGS} at most")
    if tags == sorted(device.tags):
        return device_change(connection, device, f"{device.name} has {_listed(tags)} already", changed=False)
    device_transitions.put_tags(
        connection, device, tags, now=now, actor=f"user:{asked.by}", reason=asked.reason
    )
    after = devices.get_device(connection, device_id)
    return device_change(connection, after, f"{after.name} has {_listed(tags)} now")


def device_change(connection: Connection, device: Device, said: str, *, changed: bool = True) -> DeviceChange:
    """What became of a request."""
    return DeviceChange(changed=changed, said=said, device=device_view(connection, device))


def _move(
    connection: Connection, device: Device, event: AdminEvent, asked: OperatorRequest, *, now: datetime
) -> None:
    if advance(device.admin, event) is None:
        verb = event.removeprefix("device_")
        raise Conflict(f"{device.name} is {device.admin}: that cannot be {verb}", hint=_LOOK_AGAIN_HINT)
    actor = f"user:{asked.by}"
    if (
        device_transitions.move_admin(connection, device, event, now=now, actor=actor, cause=asked.reason)
        is None
    ):
        raise Conflict(f"{device.name}: {_LOST_RACE_MESSAGE}", hint=_LOOK_AGAIN_HINT)


def _cancel_lazy_expansions(connection: Connection, device_id: DeviceId, *, now: datetime, actor: str) -> int:
    """Have nothing more queued there; jobs that never had a row have no event, so their matrices have one."""
    left_by_matrix = lazy_expansion.remaining_counts_on(connection, device_id)
    for matrix_id, left in left_by_matrix.items():
        lazy_expansion.cancel_lazy_expansion(connection, matrix_id, device_id=device_id, now=now)
        record_event(
            connection,
            at=now,
            actor=actor,
            kind=WorkEvent.MATRIX_CANCELLED,
            subject=EventSubject.MATRIX,
            subject_id=matrix_id,
            cause=f"{device_id}: {left} jobs that were not queued yet, because it was retired",
        )
    return sum(left_by_matrix.values())


def _cancel_jobs(connection: Connection, device_id: DeviceId, *, now: datetime, actor: str) -> int:
    message = f"{device_id} was retired"
    return jobs.cancel_jobs(
        connection,
        None,
        JobState.QUEUED,
        device_id=device_id,
        code="device.retired",
        message=message,
        now=now,
        actor=actor,
    )


def _check_unused(connection: Connection, device: Device, label: str) -> None:
    """A name must mean one phone."""
    for other in devices.list_devices(connection):
        if other.device_id != device.device_id and label in (other.device_id, other.label):
            raise Conflict(f"{label!r} is {other.device_id} already", hint="choose another label")


def _put_label(connection: Connection, device: Device, asked: LabelRequest, *, now: datetime) -> None:
    with connection.begin_nested() as savepoint:
        try:
            if device_transitions.put_label(
                connection, device, asked.label, now=now, actor=f"user:{asked.by}", reason=asked.reason
            ):
                return
        except sa.exc.IntegrityError:
            savepoint.rollback()
    raise Conflict(f"{device.name}: {_LOST_RACE_MESSAGE}", hint=_LOOK_AGAIN_HINT)


def _quoted(label: str | None) -> str:
    return "no label" if label is None else f"the label {label!r}"


def _listed(tags: list[str]) -> str:
    return f"the tags {', '.join(tags)}" if tags else "no tags"


def _queue_check_if_needed(connection: Connection, device: Device, *, arrived: bool, now: datetime) -> None:
    """Queue a check of an online phone whose health only a check can tell.

    A phone that failed its check is checked again when it comes back: somebody may have seen to it. Others
    are checked again some time after a check that ended without an answer; the more in a row, the later.

    Args:
        device: the phone, online now.
        arrived: it was not online before.
    """
    if device.admin is not Admin.ACTIVE or device.health is Health.GOOD:
        return
    if is_due(device.health, last_checks(connection, device.device_id), arrived=arrived, now=now):
        jobs.add_check(connection, device.device_id, now=now, cause=f"its health is {device.health}")
