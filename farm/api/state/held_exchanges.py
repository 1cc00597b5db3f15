"""Agents whose exchange is held, and their notification of changes by this process and all others."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

from farm.core.base.ids import HostId, SessionId
from farm.database.engine import Database, libpq_parameters
from farm.database.notifications import ALL_HOSTS, HostNotification, listen

#: With the calling host: a caller that names another host's session must not end that host's held call.
_Session = tuple[HostId, SessionId]


class HeldExchanges:
    """Agents whose exchange is held until there may be work for them."""

    def __init__(self) -> None:
        self._host_by_event: dict[asyncio.Event, HostId] = {}
        self._event_by_session: dict[_Session, asyncio.Event] = {}
        self._followers: set[asyncio.Event] = set()
        #: True once the farm stops: no exchange is held any longer.
        self.closed = False

    @contextlib.contextmanager
    def listening(self, host: HostId, session_id: SessionId) -> Iterator[asyncio.Event]:
        """Yield an event that the next change sets; entered before looking, so that no change is missed.

        Of one session the latest call is held: an agent that calls again has ended its previous call, which
        ends now instead of looking for work that no one would receive.
        """
        event, session = asyncio.Event(), (host, session_id)
        if before := self._event_by_session.get(session):
            before.set()
        self._event_by_session[session] = event
        self._host_by_event[event] = session[0]
        try:
            yield event
        finally:
            del self._host_by_event[event]
            if self.is_latest(host, session_id, event):
                del self._event_by_session[session]

    @contextlib.contextmanager
    def subscribe_viewer(self) -> Iterator[asyncio.Event]:
        """Yield an event as `listening` does, for viewers: any number of them, and none replaces another."""
        event = asyncio.Event()
        self._followers.add(event)
        try:
            yield event
        finally:
            self._followers.discard(event)

    def is_latest(self, host: HostId, session_id: SessionId, event: asyncio.Event) -> bool:
        """Return whether the session has not called again since."""
        return self._event_by_session.get((host, session_id)) is event

    @property
    def count(self) -> int:
        """Return the number of exchanges that are held."""
        return len(self._host_by_event)

    def close(self) -> None:
        """End all held exchanges."""
        self.closed = True
        self.wake()

    def wake(self, wake: HostNotification = ALL_HOSTS) -> None:
        """Wake the held exchanges of hosts that may have work now. Called on the event loop."""
        held = self._host_by_event.items()
        for event in (event for event, host in held if wake.hosts is None or host in wake.hosts):
            event.set()
        for event in self._followers:
            event.set()


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
