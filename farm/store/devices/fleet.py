"""The status of many devices: without their facts and conditions, whose JSON takes most of the time."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
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


def list_statuses(connection: Connection, *, host_id: HostId | None = None) -> list[DeviceStatus]:
    """Return the status of every device, or of those of a host, in the order of their ids."""
    query = _STATUS_QUERY if host_id is None else _STATUS_QUERY.where(devices.c.host_id == host_id)
    return [to_record(DeviceStatus, row) for row in connection.execute(query)]
