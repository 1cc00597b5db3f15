"""Who is let in at all, before any byte of a body is read."""

from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers, State
from starlette.types import ASGIApp, Receive, Scope, Send

from farm.api.context import Context
from farm.api.http.problems import problem_document, problem_response
from farm.api.http.request_bodies import content_length
from farm.core.errors import FarmError, InputTooLarge
from farm.core.operations.role import Caller

_ENROLL, _HEALTH = "/api/v1/agent/enroll", "/api/v1/health"
#: A name and a token; nobody else may send anything before the farm knows who it is.
MAX_ENROLLMENT_BYTES = 4096


class AuthMiddleware:
    """Lets nobody in whom the farm does not know, but to enroll, and to ask whether the farm is well.

    For every path: who is not known does not learn what there is. Routes are told who it is, and do not look
    again: a token that is revoked while a document arrives lets that one in still.
    """

    def __init__(
        self, app: ASGIApp, state: State, let_in: Callable[[Headers, Context], Awaitable[Caller]]
    ) -> None:
        """`let_in` raises AuthError for who is not known."""
        self._app = app
        self._state = state
        self._let_in = let_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._admit(scope, Headers(scope=scope))
        except FarmError as error:
            await problem_response(problem_document(error))(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _admit(self, scope: Scope, headers: Headers) -> None:
        call = scope["method"], scope["path"]
        if call == ("POST", _ENROLL):
            if not _has_at_most(MAX_ENROLLMENT_BYTES, headers) or "content-length" not in headers:
                raise InputTooLarge(
                    f"an enrolment says how long it is, and has at most {MAX_ENROLLMENT_BYTES} bytes"
                )
        elif call == ("GET", _HEALTH):
            if not _has_at_most(0, headers):
                raise InputTooLarge("nothing is sent along with this question")
        else:
            caller = await self._let_in(headers, self._state.context)
            scope.setdefault("state", {})["caller"] = caller


def _has_at_most(limit_bytes: int, headers: Headers) -> bool:
    """The server holds a body to the length it announces, unless that comes in chunks."""
    length_bytes = content_length(headers) if "content-length" in headers else 0
    return "transfer-encoding" not in headers and length_bytes is not None and length_bytes <= limit_bytes
