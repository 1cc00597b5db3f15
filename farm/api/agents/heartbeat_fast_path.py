"""Answer to calls of idle agents ahead of routing, which costs most with a thousand agents."""

import re
from dataclasses import dataclass
from functools import partial

import structlog
from pydantic import ValidationError
from starlette.datastructures import Headers, State
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from farm.api.agents.long_poll import answer_if_idle
from farm.api.context import Context
from farm.api.http.authentication import bearer
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
    """Answers empty exchanges of hosts whose last exchange was empty too.

    One transaction authenticates and records many of them. Every other call goes on unchanged to the
    authentication and its route: bodies of unknown callers are not read here. So does a call on which this
    fails: if it was recorded by then, it counts as a repeated call.
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
        """Return the last caller with this credential, which authenticates no one; None without one."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return None
        match = _PATH.fullmatch(scope["path"])
        if match is None or not self._farm.clock_check.agrees:
            return None
        credential_hash = hash_of(bearer(Headers(scope=scope)) or "")
        host_id = self._farm.heartbeats.find_caller_host(credential_hash)
        if host_id is None:
            return None
        return _Caller(host_id=host_id, session_id=SessionId(int(match[1])), credential_hash=credential_hash)

    async def _handle_call(self, caller: "_Caller", scope: Scope, receive: Receive, send: Send) -> None:
        body = (await receive())["body"]
        answer = await self._answer(caller, body)
        if answer is None:
            await self._app(scope, replay_body(body, receive), send)
        else:
            await answer(scope, receive, send)

    async def _answer(self, caller: "_Caller", body: bytes) -> Response | None:
        """Return the answer to a call; None where the application has to answer."""
        try:
            exchange = Exchange.model_validate_json(body)
        except ValidationError:
            return None
        call = ExchangeCall(
            host_id=caller.host_id,
            session_id=caller.session_id,
            credential_hash=caller.credential_hash,
            exchange=exchange,
        )
        try:
            answer = await answer_if_idle(self._farm, call)
        except FarmError as error:
            return problem_response(problem_document(error))
        except Exception:
            # An error raised here is not answered; the application answers its own.
            log.exception("idle_call_failed", host_id=caller.host_id)
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
    """The probable caller, by the credential of the request; not yet authenticated."""

    host_id: HostId
    session_id: SessionId
    credential_hash: str
