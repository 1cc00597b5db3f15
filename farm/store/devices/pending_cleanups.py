"""Which phones may still have something of a run on them."""

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.core.devices.device import Presence
from farm.database.tables import attempts, devices, is_live


def uncleaned_devices(connection: Connection, host_id: HostId) -> list[tuple[DeviceId, int]]:
    """Online phones of a host that no attempt has and that are not cleaned up, with their last token."""
    found = connection.execute(_uncleaned_of_host_query(), {"host_id": host_id})
    return [(DeviceId(row.device_id), row.fence) for row in found]


@cache
def _uncleaned_of_host_query() -> sa.Select[Any]:
    """Built once: every exchange asks."""
    return (
        sa.select(devices.c.device_id, devices.c.fence)
        .where(
            devices.c.host_id == sa.bindparam("host_id"),
            devices.c.presence == Presence.ONLINE,
            devices.c.cleaned_fence < devices.c.fence,
            ~sa.exists().where(attempts.c.device_id == devices.c.device_id, is_live(attempts)),
        )
        .order_by(devices.c.device_id)
    )


def uncleaned_cpus(connection: Connection) -> set[str]:
    """CPU domains on which something of a run may be left: a phone there is online and not cleaned up."""
    query = sa.select(devices.c.cpu_domain).where(
        devices.c.cpu_domain.is_not(None),
        devices.c.presence == Presence.ONLINE,
        devices.c.cleaned_fence < devices.c.fence,
    )
    return set(connection.execute(query).scalars())
