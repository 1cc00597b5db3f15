"""What is taken of what phones share: CPUs, and the runs that a host may have at once."""

from collections import Counter

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.devices.device import Presence
from farm.database.tables import attempts, devices, is_live


def runs_by_host(connection: Connection) -> Counter[HostId]:
    """How many live attempts each host has."""
    query = sa.select(attempts.c.host_id, sa.func.count()).where(is_live(attempts))
    return Counter(
        {HostId(host): count for host, count in connection.execute(query.group_by(attempts.c.host_id))}
    )


def busy_cpus(connection: Connection) -> set[str]:
    """CPU domains on which something runs."""
    query = sa.select(attempts.c.cpu_domain).where(is_live(attempts), attempts.c.cpu_domain.is_not(None))
    return set(connection.execute(query).scalars())


def uncleaned_cpus(connection: Connection) -> set[str]:
    """CPU domains on which something of a run may be left: a phone there is online and not cleaned up."""
    query = sa.select(devices.c.cpu_domain).where(
        devices.c.cpu_domain.is_not(None),
        devices.c.presence == Presence.ONLINE,
        devices.c.cleaned_fence < devices.c.fence,
    )
    return set(connection.execute(query).scalars())


def unquiet_cpus(connection: Connection) -> set[str]:
    """CPU domains on which a run is alive, or may have left something alive."""
    return busy_cpus(connection) | uncleaned_cpus(connection)
