"""The only use of adbutils beyond its binary: connecting a TCP device, and the long listing.

adbutils starts an adb server when none answers, with the first adb on PATH and on the environment's port. So
the server is checked first, and the composition root calls `agents.adb.server.forbid_adbutils_servers`.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import adbutils

from agents.adb.client import AdbClient
from agents.adb.smartsocket import LOOPBACK
from farm.core.errors import AdbServerDown, DeviceOffline, DeviceTimeout

#: The server waits 10 s for a device that accepts and stays silent.
CONNECT_DEADLINE_S = 15.0
LIST_DEADLINE_S = 5.0
THREADS = 4
_ATTACHED = ("connected to ", "already connected to ")

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingRow:
    """One row of `adb devices -l`."""

    serial: str
    #: adb's state; see `farm.phone.adb.state.presence`.
    state: str
    #: Fields of the device's banner: product, model, device, transport_id, usb.
    tags: dict[str, str]


async def connect(
    port: int, address: str, *, host: str = LOOPBACK, deadline_s: float = CONNECT_DEADLINE_S
) -> None:
    """Have the server on `port` connect to the device at `address` (host:port); an existing row is left
    alone.

    Raises:
        DeviceOffline: the server cannot reach it, or the phone asks for authorization first.
        DeviceTimeout: the server did not make up its mind in time.
        AdbServerDown: it does not answer.
    """
    answer = await _ask(host, port, deadline_s, lambda client: client.connect(address, timeout=deadline_s))
    # The protocol answers every connect with OKAY; only the text tells the result.
    if not answer.startswith(_ATTACHED):
        raise DeviceOffline(f"adb cannot connect to {address}: {answer.strip()}")


async def list_devices(
    port: int, *, host: str = LOOPBACK, deadline_s: float = LIST_DEADLINE_S
) -> list[ListingRow]:
    """Return every device the server has a row for. Raises as `connect` does, but not DeviceOffline."""
    rows = await _ask(host, port, deadline_s, lambda client: client.list(extended=True))
    return [ListingRow(serial=row.serial, state=row.state, tags=dict(row.tags)) for row in rows]


async def _ask(host: str, port: int, deadline_s: float, call: Callable[[adbutils.AdbClient], Value]) -> Value:
    """Call adbutils. A thread that outlives its deadline ends by the socket's own time-out."""
    await AdbClient(port, host).version()
    client = adbutils.AdbClient(host, port, socket_timeout=deadline_s)
    try:
        async with asyncio.timeout(deadline_s):
            return await asyncio.get_running_loop().run_in_executor(_pool(), call, client)
    except (TimeoutError, adbutils.AdbTimeout) as error:
        raise DeviceTimeout(f"the adb server at {host}:{port}: no answer within {deadline_s:g} s") from error
    except (adbutils.AdbError, OSError, EOFError) as error:
        raise AdbServerDown(f"the adb server at {host}:{port} does not answer: {error!r}") from error


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="adbutils")
