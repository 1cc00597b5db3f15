"""The status of many devices: without their facts and conditions, whose JSON takes most of the time."""

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.database.rows import to_record
from farm.database.tables import attempts, devices, hosts, is_live
from farm.store.devices.devices import HAS_DEVICE_ACTION, HAS_SESSION, DeviceStatus

_LIVE = sa.alias(attempts)
_STATUS_QUERY = (
    sa.select(
        *(devices.c[name] for name in DeviceStatus.__dataclass_fields__ if name in devices.c),
        _LIVE.c.job_id,
        HAS_SESSION.label("session_live"),
        hosts.c.state.label("host_state"),
        hosts.c.max_runs.label("host_max_runs"),
        HAS_DEVICE_ACTION.label("has_device_action"),
    )
    .join(hosts, hosts.c.host_id == devices.c.host_id)
    .outerjoin(_LIVE, sa.and_(_LIVE.c.device_id == devices.c.device_id, is_live(_LIVE)))
    .order_by(devices.c.device_id)
)


def statuses_of_host(connection: Connection, host_id: HostId) -> list[DeviceStatus]:
    """Return the status of every device of a host, in the order of their ids."""
    query = _STATUS_QUERY.where(devices.c.host_id == host_id)
    return [to_record(DeviceStatus, row) for row in connection.execute(query)]


def statuses_of(connection: Connection, device_ids: Collection[DeviceId]) -> list[DeviceStatus]:
    """Return the status of each of these devices, in the order of their ids."""
    query = _STATUS_QUERY.where(devices.c.device_id.in_(device_ids))
    return [to_record(DeviceStatus, row) for row in connection.execute(query)]


def list_statuses(connection: Connection) -> list[DeviceStatus]:
    """Return the status of every device, in the order of their ids."""
    return [to_record(DeviceStatus, row) for row in connection.execute(_STATUS_QUERY)]
