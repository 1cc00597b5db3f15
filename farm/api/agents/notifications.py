"""Agents that wait for work hear of changes: those of this process, and of all others on its database."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from farm.api.context import HeldExchanges
from farm.database.engine import Database, libpq_parameters
from farm.database.notifications import HostNotification, listen


@contextlib.asynccontextmanager
async def forward_notifications(database: Database, held_exchanges: HeldExchanges) -> AsyncIterator[None]:
    """Wake waiters while the block runs."""
    loop = asyncio.get_running_loop()

    def tell(wake: HostNotification) -> None:
        loop.call_soon_threadsafe(held_exchanges.wake, wake)

    database.on_change = tell
    if database.engine.dialect.name == "sqlite":
        # The file is this process's alone.
        yield
        return
    server = libpq_parameters(database.engine.url)
    listening = asyncio.create_task(listen(server, held_exchanges.wake, process=database.process))
    try:
        yield
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
