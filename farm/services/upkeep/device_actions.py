"""Device actions that operators request: requested once, handed out when the phone is free, ended once."""

from dataclasses import asdict
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.errors import Conflict, NotFound
from farm.core.upkeep.device_action import DeviceAction, DeviceActionId, DeviceActionKind, obstacle
from farm.core.upkeep.device_settings import settings_to_restore
from farm.database.notifications import notify_hosts_of_devices
from farm.database.transaction import Tx
from farm.services.devices.views import device_named
from farm.store.devices import devices
from farm.store.devices import workload as device_workload
from farm.store.devices.devices import Device
from farm.store.upkeep import device_actions
from farm.store.upkeep.device_actions import find_settings_record
from farm.wire.documents.devices import DeviceActionView, OperatorRequest

#: A person waits for it; one who comes back later asks again.
EXPIRES_AFTER = timedelta(minutes=10)
#: Actions that change a phone that a person holds.
_DISTURBING_KINDS = (DeviceActionKind.CLEAN, DeviceActionKind.PROVISION, DeviceActionKind.RESTORE_SETTINGS)


def request_device_action(
    tx: Tx, name: str, kind: DeviceActionKind, request: OperatorRequest
) -> DeviceActionView:
    """Have something done on a phone; while that is still to be done, asking again changes nothing.

    Raises like `device_named`, and Conflict: someone else holds the phone, and it would disturb them.
    """
    device = device_named(tx.connection, name)
    if kind in _DISTURBING_KINDS and device.reserved_by not in (None, request.by):
        raise Conflict(
            f"{device.name} is reserved by {device.reserved_by}, whose work that would disturb",
            hint=f"ask {device.reserved_by}, or wait for the end of the hold",
        )
    if kind is DeviceActionKind.RESTORE_SETTINGS:
        check_restore(tx.connection, device)
    open_action = device_actions.find_open_device_action(tx.connection, device.device_id, kind)
    return device_action_view(tx.connection, open_action or _add(tx, device, kind, request))


def get_device_action(connection: Connection, device_action_id: int) -> DeviceActionView:
    """Return a device action and its result.

    Raises:
        NotFound: there is none.
    """
    device_action = device_actions.find_device_action(connection, DeviceActionId(device_action_id))
    if device_action is None:
        raise NotFound(f"there is no device action {device_action_id}")
    return device_action_view(connection, device_action)


def expire_device_actions(tx: Tx, *, up_since: datetime) -> None:
    """End what no agent did in time; nothing while the farm has not been up for as long."""
    for device_action in device_actions.open_device_actions(tx.connection):
        if tx.now - max(device_action.requested_at, up_since) >= EXPIRES_AFTER:
            waited_for = _waiting_for(tx.connection, device_action) or "its agent did not report it"
            minutes = EXPIRES_AFTER.total_seconds() / 60
            error = f"not done within {minutes:.0f} min: {waited_for}"
            if device_actions.finish_device_action(tx.by("farm"), device_action, error=error):
                # The phone may have its next job.
                notify_hosts_of_devices(tx.connection, [device_action.device_id])


def device_action_view(connection: Connection, device_action: DeviceAction) -> DeviceActionView:
    """Return a device action as people see it."""
    device = devices.find_device(connection, device_action.device_id)
    return DeviceActionView(
        **asdict(device_action),
        name=device.name if device else device_action.device_id,
        waiting_for=None if device_action.finished_at else _waiting_for(connection, device_action),
        expires_at=device_action.requested_at + EXPIRES_AFTER,
    )


def _add(tx: Tx, device: Device, kind: DeviceActionKind, request: OperatorRequest) -> DeviceAction:
    with tx.connection.begin_nested() as savepoint:
        try:
            return device_actions.add_device_action(
                tx.by(f"user:{request.by}"), device.device_id, kind, by=request.by, reason=request.reason
            )
        except sa.exc.IntegrityError:
            savepoint.rollback()
    open_action = device_actions.find_open_device_action(tx.connection, device.device_id, kind)
    if open_action is None:
        raise Conflict(f"a device action {kind} has just ended on {device.name}", hint="ask again")
    return open_action


def _waiting_for(connection: Connection, device_action: DeviceAction) -> str | None:
    device = devices.find_device(connection, device_action.device_id)
    return None if device is None else _obstacle(connection, device)


def _obstacle(connection: Connection, device: Device) -> str | None:
    """Return the reason why nothing may be done on a phone now, in words."""
    is_busy = device.cpu_domain is not None and device.cpu_domain in device_workload.unquiet_cpus(connection)
    return obstacle(device.state(cpu_busy=is_busy), host_id=device.host_id, job_id=device.job_id)


def check_restore(connection: Connection, device: Device) -> None:
    """Refuse an undo of nothing.

    Raises:
        Conflict: the farm has set nothing on the phone.
    """
    record = find_settings_record(connection, device.device_id)
    if record is None or not settings_to_restore(record.settings):
        raise Conflict(
            f"the farm has set nothing on {device.name}",
            hint=f"farm device provision {device.name} looks at its settings",
        )
