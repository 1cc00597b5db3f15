"""Device actions that operators request of agents; open until an agent reports them or they expire."""

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NewType

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.core.devices.device import Presence
from farm.core.operations.event import DeviceEvent, EventSubject
from farm.core.upkeep.device_action import DeviceActionKind
from farm.database.tables import device_actions, devices
from farm.store.operations.events import record_event

DeviceActionId = NewType("DeviceActionId", int)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAction:
    """A device action's row; a finished one has a result or an error."""

    device_action_id: DeviceActionId
    device_id: DeviceId
    kind: DeviceActionKind
    requested_by: str
    requested_at: datetime
    finished_at: datetime | None
    done: str | None
    error: str | None
    freed_bytes: int | None


def find_device_action(connection: Connection, device_action_id: DeviceActionId) -> DeviceAction | None:
    """Return a device action, or None."""
    row = connection.execute(
        sa.select(device_actions).where(device_actions.c.device_action_id == device_action_id)
    ).one_or_none()
    return None if row is None else _device_action(row)


def find_open_device_action(
    connection: Connection, device_id: DeviceId, kind: DeviceActionKind
) -> DeviceAction | None:
    """Return the open action of a kind on a device, or None."""
    row = connection.execute(
        sa.select(device_actions).where(
            device_actions.c.device_id == device_id,
            device_actions.c.kind == kind,
            device_actions.c.finished_at.is_(None),
        )
    ).one_or_none()
    return None if row is None else _device_action(row)


def find_last_device_action(
    connection: Connection, device_id: DeviceId, kind: DeviceActionKind
) -> DeviceAction | None:
    """Return the last action of a kind on a device, or None."""
    row = connection.execute(
        sa.select(device_actions)
        .where(device_actions.c.device_id == device_id, device_actions.c.kind == kind)
        .order_by(device_actions.c.device_action_id.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else _device_action(row)


def open_device_actions(
    connection: Connection, *, host_id: HostId | None = None, device_id: DeviceId | None = None
) -> list[DeviceAction]:
    """Return the open actions, oldest first: all, or those of one host or device."""
    query = _open_query() if host_id is None else _open_of_host_query()
    if device_id is not None:
        query = query.where(device_actions.c.device_id == device_id)
    return [_device_action(row) for row in connection.execute(query, {"host_id": host_id})]


@cache
def _open_query() -> sa.Select[Any]:
    return (
        sa.select(device_actions)
        .where(device_actions.c.finished_at.is_(None))
        .order_by(device_actions.c.device_action_id)
    )


@cache
def _open_of_host_query() -> sa.Select[Any]:
    """Build the query once: every exchange runs it."""
    return (
        _open_query()
        .join(devices, devices.c.device_id == device_actions.c.device_id)
        .where(devices.c.host_id == sa.bindparam("host_id"))
    )


def add_device_action(
    connection: Connection,
    device_id: DeviceId,
    kind: DeviceActionKind,
    *,
    by: str,
    now: datetime,
    actor: str,
    reason: str | None = None,
) -> DeviceAction:
    """Add an open action.

    Raises:
        sqlalchemy.exc.IntegrityError: the device has an open action of that kind.
    """
    row = connection.execute(
        device_actions.insert()
        .values(device_id=device_id, kind=kind, requested_by=by, requested_at=now)
        .returning(device_actions)
    ).one()
    action = _device_action(row)
    _record(connection, action, DeviceEvent.ACTION_REQUESTED, reason, now=now, actor=actor)
    return action


def finish_device_action(
    connection: Connection,
    device_action: DeviceAction,
    *,
    now: datetime,
    actor: str,
    done: str | None = None,
    error: str | None = None,
    freed_bytes: int | None = None,
) -> bool:
    """Record the end of an action with `done` or `error`; False if it had ended already."""
    update = connection.execute(
        device_actions.update()
        .where(
            device_actions.c.device_action_id == device_action.device_action_id,
            device_actions.c.finished_at.is_(None),
        )
        .values(finished_at=now, done=done, error=error, freed_bytes=freed_bytes)
    )
    if update.rowcount == 1:
        kind = DeviceEvent.ACTION_FAILED if error is not None else DeviceEvent.ACTION_DONE
        _record(connection, device_action, kind, error or done, now=now, actor=actor)
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


def _device_action(row: sa.Row[Any]) -> DeviceAction:
    return DeviceAction(
        device_action_id=row.device_action_id,
        device_id=row.device_id,
        kind=DeviceActionKind(row.kind),
        requested_by=row.requested_by,
        requested_at=row.requested_at,
        finished_at=row.finished_at,
        done=row.done,
        error=row.error,
        freed_bytes=row.freed_bytes,
    )


def _record(
    connection: Connection,
    device_action: DeviceAction,
    kind: DeviceEvent,
    detail: str | None = None,
    *,
    now: datetime,
    actor: str,
) -> None:
    # The subject is the device, to whose history the action belongs.
    record_event(
        connection,
        at=now,
        actor=actor,
        kind=kind,
        subject=EventSubject.DEVICE,
        subject_id=device_action.device_id,
        cause=f"device action {device_action.device_action_id}, {device_action.kind}"
        + (f": {detail}" if detail else ""),
    )
