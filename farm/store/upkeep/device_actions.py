"""Device actions, and the settings that they found on devices; each change with its event."""

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.core.devices.device import Presence
from farm.core.upkeep.device_action import DeviceAction, DeviceActionEvent, DeviceActionId, DeviceActionKind
from farm.core.upkeep.device_settings import DeviceSettingsRecord
from farm.database.rows import find_record, to_record
from farm.database.tables import device_actions, devices
from farm.database.transaction import Tx
from farm.store.operations.events import record_event


def find_device_action(connection: Connection, device_action_id: DeviceActionId) -> DeviceAction | None:
    """Return a device action, or None."""
    query = sa.select(device_actions).where(device_actions.c.device_action_id == device_action_id)
    return find_record(connection, DeviceAction, query)


def find_open_device_action(
    connection: Connection, device_id: DeviceId, kind: DeviceActionKind
) -> DeviceAction | None:
    """Return the open action of a kind on a device, or None."""
    query = sa.select(device_actions).where(
        device_actions.c.device_id == device_id,
        device_actions.c.kind == kind,
        device_actions.c.finished_at.is_(None),
    )
    return find_record(connection, DeviceAction, query)


def find_last_device_action(
    connection: Connection, device_id: DeviceId, kind: DeviceActionKind
) -> DeviceAction | None:
    """Return the last action of a kind on a device, or None."""
    query = (
        sa.select(device_actions)
        .where(device_actions.c.device_id == device_id, device_actions.c.kind == kind)
        .order_by(device_actions.c.device_action_id.desc())
        .limit(1)
    )
    return find_record(connection, DeviceAction, query)


_OPEN_QUERY = (
    sa.select(device_actions)
    .where(device_actions.c.finished_at.is_(None))
    .order_by(device_actions.c.device_action_id)
)
_OPEN_OF_HOST_QUERY = _OPEN_QUERY.join(devices, devices.c.device_id == device_actions.c.device_id).where(
    devices.c.host_id == sa.bindparam("host_id")
)


def open_device_actions(
    connection: Connection, *, host_id: HostId | None = None, device_id: DeviceId | None = None
) -> list[DeviceAction]:
    """Return the open actions, oldest first: all, or those of one host or device."""
    query = _OPEN_QUERY if host_id is None else _OPEN_OF_HOST_QUERY
    if device_id is not None:
        query = query.where(device_actions.c.device_id == device_id)
    return [to_record(DeviceAction, row) for row in connection.execute(query, {"host_id": host_id})]


def add_device_action(
    tx: Tx, device_id: DeviceId, kind: DeviceActionKind, *, by: str, reason: str | None = None
) -> DeviceAction:
    """Add an open action.

    Raises:
        sqlalchemy.exc.IntegrityError: the device has an open action of that kind.
    """
    row = tx.connection.execute(
        device_actions.insert()
        .values(device_id=device_id, kind=kind, requested_by=by, requested_at=tx.now)
        .returning(device_actions)
    ).one()
    action = to_record(DeviceAction, row)
    _record(tx, action, DeviceActionEvent.REQUESTED, reason)
    return action


def finish_device_action(
    tx: Tx,
    device_action: DeviceAction,
    *,
    done: str | None = None,
    error: str | None = None,
    freed_bytes: int | None = None,
) -> bool:
    """Record the end of an action with `done` or `error`; False if it had ended already."""
    update = tx.connection.execute(
        device_actions.update()
        .where(
            device_actions.c.device_action_id == device_action.device_action_id,
            device_actions.c.finished_at.is_(None),
        )
        .values(finished_at=tx.now, done=done, error=error, freed_bytes=freed_bytes)
    )
    if update.rowcount == 1:
        kind = DeviceActionEvent.FAILED if error is not None else DeviceActionEvent.DONE
        _record(tx, device_action, kind, error or done)
    return update.rowcount == 1


def cpus_to_keep_idle(connection: Connection) -> set[str]:
    """Return the CPU domains to keep idle, because an online device there has an open action."""
    query = (
        sa.select(devices.c.cpu_domain)
        .join(device_actions, device_actions.c.device_id == devices.c.device_id)
        .where(
            device_actions.c.finished_at.is_(None),
            devices.c.presence == Presence.ONLINE,
            devices.c.cpu_domain.is_not(None),
        )
    )
    return set(connection.execute(query).scalars())


def _record(tx: Tx, device_action: DeviceAction, kind: DeviceActionEvent, detail: str | None = None) -> None:
    # The subject is the device, to whose history the action belongs.
    cause = f"device action {device_action.device_action_id}, {device_action.kind}"
    if detail:
        cause += f": {detail}"
    record_event(tx, kind, device_action.device_id, cause=cause)


_RECORD = TypeAdapter(DeviceSettingsRecord)


def find_settings_record(connection: Connection, device_id: DeviceId) -> DeviceSettingsRecord | None:
    """Return the record of a device's settings; None if they were never checked."""
    document = connection.execute(
        sa.select(devices.c.settings_record).where(devices.c.device_id == device_id)
    ).scalar_one_or_none()
    return None if document is None else _RECORD.validate_python(document, strict=False)


def put_settings_record(connection: Connection, device_id: DeviceId, record: DeviceSettingsRecord) -> None:
    """Replace the record; its event is that of the device action."""
    document = _RECORD.dump_python(record, mode="json")
    connection.execute(
        devices.update().where(devices.c.device_id == device_id).values(settings_record=document)
    )
