"""Devices: one row each, with the facts of its current system build."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, DeviceId, FactsId, HostId, JobId
from farm.core.devices.condition import Condition
from farm.core.devices.device import Admin, DeviceFacts, DeviceState, Health, Presence
from farm.core.devices.host_state import OPEN_SESSION, HostState, SessionState
from farm.core.jobs.attempt import AttemptState
from farm.core.upkeep.recovery import Recovery
from farm.database.rows import is_among, to_record
from farm.database.tables import (
    attempts,
    device_actions,
    device_facts,
    devices,
    hosts,
    is_live,
    is_one_of,
    sessions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatus:
    """What decides whether a device can be given work: its row, its live job, and its host."""

    device_id: DeviceId
    host_id: HostId
    presence: Presence
    health: Health
    admin: Admin
    label: str | None
    reserved_by: str | None
    #: Devices of one domain never run at the same time.
    cpu_domain: str | None
    fence: int
    cleaned_fence: int
    session_live: bool
    host_state: HostState
    #: The most concurrent runs of its host; None: no limit.
    host_max_runs: int | None
    job_id: JobId | None
    has_device_action: bool

    @property
    def name(self) -> str:
        """Return the label if it has one, else the id."""
        return self.label or self.device_id

    def state(self, *, cpu_busy: bool = False, host_runs: int = 0) -> DeviceState:
        """Return the state that decides whether it can be claimed; `host_runs` are live on its host."""
        return DeviceState(
            device_id=self.device_id,
            session_live=self.session_live,
            host_draining=self.host_state is not HostState.ACTIVE,
            host_full=self.host_max_runs is not None and host_runs >= self.host_max_runs,
            presence=self.presence,
            health=self.health,
            admin=self.admin,
            busy=self.job_id is not None,
            fence=self.fence,
            cleaned_fence=self.cleaned_fence,
            cpu_busy=cpu_busy,
            reserved=self.reserved_by is not None,
            device_action=self.has_device_action,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Device(DeviceStatus):
    """A device's row, with its facts, its live attempt and whether its host's agent is connected."""

    serial: str
    detail: str | None
    tags: tuple[str, ...]
    #: Its number among the devices of its model.
    unit: int | None
    #: The time an operator re-baselined it: since then its reference runs are compared with its own only.
    rebaselined_at: datetime | None
    reserved_until: datetime | None
    facts_id: FactsId | None
    facts: DeviceFacts | None
    condition: Condition | None
    recovery: Recovery | None
    seen_at: datetime
    #: The attempt of its last claim, live or not.
    last_attempt_id: AttemptId | None
    last_attempt_state: AttemptState | None
    claimed_at: datetime | None


_LIVE, _LAST = sa.alias(attempts), sa.alias(attempts)
#: Conditions on a row of `devices`: its host's agent is connected, and an action of it is open.
HAS_SESSION = sa.exists().where(
    sessions.c.host_id == devices.c.host_id,
    sessions.c.state == SessionState.LIVE,
    is_one_of(sessions.c.state, OPEN_SESSION),
)
HAS_DEVICE_ACTION = sa.exists().where(
    device_actions.c.device_id == devices.c.device_id, device_actions.c.finished_at.is_(None)
)
_ALL_QUERY = (
    sa.select(
        devices,
        device_facts.c.facts,
        _LIVE.c.job_id,
        _LAST.c.attempt_id.label("last_attempt_id"),
        _LAST.c.state.label("last_attempt_state"),
        _LAST.c.claimed_at,
        HAS_SESSION.label("session_live"),
        hosts.c.state.label("host_state"),
        hosts.c.max_runs.label("host_max_runs"),
        HAS_DEVICE_ACTION.label("has_device_action"),
    )
    .join(hosts, hosts.c.host_id == devices.c.host_id)
    .outerjoin(device_facts, device_facts.c.facts_id == devices.c.facts_id)
    .outerjoin(_LIVE, sa.and_(_LIVE.c.device_id == devices.c.device_id, is_live(_LIVE)))
    .outerjoin(_LAST, sa.and_(_LAST.c.device_id == devices.c.device_id, _LAST.c.fence == devices.c.fence))
    .order_by(devices.c.device_id)
)
_OF_HOSTS_QUERY = _ALL_QUERY.where(devices.c.host_id.in_(sa.bindparam("host_ids", expanding=True)))


@cache
def _filtered_query(*columns: str) -> sa.Select[Any]:
    return _ALL_QUERY.where(*(devices.c[name] == sa.bindparam(name) for name in columns))


def list_devices(
    connection: Connection, *, host_id: HostId | None = None, device_id: DeviceId | None = None
) -> list[Device]:
    """Return devices in the order of their ids: all, those of one host, or one device."""
    filters = {"host_id": host_id, "device_id": device_id}
    query = _filtered_query(*(name for name, value in filters.items() if value is not None))
    return [to_record(Device, row) for row in connection.execute(query, filters)]


def devices_page(connection: Connection, *, after: DeviceId, limit: int) -> list[Device]:
    """Return up to `limit` devices whose ids follow `after`, in the order of their ids."""
    query = _ALL_QUERY.where(devices.c.device_id > after).limit(limit)
    return [to_record(Device, row) for row in connection.execute(query)]


def devices_of_hosts(connection: Connection, host_ids: Collection[HostId]) -> dict[HostId, list[Device]]:
    """Return the devices of each host in the order of their ids, by one statement."""
    devices_by_host: dict[HostId, list[Device]] = {host_id: [] for host_id in host_ids}
    for row in connection.execute(_OF_HOSTS_QUERY, {"host_ids": list(host_ids)}) if devices_by_host else ():
        devices_by_host[HostId(row.host_id)].append(to_record(Device, row))
    return devices_by_host


def devices_by_id(connection: Connection, device_ids: Collection[DeviceId]) -> dict[DeviceId, Device]:
    """Return devices by their ids; an unknown id is missing."""
    query = _ALL_QUERY.where(is_among(connection, devices.c.device_id, device_ids))
    return {row.device_id: to_record(Device, row) for row in connection.execute(query)}


_NAMES_QUERY = sa.select(devices.c.device_id, devices.c.label).order_by(devices.c.device_id)


class DeviceName(NamedTuple):
    """What a person may call a device."""

    device_id: DeviceId
    label: str | None

    @property
    def shown(self) -> str:
        """Return the label if it has one, else the id."""
        return self.label or self.device_id


def list_device_names(connection: Connection) -> list[DeviceName]:
    """Return the names of all devices in the order of their ids."""
    return [DeviceName._make(row) for row in connection.execute(_NAMES_QUERY).all()]


def device_labels(connection: Connection, device_ids: Collection[DeviceId]) -> dict[DeviceId, str]:
    """Return the labels of devices by one statement; those without one are missing."""
    if not device_ids:
        return {}
    query = sa.select(devices.c.device_id, devices.c.label).where(
        is_among(connection, devices.c.device_id, device_ids), devices.c.label.is_not(None)
    )
    return {DeviceId(row.device_id): row.label for row in connection.execute(query)}


def find_device(connection: Connection, device_id: DeviceId) -> Device | None:
    """Return a device by its id, or None."""
    return next(iter(list_devices(connection, device_id=device_id)), None)


def get_device(connection: Connection, device_id: DeviceId) -> Device:
    """Return a device that exists."""
    (device,) = list_devices(connection, device_id=device_id)
    return device


_RAISE_FENCES_STATEMENT = (
    devices.update()
    .where(devices.c.device_id.in_(sa.bindparam("device_ids", expanding=True)))
    .values(fence=devices.c.fence + 1)
    .returning(devices.c.device_id, devices.c.fence)
)


def raise_fences(connection: Connection, device_ids: Collection[DeviceId]) -> dict[DeviceId, int]:
    """Raise the fencing token of each device by one and return the new ones."""
    rows = connection.execute(_RAISE_FENCES_STATEMENT, {"device_ids": list(device_ids)})
    return {row.device_id: row.fence for row in rows}
