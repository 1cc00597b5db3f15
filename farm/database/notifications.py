"""Whom a change may mean work for: said in its transaction, told to every farm process with its commit."""

import asyncio
import json
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Never

import psycopg
import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.database.tables import devices

_log = structlog.get_logger(__name__)

CHANNEL = "farm_notifications"
#: PostgreSQL takes less than 8000 bytes (its manual, NOTIFY).
_MAX_PAYLOAD = 7000
_MAX_DEVICES = 200
#: Between tries to listen again.
_PAUSE_S, _MAX_PAUSE_S = 0.05, 5.0
#: A connection whose other end is gone without a word is noticed within 25 s.
_KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}


@dataclass(frozen=True, slots=True)
class HostNotification:
    """Hosts whose held exchanges are to look again; None: everybody's."""

    hosts: frozenset[HostId] | None = None


ALL_HOSTS = HostNotification()
NO_HOSTS = HostNotification(frozenset())


@dataclass(slots=True)
class PendingNotification:
    """What one transaction says so far of whom it concerns."""

    #: Whom to wake where it says nothing.
    otherwise: HostNotification = ALL_HOSTS
    hosts: set[HostId] = field(default_factory=set)
    #: Whatever else is said.
    everybody: bool = False

    def wake(self) -> HostNotification:
        """Whom to wake."""
        if self.everybody:
            return ALL_HOSTS
        return HostNotification(frozenset(self.hosts)) if self.hosts else self.otherwise


def notify_hosts(connection: Connection, hosts: Iterable[HostId]) -> None:
    """Say that the present transaction means nothing to agents of other hosts than those said so far."""
    waking = connection.get_execution_options().get("farm_notification")
    if isinstance(waking, PendingNotification):
        waking.hosts.update(hosts)


def notify_no_other_hosts(connection: Connection) -> None:
    """Say that the present transaction means nothing to agents but of the hosts that are said, if any are."""
    waking = connection.get_execution_options().get("farm_notification")
    if isinstance(waking, PendingNotification):
        waking.otherwise = NO_HOSTS


def notify_all_hosts(connection: Connection) -> None:
    """Say that the present transaction may mean work to any agent, whatever else is said of it."""
    waking = connection.get_execution_options().get("farm_notification")
    if isinstance(waking, PendingNotification):
        waking.everybody = True


def notify_hosts_of_devices(connection: Connection, device_ids: Collection[DeviceId]) -> None:
    """As `concerns`, with the hosts of devices; of many it is not worth finding out."""
    if len(device_ids) <= _MAX_DEVICES:
        query = sa.select(devices.c.host_id).where(devices.c.device_id.in_(device_ids)).distinct()
        notify_hosts(connection, connection.execute(query).scalars())


def publish(connection: Connection, wake: HostNotification, *, process: str) -> None:
    """Have PostgreSQL tell the other processes when, and only if, the transaction is committed."""
    if connection.dialect.name != "sqlite" and wake != NO_HOSTS:
        connection.exec_driver_sql("SELECT pg_notify(%s, %s)", (CHANNEL, _payload(wake, process)))


async def listen(
    server: Mapping[str, Any], tell: Callable[[HostNotification], None], *, process: str
) -> Never:
    """Pass on what other processes say, until cancelled; after a break everybody is to look.

    Args:
        server: libpq's parameters of a connection.
        tell: called on the event loop.
        process: whose own words are left out.
    """
    pause_s = _PAUSE_S
    while True:
        begun_s = time.monotonic()
        try:
            await _listen_once(server, tell, process)
        except (psycopg.Error, OSError) as error:
            _log.warning("listening_broke_off", error=type(error).__name__)
        if time.monotonic() - begun_s > _MAX_PAUSE_S:
            # A server that takes connections only to drop them is no reason to have everybody look each time.
            pause_s = _PAUSE_S
        # Farm processes that lost the same server do not come back to it all at once.
        await asyncio.sleep(random.uniform(pause_s / 2, pause_s))
        pause_s = min(2 * pause_s, _MAX_PAUSE_S)


async def _listen_once(
    server: Mapping[str, Any], tell: Callable[[HostNotification], None], process: str
) -> None:
    async with await _connect(server) as connection:
        await connection.execute(f"LISTEN {CHANNEL}")
        tell(ALL_HOSTS)
        async for notice in connection.notifies():
            if (wake := _parse_notification(notice.payload, process)) is not None:
                tell(wake)


async def _connect(server: Mapping[str, Any]) -> psycopg.AsyncConnection[Any]:
    return await psycopg.AsyncConnection.connect(autocommit=True, **{**server, **_KEEPALIVE})


def _payload(wake: HostNotification, process: str) -> str:
    hosts = None if wake.hosts is None else sorted(wake.hosts)
    payload = json.dumps([process, hosts])
    return payload if len(payload) < _MAX_PAYLOAD else json.dumps([process, None])


def _parse_notification(payload: str, process: str) -> HostNotification | None:
    """Whom to wake: everybody where another release, or another program, says what is not understood."""
    try:
        sender, hosts = json.loads(payload)
        wake = HostNotification(None if hosts is None else frozenset(map(HostId, hosts)))
    except (ValueError, TypeError):
        return ALL_HOSTS
    return None if sender == process else wake
