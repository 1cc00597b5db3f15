"""Errands: what operators have agents do on phones; open until an agent reports them, or nobody came."""

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NewType

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.core.devices.device import Presence
from farm.core.operations.event import DeviceEvent, Subject
from farm.core.upkeep.device_action import ErrandKind
from farm.database.tables import devices, errands
from farm.store.operations.events import record_event

ErrandId = NewType("ErrandId", int)


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """An errand's row. Ended ones say what was done, or why not."""

    errand_id: ErrandId
    device_id: DeviceId
    kind: ErrandKind
    asked_by: str
    asked_at: datetime
    finished_at: datetime | None
    done: str | None
    error: str | None
    freed_bytes: int | None


def find_errand(connection: Connection, errand_id: ErrandId) -> Errand | None:
    """One errand."""
    row = connection.execute(sa.select(errands).where(errands.c.errand_id == errand_id)).one_or_none()
    return None if row is None else _errand(row)


def find_open_errand(connection: Connection, device_id: DeviceId, kind: ErrandKind) -> Errand | None:
    """The one of its kind that a device still has before it."""
    row = connection.execute(
        sa.select(errands).where(
            errands.c.device_id == device_id, errands.c.kind == kind, errands.c.finished_at.is_(None)
        )
    ).one_or_none()
    return None if row is None else _errand(row)


def find_last_errand(connection: Connection, device_id: DeviceId, kind: ErrandKind) -> Errand | None:
    """The newest of its kind that a device ever had."""
    row = connection.execute(
        sa.select(errands)
        .where(errands.c.device_id == device_id, errands.c.kind == kind)
        .order_by(errands.c.errand_id.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else _errand(row)


def open_errands(
    connection: Connection, *, host_id: HostId | None = None, device_id: DeviceId | None = None
) -> list[Errand]:
    """What is still to be done, oldest first; of one host, or one device, where asked."""
    query = _open() if host_id is None else _open_of_host()
    if device_id is not None:
        query = query.where(errands.c.device_id == device_id)
    return [_errand(row) for row in connection.execute(query, {"host_id": host_id})]


@cache
def _open() -> sa.Select[Any]:
    return sa.select(errands).where(errands.c.finished_at.is_(None)).order_by(errands.c.errand_id)


@cache
def _open_of_host() -> sa.Select[Any]:
    """Built once: every exchange asks."""
    return (
        _open()
        .join(devices, devices.c.device_id == errands.c.device_id)
        .where(devices.c.host_id == sa.bindparam("host_id"))
    )


def add_errand(
    connection: Connection,
    device_id: DeviceId,
    kind: ErrandKind,
    *,
    by: str,
    now: datetime,
    actor: str,
    reason: str | None = None,
) -> Errand:
    """Have something done.

    Raises:
        sqlalchemy.exc.IntegrityError: the device has an open errand of that kind.
    """
    row = connection.execute(
        errands.insert().values(device_id=device_id, kind=kind, asked_by=by, asked_at=now).returning(errands)
    ).one()
    added = _errand(row)
    _note(connection, added, DeviceEvent.ERRAND_ASKED, reason, now=now, actor=actor)
    return added


def end_errand(
    connection: Connection,
    errand: Errand,
    *,
    now: datetime,
    actor: str,
    done: str | None = None,
    error: str | None = None,
    freed_bytes: int | None = None,
) -> bool:
    """Note how an errand ended, by `done` or by `error`; False when it had ended already."""
    ended = connection.execute(
        errands.update()
        .where(errands.c.errand_id == errand.errand_id, errands.c.finished_at.is_(None))
        .values(finished_at=now, done=done, error=error, freed_bytes=freed_bytes)
    )
    if ended.rowcount == 1:
        kind = DeviceEvent.ERRAND_FAILED if error is not None else DeviceEvent.ERRAND_DONE
        _note(connection, errand, kind, error or done, now=now, actor=actor)
    return ended.rowcount == 1


def awaiting_cpus(connection: Connection) -> set[str]:
    """CPU domains that must fall silent, because a phone there is online and has an errand before it."""
    query = (
        sa.select(devices.c.cpu_domain)
        .join(errands, errands.c.device_id == devices.c.device_id)
        .where(
            errands.c.finished_at.is_(None),
            devices.c.presence == Presence.ONLINE,
            devices.c.cpu_domain.is_not(None),
        )
    )
    return set(connection.execute(query).scalars())


def _errand(row: sa.Row[Any]) -> Errand:
    return Errand(
        errand_id=row.errand_id,
        device_id=row.device_id,
        kind=ErrandKind(row.kind),
        asked_by=row.asked_by,
        asked_at=row.asked_at,
        finished_at=row.finished_at,
        done=row.done,
        error=row.error,
        freed_bytes=row.freed_bytes,
    )


def _note(
    connection: Connection,
    errand: Errand,
    kind: DeviceEvent,
    how: str | None = None,
    *,
    now: datetime,
    actor: str,
) -> None:
    # Told of the device: that is whose story it belongs to.
    record_event(
        connection,
        at=now,
        actor=actor,
        kind=kind,
        subject=Subject.DEVICE,
        subject_id=errand.device_id,
        cause=f"errand {errand.errand_id}, {errand.kind}" + (f": {how}" if how else ""),
    )
