"""Authentication of callers by the credentials that they bear, before any byte of a body is read."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request
from fastapi.responses import Response
from starlette.datastructures import Headers, MutableHeaders, State
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from farm.api.context import Context, Farm
from farm.api.http.problems import problem_document, problem_response
from farm.api.http.request_bodies import content_length
from farm.core.base.ids import HostId
from farm.core.errors import AuthError, FarmError, InputTooLarge
from farm.core.operations.role import Caller, Role
from farm.services.access.enrollment import UNKNOWN_CREDENTIAL, authenticate
from farm.services.access.refused_requests import ANONYMOUS, ANONYMOUS_AGENT
from farm.services.access.tokens import ASK_AN_ADMIN, authenticate_caller
from farm.wire.base import EXPIRY_HEADER, Problem
from farm.wire.tokens import WARN_WITHIN, hash_of

_ENROLL, _HEALTH = "/api/v1/agent/enroll", "/api/v1/health"
#: By which people get a token; they have none yet.
SIGN_IN_CALLS = frozenset({("POST", "/api/v1/sign-in/device"), ("POST", "/api/v1/sign-in/device/token")})
#: A name and a token; no other call may send a body before it is authenticated.
MAX_ENROLLMENT_BYTES = 4096
_AGENTS_CALL_HERE = (
    "agents call here, with what `farm agent join` got them; people's commands go to the address that "
    "`farm up` says it listens at"
)


def refuse_program(_request: Request, problem: Problem) -> Response:
    """Answer a caller who is not let in, as a program reads it."""
    return problem_response(problem)


class AuthMiddleware:
    """Refuses every unauthenticated call but enrolment, the health check and what `is_open` names.

    On every path: an unknown caller does not learn which paths exist. Routes receive the caller, and do not
    check again: a token that is revoked while a document arrives is still valid for that document.
    """

    def __init__(
        self,
        app: ASGIApp,
        state: State,
        let_in: Callable[[Headers, Context], Awaitable[Caller]],
        is_open: Callable[[str, str], bool] = lambda _method, _path: False,
        refuse: Callable[[Request, Problem], Response] = refuse_program,
    ) -> None:
        """`let_in` raises AuthError for an unknown caller; `is_open` names calls that anyone may make."""
        self._app = app
        self._state = state
        self._let_in = let_in
        self._is_open = is_open
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            caller = await self._admit(scope, Headers(scope=scope))
        except FarmError as error:
            await self._refuse(Request(scope), problem_document(error))(scope, receive, send)
            return
        expires_at = None if caller is None else caller.token_expires_at
        if expires_at is not None and expires_at - self._state.context.clock.now() < WARN_WITHIN:
            send = _with_header(send, EXPIRY_HEADER, expires_at.isoformat(timespec="seconds"))
        await self._app(scope, receive, send)

    async def _admit(self, scope: Scope, headers: Headers) -> Caller | None:
        """Return the caller, or None for a call that anyone may make."""
        call = scope["method"], scope["path"]
        if call == ("POST", _ENROLL):
            if not _has_at_most(MAX_ENROLLMENT_BYTES, headers) or "content-length" not in headers:
                raise InputTooLarge(
                    f"an enrolment says how long it is, and has at most {MAX_ENROLLMENT_BYTES} bytes"
                )
        elif call == ("GET", _HEALTH):
            if not _has_at_most(0, headers):
                raise InputTooLarge("nothing is sent along with this question")
        elif self._is_open(*call):
            if not _has_at_most(MAX_ENROLLMENT_BYTES, headers):
                raise InputTooLarge(f"a sign-in has at most {MAX_ENROLLMENT_BYTES} bytes")
        else:
            caller = await self._let_in(headers, self._state.context)
            scope.setdefault("state", {})["caller"] = caller
            return caller
        return None


def _with_header(send: Send, name: str, value: str) -> Send:
    """Return a function that sends an answer with one more header."""

    async def send_with_header(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)[name] = value
        await send(message)

    return send_with_header


def _has_at_most(limit_bytes: int, headers: Headers) -> bool:
    """Return whether a body is that short: the server holds it to its announced length, unless in chunks."""
    length_bytes = content_length(headers) if "content-length" in headers else 0
    return "transfer-encoding" not in headers and length_bytes is not None and length_bytes <= limit_bytes


def bearer(headers: Headers) -> str | None:
    """Return the bearer credential of a request; None without one."""
    scheme, _, credential = headers.get("authorization", "").partition(" ")
    return credential if scheme.lower() == "bearer" and credential else None


def authenticated_caller(request: Request) -> Caller | None:
    """Return the caller whom the middleware authenticated; None where it does not run or did not check."""
    return getattr(request.state, "caller", None)


async def authenticate_host(headers: Headers, farm: Context) -> HostId:
    """Return the host whose credential a request bears.

    Raises:
        AuthError: it bears none, or one of no host.
    """
    credential = bearer(headers)
    if credential is None:
        raise AuthError("this call needs a host credential", hint=_AGENTS_CALL_HERE)
    return await farm.database.peek_async(authenticate, credential)


async def authenticate_agent(headers: Headers, farm: Context) -> HostId:
    """Do as `authenticate_host`, and record refused callers in the event log."""
    async with farm.refused.telling(ANONYMOUS_AGENT):
        return await authenticate_host(headers, farm)


async def identify_caller(headers: Headers, farm: Context) -> Caller:
    """Return the caller whose token, or host's credential, a request bears.

    Raises:
        AuthError: it bears none that is valid.
    """
    async with farm.refused.telling(ANONYMOUS):
        token = bearer(headers)
        if token is None:
            raise AuthError("this farm answers no request without an access token", hint=ASK_AN_ADMIN)
        caller = await farm.database.peek_async(farm.bind(authenticate_caller), token)
        if caller.role is not Role.AGENT:
            farm.token_uses.note(hash_of(token))
        return caller


async def identify_host(headers: Headers, farm: Context) -> Caller:
    """Return the host whose credential a request bears: agents' calls accept nothing else.

    Raises like `identify_caller`.
    """
    return Caller(name=await authenticate_agent(headers, farm), role=Role.AGENT, is_authenticated=True)


async def get_calling_host(request: Request, farm: Farm) -> HostId:
    """Return the host whose agent calls; raises like `authenticate_host`, and while the clocks disagree."""
    # Calls of agents move deadlines.
    farm.clock_check.demand()
    caller = authenticated_caller(request)
    if caller is None:
        return await authenticate_agent(request.headers, farm)
    if caller.role is not Role.AGENT:
        async with farm.refused.telling(caller.actor):
            raise AuthError(UNKNOWN_CREDENTIAL)
    return HostId(caller.name)


CallingHost = Annotated[HostId, Depends(get_calling_host)]


async def _credential_hash(request: Request) -> str:
    return hash_of(bearer(request.headers) or "")


#: Of a request's credential, as the farm stores it.
CredentialHash = Annotated[str, Depends(_credential_hash)]
