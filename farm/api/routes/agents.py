"""What agents call."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, Request

from farm.api.agents.long_poll import answer_exchange
from farm.api.context import CallingHost, Context, CredentialHash, Farm, authenticate_host
from farm.core.base.ids import HostId, SessionId
from farm.core.errors import AuthError, Forbidden
from farm.services.access.enrollment import check_join_token, enroll
from farm.services.access.refused_requests import ANONYMOUS_AGENT, record_refusal
from farm.services.agents.heartbeats import ExchangeCall
from farm.services.agents.sessions import open_session
from farm.wire.agents.protocol import (
    Enrollment,
    EnrollmentAnswer,
    Exchange,
    ExchangeAnswer,
    SessionAnswer,
    SessionOpening,
)
from farm.wire.base import Count

router = APIRouter(prefix="/api/v1/agent", tags=["agent"])


@router.post("/enroll")
async def post_enroll(enrollment: Enrollment, request: Request, farm: Farm) -> EnrollmentAnswer:
    """Turn a single-use join token into a host credential; a present one, if sent, shows who asks."""
    now = farm.clock.now()
    async with farm.refused.telling(farm.database, ANONYMOUS_AGENT, now=now):
        await farm.database.read_async(check_join_token, enrollment, now=now)
    try:
        known_as = await authenticate_host(request.headers, farm)
    except AuthError:
        known_as = None
    return await farm.database.write_async(enroll, enrollment, known_as=known_as, now=now)


@router.post("/sessions")
async def post_session(opening: SessionOpening, host: CallingHost, farm: Farm) -> SessionAnswer:
    """Open a session; fences older sessions of the host."""
    return await farm.database.change_async(open_session, host, opening, now=farm.clock.now())


@router.post("/sessions/{session_id}/exchange")
async def post_exchange(
    session_id: Count, said: Exchange, host: CallingHost, farm: Farm, shown: CredentialHash
) -> ExchangeAnswer:
    """The agent's loop call; held for `wait_s` while there is nothing to say."""
    session = SessionId(session_id)
    call = ExchangeCall(host_id=host, session_id=session, credential_hash=shown, said=said)
    async with _record_refusals(farm, host):
        return await answer_exchange(farm, call)


@asynccontextmanager
async def _record_refusals(farm: Context, host: HostId) -> AsyncIterator[None]:
    """What undid the refused transaction leaves no trace in it: the log is told in one of its own."""
    try:
        yield
    except Forbidden as refused:
        await farm.database.write_async(record_refusal, host, refused.message, now=farm.clock.now())
        raise
