"""What operators have agents do on phones: asked once, handed out when the phone is free, ended once."""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.errors import Conflict, NotFound
from farm.core.upkeep.device_action import DeviceActionKind, obstacle
from farm.database.notifications import notify_hosts_of_devices
from farm.services.devices.views import device_named
from farm.services.upkeep.device_settings import check_restore
from farm.store.devices import capacity as device_capacity
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.upkeep import device_actions
from farm.store.upkeep.device_actions import DeviceAction, DeviceActionId
from farm.wire.documents.devices import DeviceActionView, OperatorRequest

#: A person waits for it; whoever comes back later asks again.
EXPIRES_AFTER = timedelta(minutes=10)
#: What changes a phone that somebody has.
_DISTURBING_KINDS = (DeviceActionKind.CLEAN, DeviceActionKind.PROVISION, DeviceActionKind.RESTORE_SETTINGS)


def request_device_action(
    connection: Connection, name: str, kind: DeviceActionKind, asked: OperatorRequest, *, now: datetime
) -> DeviceActionView:
    """Have something done on a phone; while that is still to be done, asking again changes nothing.

    Raises:
        NotFound: there is no such phone.
        InvalidInput: several might be meant.
        Conflict: somebody else holds the phone, and it would disturb them.
    """
    device = device_named(connection, name)
    if kind in _DISTURBING_KINDS and device.reserved_by not in (None, asked.by):
        raise Conflict(
            f"{device.name} is reserved by {device.reserved_by}, whose work that would disturb",
            hint=f"ask {device.reserved_by}, or wait for the end of the hold",
        )
    if kind is DeviceActionKind.RESTORE_SETTINGS:
        check_restore(connection, device)
    found = device_actions.find_open_device_action(connection, device.device_id, kind)
    return device_action_view(connection, found or _add(connection, device, kind, asked, now=now))


def get_device_action(connection: Connection, device_action_id: int) -> DeviceActionView:
    """An errand and what came of it.

    Raises:
        NotFound: there is none.
    """
    device_action = device_actions.find_device_action(connection, DeviceActionId(device_action_id))
    if device_action is None:
        raise NotFound(f"there is no errand {device_action_id}")
    return device_action_view(connection, device_action)


def expire_device_actions(connection: Connection, *, now: datetime, up_since: datetime) -> None:
    """End what nobody could see to in time; nothing while the farm has not been up for as long."""
    for device_action in device_actions.open_device_actions(connection):
        if now - max(device_action.requested_at, up_since) >= EXPIRES_AFTER:
            waited_for = _waiting_for(connection, device_action) or "its agent did not report it"
            minutes = EXPIRES_AFTER.total_seconds() / 60
            error = f"not done within {minutes:.0f} min: {waited_for}"
            if device_actions.finish_device_action(
                connection, device_action, now=now, actor="farm", error=error
            ):
                # The phone may have its next job.
                notify_hosts_of_devices(connection, [device_action.device_id])


def device_action_view(connection: Connection, device_action: DeviceAction) -> DeviceActionView:
    """An errand as people see it."""
    device = devices.find_device(connection, device_action.device_id)
    return DeviceActionView(
        device_action_id=device_action.device_action_id,
        device_id=device_action.device_id,
        name=device.name if device else device_action.device_id,
        kind=device_action.kind,
        requested_by=device_action.requested_by,
        requested_at=device_action.requested_at,
        finished_at=device_action.finished_at,
        done=device_action.done,
        error=device_action.error,
        freed_bytes=device_action.freed_bytes,
        waiting_for=None if device_action.finished_at else _waiting_for(connection, device_action),
        expires_at=device_action.requested_at + EXPIRES_AFTER,
    )


def _add(
    connection: Connection, device: Device, kind: DeviceActionKind, asked: OperatorRequest, *, now: datetime
) -> DeviceAction:
    with connection.begin_nested() as savepoint:
        try:
            return device_actions.add_device_action(
                connection,
                device.device_id,
                kind,
                by=asked.by,
                now=now,
                actor=f"user:{asked.by}",
                reason=asked.reason,
            )
        except sa.exc.IntegrityError:
            savepoint.rollback()
    found = device_actions.find_open_device_action(connection, device.device_id, kind)
    if found is None:
        raise Conflict(f"an errand of the kind {kind} has just ended on {device.name}", hint="ask again")
    return found


def _waiting_for(connection: Connection, device_action: DeviceAction) -> str | None:
    device = devices.find_device(connection, device_action.device_id)
    return None if device is None else _obstacle(connection, device)


def _obstacle(connection: Connection, device: Device) -> str | None:
    """Why nothing may be done on a phone now, in words."""
    is_busy = device.cpu_domain is not None and device.cpu_domain in device_capacity.unquiet_cpus(connection)
    return obstacle(device.state(cpu_busy=is_busy), host_id=device.host_id, job_id=device.job_id)
