"""The farm's HTTP API for agents: typed calls with one deadline each, and errors of the tree."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TypeVar

import anyio
import httpx
from pydantic import SecretStr, TypeAdapter, ValidationError

from farm.client.certificates import UNTRUSTED_HINT, is_untrusted, trusted_certificates
from farm.client.responses import error_of
from farm.core.base.address import is_loopback, is_overheard
from farm.core.base.ids import AttemptId, Digest, SessionId
from farm.core.base.units import size_text
from farm.core.errors import AuthError, FarmError, FarmFault, FarmUnreachable, InvalidInput
from farm.core.operations.host_clock import ClockDifference
from farm.core.results.settle.report import ReportAnswer
from farm.wire.agents.protocol import (
    ClockReport,
    Enrollment,
    EnrollmentAnswer,
    Exchange,
    ExchangeAnswer,
    FarmTime,
    SessionAnswer,
    SessionOpening,
)
from farm.wire.agents.report_batch import ReportOutcome, ReportOutcomes, pack_reports
from farm.wire.base import Problem

Answer = TypeVar("Answer")
T = TypeVar("T")

CALL_DEADLINE_S = 30.0
#: A report holds up to 8 MiB of output.
REPORT_DEADLINE_S = 120.0
#: Far more than the plans of all devices that a host can have.
MAX_ANSWER_BYTES = 64 * 1024 * 1024
_ROOT = "/api/v1"
#: Transient statuses besides 5xx.
_TRANSIENT_STATUSES = frozenset({202, 408, 416, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobBody:
    """The body of an artifact download."""

    #: The offset of the first byte.
    offset_bytes: int
    #: The bytes that follow; 0 where the farm does not say.
    size_bytes: int
    chunks: AsyncIterator[bytes]


class FarmApi:
    """A client of the farm's agent API.

    Every call raises FarmUnreachable when the farm does not answer in time, AuthError for a rejected
    credential, FarmFault for transient failures, and otherwise the error that the farm reports.
    """

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    def use_credential(self, credential: SecretStr) -> None:
        """Send this credential with every later call."""
        self._http.headers["Authorization"] = f"Bearer {credential.get_secret_value()}"

    async def enroll(self, enrollment: Enrollment) -> EnrollmentAnswer:
        """Exchange a join token for a credential."""
        body = enrollment.model_dump(mode="json")
        body["join_token"] = enrollment.join_token.get_secret_value()
        return await self._request_model(EnrollmentAnswer, "/agent/enroll", json=body)

    async def open_session(self, opening: SessionOpening) -> SessionAnswer:
        """Open a session; older sessions of this host are fenced."""
        return await self._request_model(
            SessionAnswer, "/agent/sessions", json=opening.model_dump(mode="json")
        )

    async def exchange(self, session_id: SessionId, exchange: Exchange) -> ExchangeAnswer:
        """Send one exchange; it may take `wait_s` longer than other calls."""
        return await self._request_model(
            ExchangeAnswer,
            f"/agent/sessions/{session_id}/exchange",
            content=exchange.model_dump_json().encode(),
            deadline_s=CALL_DEADLINE_S + exchange.wait_s,
        )

    async def compare_clocks(self, difference: ClockDifference | None) -> FarmTime:
        """Return the farm's time; report how far this host's is from it, where that is known."""
        body = ClockReport(difference=difference).model_dump(mode="json")
        return await self._request_model(FarmTime, "/agent/clock", json=body)

    async def report(self, attempt_id: AttemptId, body: bytes) -> ReportAnswer:
        """Send evidence: exactly the bytes in the spool."""
        path = f"/agent/attempts/{attempt_id}/report"
        return await self._request_model(ReportAnswer, path, content=body, deadline_s=REPORT_DEADLINE_S)

    async def reports(self, bodies: Mapping[AttemptId, bytes]) -> dict[AttemptId, ReportAnswer | FarmError]:
        """Send several reports in one call; return for each its answer, or the error `report` would raise."""
        outcomes = await self._request_model(
            ReportOutcomes,
            "/agent/attempts/reports",
            content=pack_reports(list(bodies.items())),
            deadline_s=REPORT_DEADLINE_S,
        )
        if [outcome.attempt_id for outcome in outcomes.reports] != list(bodies):
            raise FarmFault("the farm answered for other reports than it was sent")
        return {outcome.attempt_id: _answer_or_error(outcome) for outcome in outcomes.reports}

    @asynccontextmanager
    async def blob(self, digest: Digest, *, offset_bytes: int = 0) -> AsyncIterator[BlobBody]:
        """Stream an artifact's bytes, from an offset where the farm supports it; they are not verified."""
        headers = {"Range": f"bytes={offset_bytes}-"} if offset_bytes else {}
        with _transport_errors():
            async with self._http.stream("GET", f"{_ROOT}/blobs/{digest}", headers=headers) as response:
                is_rest = response.status_code == httpx.codes.PARTIAL_CONTENT and offset_bytes > 0
                if response.status_code != httpx.codes.OK and not is_rest:
                    refusal = _response_error(response.status_code, await _body(response))
                    if response.status_code >= 500 or response.status_code == httpx.codes.TOO_MANY_REQUESTS:
                        # From a farm or proxy that is restarting: the partial download stays valid.
                        raise FarmUnreachable(refusal.message) from refusal
                    raise refusal
                # Not gathered into larger chunks: those would be lost when the connection breaks.
                chunks = response.aiter_bytes()
                length = response.headers.get("Content-Length", "")
                yield BlobBody(
                    offset_bytes=offset_bytes if is_rest else 0,
                    size_bytes=int(length) if length.isdigit() else 0,
                    chunks=chunks,
                )

    async def _request_model(
        self,
        kind: type[Answer],
        path: str,
        *,
        json: object = None,
        content: bytes | None = None,
        deadline_s: float = CALL_DEADLINE_S,
    ) -> Answer:
        async def send() -> tuple[int, bytes]:
            request = self._http.stream(
                "POST",
                f"{_ROOT}{path}",
                json=json,
                content=content,
                headers={"Content-Type": "application/json"},
            )
            async with request as response:
                return response.status_code, await _body(response)

        with _transport_errors():
            async with asyncio.timeout(deadline_s):
                status, body = await _cancel_by_scope(send)
        return _answer(kind, status, body)


