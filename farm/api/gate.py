"""Who is let in at all, before any byte of a body is read."""

from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers, State
from starlette.types import ASGIApp, Receive, Scope, Send

from farm.api.bodies import announced_bytes
from farm.api.context import Context
from farm.api.problems import problem_document, problem_response
from farm.core.errors import FarmError, TooLarge

_ENROLL, _HEALTH = "/api/v1/agent/enroll", "/api/v1/health"
#: A name and a token; nobody else may send anything before the farm knows who it is.
MAX_ENROLLMENT_BYTES = 4096


class Gate:
    """Lets nobody in whom the farm does not know, but to enroll, and to ask whether the farm is well.

    For every path: who is not known does not learn what there is.
    """

    def __init__(
        self, app: ASGIApp, state: State, let_in: Callable[[Headers, Context], Awaitable[object]]
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
            _check_length(headers)
        elif call != ("GET", _HEALTH):
            await self._let_in(headers, self._state.context)


def _check_length(headers: Headers) -> None:
    """The server holds a body to the length it announces, unless that comes in chunks."""
    length_bytes = announced_bytes(headers)
    if "transfer-encoding" in headers or length_bytes is None or length_bytes > MAX_ENROLLMENT_BYTES:
        raise TooLarge(f"an enrolment says how long it is, and has at most {MAX_ENROLLMENT_BYTES} bytes")
