"""What is taken of what phones share: CPUs, and the runs that a host may have at once."""

from collections import Counter

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.devices.device import Presence
from farm.database.tables import attempts, devices, is_live


def runs_by_host(connection: Connection) -> Counter[HostId]:
    """Return the number of live attempts by host."""
    query = sa.select(attempts.c.host_id, sa.func.count()).where(is_live(attempts))
    return Counter(
        {HostId(host): count for host, count in connection.execute(query.group_by(attempts.c.host_id))}
    )


def busy_cpus(connection: Connection) -> set[str]:
    """Return the CPU domains with a live attempt."""
    query = sa.select(attempts.c.cpu_domain).where(is_live(attempts), attempts.c.cpu_domain.is_not(None))
    return set(connection.execute(query).scalars())


def uncleaned_cpus(connection: Connection) -> set[str]:
    """Return the CPU domains of online devices that need a clean-up."""
    query = sa.select(devices.c.cpu_domain).where(
        devices.c.cpu_domain.is_not(None),
        devices.c.presence == Presence.ONLINE,
        devices.c.cleaned_fence < devices.c.fence,
    )
    return set(connection.execute(query).scalars())


def unquiet_cpus(connection: Connection) -> set[str]:
    """Return the CPU domains with a live attempt, or with an online device that needs a clean-up."""
    return busy_cpus(connection) | uncleaned_cpus(connection)