def farm_client(farm_url: str, *, plain_http: bool = False) -> httpx.AsyncClient:
    """Create an HTTP client for one farm. The caller closes it.

    Args:
        farm_url: its address.
        plain_http: True to send without encryption to another machine.

    Raises:
        InvalidInput: others could read the credential of this host on its way.
    """
    if is_overheard(farm_url) and not plain_http:
        raise InvalidInput(
            f"{farm_url} is not encrypted: who reads the traffic can act as this host",
            hint="use https:// or an SSH tunnel to loopback; inside a VPN, allow it by "
            "`farm agent join --plain-http` or FARM_AGENT_PLAIN_HTTP=1",
        )
    return httpx.AsyncClient(
        base_url=farm_url,
        verify=trusted_certificates(farm_url),
        # For single reads and writes; calls have deadlines of their own.
        timeout=httpx.Timeout(60.0, connect=5.0, pool=None),
        # A proxy from the environment cannot reach this machine's loopback.
        trust_env=not is_loopback(httpx.URL(farm_url).host),
    )


@contextmanager
def _transport_errors() -> Iterator[None]:
    """Translate every transport failure into FarmUnreachable."""
    try:
        yield
    except (httpx.TransportError, httpx.StreamError, TimeoutError) as error:
        hint = UNTRUSTED_HINT if is_untrusted(error) else None
        raise FarmUnreachable(f"the farm does not answer: {error!r}", hint=hint) from error


async def _cancel_by_scope(call: Callable[[], Awaitable[T]]) -> T:
    """Await a call of httpx so that a cancellation leaves no connection open.

    httpcore shields its clean-up from the cancellation of anyio's scopes only. The cancellation of a task
    interrupts it, and connections that it had taken out of its pool stay open until they are garbage.
    """
    scope = anyio.CancelScope()

    async def run() -> T:
        with scope:
            return await call()
        raise asyncio.CancelledError

    task = asyncio.create_task(run())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        scope.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            # Retrieved, so that asyncio does not report it.
            task.exception()
        raise


async def _body(response: httpx.Response) -> bytes:
    """Read a body up to its limit.

    Raises:
        FarmFault: it is longer.
    """
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise FarmFault(f"the farm's answer is longer than {size_text(MAX_ANSWER_BYTES)}")
    return bytes(body)


def _answer(kind: type[Answer], status: int, body: bytes) -> Answer:
    if status != httpx.codes.OK:
        raise _response_error(status, body)
    try:
        return TypeAdapter(kind).validate_json(body)
    except ValidationError as error:
        raise FarmFault(f"the farm's answer is not a {kind.__name__}: {error}") from error


def _response_error(status: int, body: bytes) -> FarmError:
    """Return the error of a response that is not 200.

    Only a problem document comes from the farm itself; any other response comes from a proxy and may be
    transient.
    """
    try:
        named = error_of(Problem.model_validate_json(body))
    except ValidationError:
        named = FarmFault(f"HTTP {status}: {body[:200].decode(errors='replace')}")
    return _apply_status(named, status)


def _answer_or_error(outcome: ReportOutcome) -> ReportAnswer | FarmError:
    if outcome.answer is not None:
        return outcome.answer
    if outcome.problem is not None:
        return _apply_status(error_of(outcome.problem), outcome.problem.status)
    return FarmFault(f"the farm's answer has no result for the report of {outcome.attempt_id}")


def _apply_status(named: FarmError, status: int) -> FarmError:
    if status == httpx.codes.UNAUTHORIZED and not isinstance(named, AuthError):
        return AuthError(named.message)
    if (status >= 500 or status in _TRANSIENT_STATUSES) and not isinstance(named, FarmFault):
        return FarmFault(named.message, hint=named.hint)
    return named
