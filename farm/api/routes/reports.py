"""How reports come: one in a call, or several."""

from fastapi import APIRouter, Request

from farm.api.context import CallingHost, Context, Farm
from farm.api.http.problems import problem_of
from farm.api.http.request_bodies import receive_body
from farm.core.base.ids import AttemptId, HostId
from farm.core.errors import Forbidden, InputTooLarge
from farm.core.results.settle.report import IncomingReport
from farm.services.access.refused_requests import record_refusal
from farm.wire.agents.protocol import ReportAnswer
from farm.wire.agents.report_batch import ReportOutcome, ReportOutcomes, unpack_reports
from farm.wire.base import Count

router = APIRouter(prefix="/api/v1/agent", tags=["agent"])

#: Two outputs at a plan's limit, escaped as JSON at worst, with room for the rest.
MAX_REPORT_BYTES = 64 * 1024 * 1024
#: Agents give up after 120 s, and send it again.
REPORT_S = 180.0


@router.post("/attempts/{attempt_id}/report")
async def post_report(attempt_id: Count, request: Request, host: CallingHost, farm: Farm) -> ReportAnswer:
    """Settle an attempt; the same bytes again get the stored answer."""
    (answer,) = await _settle(farm, host, [(AttemptId(attempt_id), await _body(request, farm))])
    if isinstance(answer, BaseException):
        raise answer
    return answer


@router.post("/attempts/reports")
async def post_reports(request: Request, host: CallingHost, farm: Farm) -> ReportOutcomes:
    """Settle several attempts, each as if its report had come by itself."""
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
    """The answers to reports; of refusals that somebody should know of, the log is told."""
    now = farm.clock.now()
    incoming = [
        IncomingReport(host_id=host, attempt_id=attempt_id, body=body, at=now) for attempt_id, body in reports
    ]
    answers = await farm.reports.ask(await farm.report_parser.parse(incoming))
    for answer in answers:
        if isinstance(answer, Forbidden):
            await farm.database.write_async(record_refusal, host, answer.message, now=farm.clock.now())
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
