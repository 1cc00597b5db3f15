"""Calls of agents: enrolment, sessions, exchanges and reports."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, Request

from farm.api.agents.long_poll import answer_exchange
from farm.api.context import Context, Farm
from farm.api.http.authentication import CallingHost, CredentialHash, authenticate_host
from farm.api.http.problems import problem_of
from farm.api.http.request_bodies import receive_body
from farm.core.base.ids import AttemptId, HostId, SessionId
from farm.core.errors import AuthError, Forbidden, InputTooLarge
from farm.core.results.settle.report import IncomingReport, ReportAnswer
from farm.services.access.enrollment import check_join_token, enroll
from farm.services.access.refused_requests import ANONYMOUS_AGENT, record_refusal
from farm.services.agents.heartbeats import ExchangeCall
from farm.services.agents.sessions import open_session
from farm.services.hosts.clocks import record_host_clock
from farm.wire.agents.plausibility import ReceivedExchange
from farm.wire.agents.protocol import (
    ClockReport,
    Enrollment,
    EnrollmentAnswer,
    ExchangeAnswer,
    FarmTime,
    SessionAnswer,
    SessionOpening,
)
from farm.wire.agents.report_batch import ReportOutcome, ReportOutcomes, unpack_reports
from farm.wire.base import Count

router = APIRouter(prefix="/api/v1/agent", tags=["agent"])

#: Two outputs at a plan's limit, escaped as JSON at worst, with room for the rest.
MAX_REPORT_BYTES = 64 * 1024 * 1024
#: Agents give up after 120 s, and send it again.
REPORT_S = 180.0


@router.post("/enroll")
async def post_enroll(enrollment: Enrollment, request: Request, farm: Farm) -> EnrollmentAnswer:
    """Turn a single-use join token into a host credential; a present one, if sent, shows who asks."""
    async with farm.refused.telling(ANONYMOUS_AGENT):
        await farm.database.peek_async(farm.bind(check_join_token), enrollment)
    try:
        known_as = await authenticate_host(request.headers, farm)
    except AuthError:
        known_as = None
    return await farm.database.write_async(farm.bind(enroll), enrollment, known_as=known_as)


@router.post("/sessions")
async def post_session(opening: SessionOpening, host: CallingHost, farm: Farm) -> SessionAnswer:
    """Open a session; fences older sessions of the host."""
    return await farm.change(open_session, host, opening)


@router.post("/clock")
async def post_clock(report: ClockReport, host: CallingHost, farm: Farm) -> FarmTime:
    """Return the farm's time; record how far the host's clock is from it, where its agent knows that."""
    farm.clock_check.demand()
    if report.difference is not None:
        await farm.database.write_async(farm.bind(record_host_clock), host, report.difference)
    return FarmTime(now=farm.clock.now())


@router.post("/sessions/{session_id}/exchange")
async def post_exchange(
    session_id: Count, exchange: ReceivedExchange, host: CallingHost, farm: Farm, shown: CredentialHash
) -> ExchangeAnswer:
    """Answer the agent's loop call; held for `wait_s` while there is no news."""
    session = SessionId(session_id)
    call = ExchangeCall(host_id=host, session_id=session, credential_hash=shown, exchange=exchange)
    async with _record_refusals(farm, host):
        return await answer_exchange(farm, call)


@asynccontextmanager
async def _record_refusals(farm: Context, host: HostId) -> AsyncIterator[None]:
    """Record refusals in a transaction of their own: the refused one is rolled back."""
    try:
        yield
    except Forbidden as refused:
        await farm.database.write_async(farm.bind(record_refusal), host, refused.message)
        raise


@router.post("/attempts/{attempt_id}/report")
async def post_report(attempt_id: Count, request: Request, host: CallingHost, farm: Farm) -> ReportAnswer:
    """Settle an attempt; the same bytes again get the stored answer."""
    (answer,) = await _settle(farm, host, [(AttemptId(attempt_id), await _body(request, farm))])
    if isinstance(answer, BaseException):
        raise answer
    return answer


@router.post("/attempts/reports")
async def post_reports(request: Request, host: CallingHost, farm: Farm) -> ReportOutcomes:
    """Settle several attempts, each as if its report had come alone."""
    reports = unpack_reports(await _body(request, farm))
    answers = await _settle(farm, host, reports)
    return ReportOutcomes(
        reports=tuple(
            ReportOutcome(attempt_id=attempt_id, problem=problem_of(answer, f"the report of {attempt_id}"))
            if isinstance(answer, BaseException)
            else ReportOutcome(attempt_id=attempt_id, answer=answer)
            for (attempt_id, _), answer in zip(reports, answers, strict=True)
        )
    )


async def _settle(
    farm: Context, host: HostId, reports: list[tuple[AttemptId, bytes]]
) -> list[ReportAnswer | BaseException]:
    """Return the answers to reports; record refusals that an operator should know of."""
    now = farm.clock.now()
    incoming = [
        IncomingReport(host_id=host, attempt_id=attempt_id, body=body, at=now) for attempt_id, body in reports
    ]
    answers = await farm.reports.ask(await farm.report_parser.parse(incoming))
    farm.to_grow.set()
    farm.to_compute_points.set()
    for answer in answers:
        if isinstance(answer, Forbidden):
            await farm.database.write_async(farm.bind(record_refusal), host, answer.message)
    return answers


async def _body(request: Request, farm: Context) -> bytes:
    farm.reports.check_space()
    return await receive_body(_read_body(request), within_s=REPORT_S)


async def _read_body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_REPORT_BYTES:
            raise InputTooLarge(f"what is reported in one call has at most {MAX_REPORT_BYTES} bytes")
    return bytes(body)
