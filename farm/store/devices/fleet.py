"""The status of all devices: without their facts and conditions, whose JSON takes most of the time."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.devices.host_state import OPEN_SESSION, SessionState
from farm.database.rows import to_record
from farm.database.tables import attempts, device_actions, devices, hosts, is_live, is_one_of, sessions
from farm.store.devices.devices import DeviceStatus

_OF_DEVICE = (
    "device_id",
    "host_id",
    "presence",
    "health",
    "admin",
    "label",
    "reserved_by",
    "cpu_domain",
    "fence",
    "cleaned_fence",
)
_LIVE = sa.alias(attempts)
_STATUS_QUERY = (
    sa.select(
        *(devices.c[name] for name in _OF_DEVICE),
        _LIVE.c.job_id,
        sa.exists()
        .where(
            sessions.c.host_id == devices.c.host_id,
            sessions.c.state == SessionState.LIVE,
            is_one_of(sessions.c.state, OPEN_SESSION),
        )
        .label("session_live"),
        hosts.c.state.label("host_state"),
        hosts.c.max_runs.label("host_max_runs"),
        sa.exists()
        .where(device_actions.c.device_id == devices.c.device_id, device_actions.c.finished_at.is_(None))
        .label("has_device_action"),
    )
    .join(hosts, hosts.c.host_id == devices.c.host_id)
    .outerjoin(_LIVE, sa.and_(_LIVE.c.device_id == devices.c.device_id, is_live(_LIVE)))
    .order_by(devices.c.device_id)
)


def list_statuses(connection: Connection) -> list[DeviceStatus]:
    """Return the status of every device, in the order of their ids."""
    return [to_record(DeviceStatus, row) for row in connection.execute(_STATUS_QUERY)]
