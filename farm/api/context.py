"""What every route needs: the database, the blobs, the clock, and who is waiting for work."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import Headers

from farm.api.state.heartbeat_batch import HeartbeatBatch
from farm.api.state.refusal_log import RefusalLog
from farm.api.state.report_parser_pool import ReportParserPool
from farm.blobs.disk import DiskBlobs
from farm.clock import Clock
from farm.config import FarmConfig
from farm.core.base.ids import HostId, SessionId
from farm.core.errors import AuthError
from farm.core.operations.role import Caller, Role
from farm.core.results.settle.report import ParsedReport
from farm.database.clock_skew import ClockCheck
from farm.database.engine import Database
from farm.database.group_commit import GroupCommit
from farm.database.notifications import ALL_HOSTS, HostNotification
from farm.services.access.enrollment import UNKNOWN_CREDENTIAL, authenticate
from farm.services.access.refused_requests import ANONYMOUS_AGENT
from farm.services.results.settle import settle_batch
from farm.wire.agents.protocol import ReportAnswer
from farm.wire.tokens import hash_of

#: As somebody calls it: who names another host's session must not end what that host waits for.
_Session = tuple[HostId, SessionId]


class HeldExchanges:
    """Agents whose exchange is held until there may be work for them."""

    def __init__(self) -> None:
        self._host_by_event: dict[asyncio.Event, HostId] = {}
        self._event_by_session: dict[_Session, asyncio.Event] = {}
        self._followers: set[asyncio.Event] = set()
        #: True once the farm stops: nobody is held any longer.
        self.closed = False

    @contextlib.contextmanager
    def listening(self, host: HostId, session_id: SessionId) -> Iterator[asyncio.Event]:
        """An event that the next change sets; entered before looking, so that no change is missed.

        Of one session the latest call is held: an agent that calls again has let go of the one before, which
        ends now instead of looking for work that nobody would hear of.
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
        """As `listening`, for people who watch: as many as like, and none replaces another."""
        event = asyncio.Event()
        self._followers.add(event)
        try:
            yield event
        finally:
            self._followers.discard(event)

    def is_latest(self, host: HostId, session_id: SessionId, event: asyncio.Event) -> bool:
        """Whether the session has not called again since."""
        return self._event_by_session.get((host, session_id)) is event

    @property
    def count(self) -> int:
        """How many exchanges are held."""
        return len(self._host_by_event)

    def close(self) -> None:
        """Let everybody go."""
        self.closed = True
        self.wake()

    def wake(self, wake: HostNotification = ALL_HOSTS) -> None:
        """Something changed that may mean work. Called on the event loop."""
        held = self._host_by_event.items()
        for event in (event for event, host in held if wake.hosts is None or host in wake.hosts):
            event.set()
        for event in self._followers:
            event.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The farm as its routes see it."""

    config: FarmConfig
    database: Database
    blobs: DiskBlobs
    clock: Clock
    started_at: datetime
    held_exchanges: HeldExchanges = field(default_factory=HeldExchanges)
    clock_check: ClockCheck = field(default_factory=ClockCheck)
    refused: RefusalLog = field(default_factory=RefusalLog)
    #: Set when there may be a matrix to unfold.
    to_expand: asyncio.Event = field(default_factory=asyncio.Event)
    heartbeats: HeartbeatBatch = field(init=False)
    report_parser: ReportParserPool = field(init=False)
    reports: GroupCommit[ParsedReport, ReportAnswer] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "heartbeats", HeartbeatBatch(self.database, self.clock))
        object.__setattr__(self, "report_parser", ReportParserPool(self.database))
        settling = GroupCommit(
            self.database, settle_batch, size_bytes=lambda report: report.size_in_memory_bytes
        )
        object.__setattr__(self, "reports", settling)


async def _context(request: Request) -> Context:
    # Not a plain function: those are run on a thread each time.
    context: Context = request.app.state.context
    return context


Farm = Annotated[Context, Depends(_context)]

_AGENTS_CALL_HERE = (
    "agents call here, with what `farm agent join` got them; people's commands go to the address that "
    "`farm up` says it listens at"
)


def bearer(headers: Headers) -> str | None:
    """What a request bears to show who makes it; None when nothing, or nothing of a kind we know."""
    scheme, _, credential = headers.get("authorization", "").partition(" ")
    return credential if scheme.lower() == "bearer" and credential else None


def authenticated_caller(request: Request) -> Caller | None:
    """Whom the gate let in with a request; None where there is no gate, or it asked nobody."""
    return getattr(request.state, "caller", None)


async def authenticate_host(headers: Headers, farm: Context) -> HostId:
    """The host whose credential a request bears.

    Raises:
        AuthError: it bears none, or nobody's.
    """
    credential = bearer(headers)
    if credential is None:
        raise AuthError("this call needs a host credential", hint=_AGENTS_CALL_HERE)
    return await farm.database.peek_async(authenticate, credential)


async def authenticate_agent(headers: Headers, farm: Context) -> HostId:
    """As `authenticated`; the log is told of who is not let in."""
    async with farm.refused.telling(farm.database, ANONYMOUS_AGENT, now=farm.clock.now()):
        return await authenticate_host(headers, farm)


async def get_calling_host(request: Request, farm: Farm) -> HostId:
    """The host whose agent calls; raises like `authenticated`, and while the clocks disagree."""
    # What agents say moves deadlines.
    farm.clock_check.demand()
    caller = authenticated_caller(request)
    if caller is None:
        return await authenticate_agent(request.headers, farm)
    if caller.role is not Role.AGENT:
        async with farm.refused.telling(farm.database, caller.actor, now=farm.clock.now()):
            raise AuthError(UNKNOWN_CREDENTIAL)
    return HostId(caller.name)


CallingHost = Annotated[HostId, Depends(get_calling_host)]


async def _credential_hash(request: Request) -> str:
    return hash_of(bearer(request.headers) or "")


#: Of what a request bears, as the farm keeps it.
CredentialHash = Annotated[str, Depends(_credential_hash)]
