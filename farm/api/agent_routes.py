"""What agents call."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, Request

from farm.api.bodies import arriving_within
from farm.api.context import CallingHost, Context, CredentialHash, Farm, authenticated
from farm.api.exchanging import answer
from farm.core.errors import AuthError, Forbidden, TooLarge
from farm.core.ids import AttemptId, HostId, SessionId
from farm.services.identity import check_join_token, enroll
from farm.services.refusals import note_refusal
from farm.services.roll_call import Call
from farm.services.sessions import open_session
from farm.services.settle import settle
from farm.wire.agent import (
    Enrollment,
    EnrollmentAnswer,
    Exchange,
    ExchangeAnswer,
    ReportAnswer,
    SessionAnswer,
    SessionOpening,
)
from farm.wire.base import Count

router = APIRouter(prefix="/api/v1/agent", tags=["agent"])

#: Two outputs at a plan's limit, escaped as JSON at worst, with room for the rest.
MAX_REPORT_BYTES = 64 * 1024 * 1024
#: Agents give up after 120 s, and send it again.
REPORT_S = 180.0


@router.post("/enroll")
async def post_enroll(enrollment: Enrollment, request: Request, farm: Farm) -> EnrollmentAnswer:
    """Turn a single-use join token into a host credential; a present one, if sent, shows who asks."""
    now = farm.clock.now()
    await farm.database.read_async(check_join_token, enrollment, now=now)
    try:
        known_as = await authenticated(request.headers, farm)
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
    call = Call(host_id=host, session_id=session, credential_hash=shown, said=said)
    async with _told_if_refused(farm, host):
        return await answer(farm, call)


@router.post("/attempts/{attempt_id}/report")
async def post_report(attempt_id: Count, request: Request, host: CallingHost, farm: Farm) -> ReportAnswer:
    """Settle an attempt; the same bytes again get the stored answer."""
    async with arriving_within(REPORT_S):
        body = await _body(request)
    attempt = AttemptId(attempt_id)
    async with _told_if_refused(farm, host):
        return await farm.database.change_async(settle, host, attempt, body, now=farm.clock.now())


@asynccontextmanager
async def _told_if_refused(farm: Context, host: HostId) -> AsyncIterator[None]:
    """What undid the refused transaction leaves no trace in it: the log is told in one of its own."""
    try:
        yield
    except Forbidden as refused:
        await farm.database.write_async(note_refusal, host, refused.message, now=farm.clock.now())
        raise


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_REPORT_BYTES:
            raise TooLarge(f"a report has at most {MAX_REPORT_BYTES} bytes")
    return bytes(body)
