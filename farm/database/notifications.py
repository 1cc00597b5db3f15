"""Notifications of hosts for which a change may mean work, sent to every farm process with the commit."""

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
#: The pause between attempts to listen.
_PAUSE_S, _MAX_PAUSE_S = 0.05, 5.0


@dataclass(frozen=True, slots=True)
class HostNotification:
    """Hosts whose waiting exchanges should check for work again; None means all hosts."""

    hosts: frozenset[HostId] | None = None


ALL_HOSTS = HostNotification()
NO_HOSTS = HostNotification(frozenset())


@dataclass(slots=True)
class PendingNotification:
    """The hosts that one transaction has named so far."""

    #: The hosts to notify if the transaction names none.
    default: HostNotification = ALL_HOSTS
    hosts: set[HostId] = field(default_factory=set)
    #: True if all hosts are notified, whichever are named.
    all_hosts: bool = False

    def resolve(self) -> HostNotification:
        """Return the hosts to notify."""
        if self.all_hosts:
            return ALL_HOSTS
        return HostNotification(frozenset(self.hosts)) if self.hosts else self.default


def notify_hosts(connection: Connection, hosts: Iterable[HostId]) -> None:
    """Notify these hosts, besides those named before, and no others after the current transaction."""
    _pending(connection).hosts.update(hosts)


def notify_no_other_hosts(connection: Connection) -> None:
    """Notify only the hosts that the current transaction names, if any."""
    _pending(connection).default = NO_HOSTS


def notify_all_hosts(connection: Connection) -> None:
    """Notify all hosts after the current transaction, whichever else are named."""
    _pending(connection).all_hosts = True


def _pending(connection: Connection) -> PendingNotification:
    """Return the notification of the current transaction; outside of `Database.write` it is not read."""
    pending = connection.get_execution_options().get("farm_notification")
    return pending if isinstance(pending, PendingNotification) else PendingNotification()


def notify_hosts_of_devices(connection: Connection, device_ids: Collection[DeviceId]) -> None:
    """Notify the hosts of these devices; all hosts if there are many devices."""
    if len(device_ids) <= _MAX_DEVICES:
        query = sa.select(devices.c.host_id).where(devices.c.device_id.in_(device_ids)).distinct()
        notify_hosts(connection, connection.execute(query).scalars())


def publish(connection: Connection, notification: HostNotification, *, process: str) -> None:
    """Notify the other farm processes through PostgreSQL when, and only if, the transaction commits."""
    if connection.dialect.name != "sqlite" and notification != NO_HOSTS:
        connection.exec_driver_sql("SELECT pg_notify(%s, %s)", (CHANNEL, _payload(notification, process)))


async def listen(
    server: Mapping[str, Any], notify: Callable[[HostNotification], None], *, process: str
) -> Never:
    """Pass on notifications of other processes until cancelled; after a lost connection, notify all hosts.

    Args:
        server: libpq's parameters of a connection.
        notify: called on the event loop.
        process: the name of this process, whose own notifications are ignored.
    """
    pause_s = _PAUSE_S
    while True:
        begun_s = time.monotonic()
        try:
            await _listen_once(server, notify, process)
        except (psycopg.Error, OSError) as error:
            _log.warning("notification_listener_disconnected", error=type(error).__name__)
        if time.monotonic() - begun_s > _MAX_PAUSE_S:
            # The pause grows while a server accepts connections only to drop them: each one notifies all
            # hosts.
            pause_s = _PAUSE_S
        # Random, so that farm processes that lost the same server do not reconnect at the same time.
        await asyncio.sleep(random.uniform(pause_s / 2, pause_s))
        pause_s = min(2 * pause_s, _MAX_PAUSE_S)


async def _listen_once(
    server: Mapping[str, Any], notify: Callable[[HostNotification], None], process: str
) -> None:
    async with await psycopg.AsyncConnection.connect(autocommit=True, **server) as connection:
        await connection.execute(f"LISTEN {CHANNEL}")
        notify(ALL_HOSTS)
        async for message in connection.notifies():
            if (notification := _parse_notification(message.payload, process)) is not None:
                notify(notification)


def _payload(notification: HostNotification, process: str) -> str:
    hosts = None if notification.hosts is None else sorted(notification.hosts)
    payload = json.dumps([process, hosts])
    return payload if len(payload) < _MAX_PAYLOAD else json.dumps([process, None])


def _parse_notification(payload: str, process: str) -> HostNotification | None:
    """Return the hosts to notify: all of them for a payload of another release or program; None for an own
    one.
    """
    try:
        sender, hosts = json.loads(payload)
        notification = HostNotification(None if hosts is None else frozenset(map(HostId, hosts)))
    except (ValueError, TypeError):
        return ALL_HOSTS
    return None if sender == process else notification
