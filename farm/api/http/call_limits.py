"""Limits of what one caller may ask for: calls in a minute, and bodies in progress."""

from collections.abc import Callable

import structlog
from starlette.datastructures import Headers, State
from starlette.types import ASGIApp, Receive, Scope, Send

from farm.api.context import Context
from farm.api.http.authentication import bearer
from farm.api.http.problems import problem_document, problem_response, retry_after
from farm.core.errors import LimitReached
from farm.core.operations.call_budget import is_counted
from farm.wire.tokens import hash_of

_log = structlog.get_logger(__name__)
_FILES = "/api/v1/blobs/"


class CallLimits:
    """Refuses a caller's call beyond their budget with 429, and counts the bodies of all calls.

    A caller is a secret, or an address where there is none. Nothing is authenticated here: who shows a
    different secret in each call is refused by the layers within, before any of a body is read.
    """

    def __init__(
        self,
        app: ASGIApp,
        state: State,
        *,
        limits_calls: bool,
        secret_of: Callable[[Headers], str | None] = bearer,
    ) -> None:
        """`secret_of` returns what authenticates a request; `limits_calls` is False to count bodies only."""
        self._app = app
        self._state = state
        self._limits_calls = limits_calls
        self._secret_of = secret_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        farm: Context = self._state.context
        caller = self._caller(scope)
        if self._limits_calls and is_counted(scope["method"], scope["path"]):
            try:
                farm.call_budget.spend(caller, farm.clock.monotonic())
            except LimitReached as error:
                # At DEBUG, as every refused call: the caller is told, and a flood is none of lines.
                _log.debug("call_refused", code=error.code, path=scope["path"])
                await problem_response(problem_document(error), retry_after(error))(scope, receive, send)
                return
        is_file = scope["path"].startswith(_FILES)
        with farm.bodies.counting(caller, receive, is_file=is_file) as counted:
            await self._app(scope, counted, send)

    def _caller(self, scope: Scope) -> str:
        secret = self._secret_of(Headers(scope=scope))
        if secret is not None:
            return hash_of(secret)
        return scope["client"][0] if scope.get("client") else ""
