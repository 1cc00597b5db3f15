"""What live attempts take of what phones share: CPUs, and the runs that a host may have at once."""

from collections import Counter

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.database.tables import attempts, is_live


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
