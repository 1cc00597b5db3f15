"""Answers calls of idle agents ahead of everything else: with a thousand of them, routing is what costs."""

import re
from dataclasses import dataclass
from functools import partial

import structlog
from pydantic import ValidationError
from starlette.datastructures import Headers, State
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from farm.api.agents.long_poll import answer_if_idle
from farm.api.context import Context, bearer
from farm.api.http.problems import problem_document, problem_response
from farm.api.http.request_bodies import RequestBodyGuard, replay_body
from farm.core.base.ids import HostId, SessionId
from farm.core.errors import FarmError
from farm.services.agents.heartbeats import ExchangeCall
from farm.wire.agents.protocol import Exchange
from farm.wire.tokens import hash_of

log = structlog.get_logger(__name__)

_PATH = re.compile(r"/api/v1/agent/sessions/([0-9]{1,15})/exchange")


class HeartbeatFastPath:
    """Takes exchanges with nothing in them, of hosts whose last one had nothing in it either.

    Who calls, and that there is nothing to say, is looked up and noted in one transaction for many of them.
    Every other call goes on as it came, to the gate and to its route: whom nobody knows is not read here. So
    does one on which this fails: if it was noted by then, it is like one that is made again.
    """

    def __init__(self, app: ASGIApp, state: State) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = self._find_caller(scope)
        if caller is None:
            await self._app(scope, receive, send)
        else:
            await RequestBodyGuard(partial(self._handle_call, caller))(scope, receive, send)

    def _find_caller(self, scope: Scope) -> "_Caller | None":
        """Who showed the same the last time, which is not whom it lets in now; None where that is nobody."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return None
        found = _PATH.fullmatch(scope["path"])
        if found is None or not self._farm.clock_check.agrees:
            return None
        shown = hash_of(bearer(Headers(scope=scope)) or "")
        host_id = self._farm.heartbeats.find_caller_host(shown)
        if host_id is None:
            return None
        return _Caller(host_id=host_id, session_id=SessionId(int(found[1])), credential_hash=shown)

    async def _handle_call(self, caller: "_Caller", scope: Scope, receive: Receive, send: Send) -> None:
        body = (await receive())["body"]
        answer = await self._answer(caller, body)
        if answer is None:
            await self._app(scope, replay_body(body, receive), send)
        else:
            await answer(scope, receive, send)

    async def _answer(self, caller: "_Caller", body: bytes) -> Response | None:
        """What is said to a call; None where somebody else has to look at it."""
        try:
            said = Exchange.model_validate_json(body)
        except ValidationError:
            return None
        call = ExchangeCall(
            host_id=caller.host_id,
            session_id=caller.session_id,
            credential_hash=caller.credential_hash,
            said=said,
        )
        try:
            answer = await answer_if_idle(self._farm, call)
        except FarmError as error:
            return problem_response(problem_document(error))
        except Exception:
            # Here nobody would answer it. Where the call goes now, somebody does.
            log.exception("quiet_call_failed", host_id=caller.host_id)
            return None
        if answer is None:
            return None
        return Response(answer.model_dump_json(), media_type="application/json")

    @property
    def _farm(self) -> Context:
        farm: Context = self._state.context
        return farm


@dataclass(frozen=True, slots=True, kw_only=True)
class _Caller:
    """Who seems to call, by what is shown."""

    host_id: HostId
    session_id: SessionId
    credential_hash: str
