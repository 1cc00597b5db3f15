"""Answers calls of idle agents ahead of everything else: with a thousand of them, routing is what costs."""

import re

from pydantic import ValidationError
from starlette.datastructures import Headers, State
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from farm.api.bodies import SoundBodies, again
from farm.api.context import Context, bearer
from farm.api.exchanging import answer_if_quiet
from farm.api.problems import problem_document, problem_response
from farm.core.errors import FarmError
from farm.core.ids import HostId, SessionId
from farm.services.roll_call import Call
from farm.wire.agent import Exchange
from farm.wire.secret import hash_of

_PATH = re.compile(r"/api/v1/agent/sessions/([0-9]{1,15})/exchange")


class QuietLine:
    """Takes exchanges with nothing in them, of hosts whose last one had nothing in it either.

    Who calls, and that there is nothing to say, is looked up and noted in one transaction for many of them.
    Every other call goes on as it came, to the gate and to its route: whom nobody knows is not read here.
    """

    def __init__(self, app: ASGIApp, state: State) -> None:
        self._app = app
        self._state = state
        self._sound = SoundBodies(self._hear)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        chosen = self._sound if self._may_be_quiet(scope) else self._app
        await chosen(scope, receive, send)

    def _may_be_quiet(self, scope: Scope) -> bool:
        if scope["type"] != "http" or scope["method"] != "POST" or not _PATH.fullmatch(scope["path"]):
            return False
        return self._farm.clock_check.agrees and self._host(scope) is not None

    def _host(self, scope: Scope) -> HostId | None:
        """Who showed the same the last time; not whom it lets in now."""
        return self._farm.roll_call.host_of(_credential_hash(scope))

    async def _hear(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = (await receive())["body"]
        answer = await self._answer(scope, body)
        if answer is None:
            await self._app(scope, again(body, receive), send)
        else:
            await answer(scope, receive, send)

    async def _answer(self, scope: Scope, body: bytes) -> Response | None:
        """What is said to a call; None where somebody else has to look at it."""
        try:
            said = Exchange.model_validate_json(body)
        except ValidationError:
            return None
        found = _PATH.fullmatch(scope["path"])
        assert found is not None, "others are not read here"
        session_id, host_id = SessionId(int(found[1])), self._host(scope)
        if host_id is None:
            return None
        shown = _credential_hash(scope)
        call = Call(host_id=host_id, session_id=session_id, credential_hash=shown, said=said)
        try:
            answer = await answer_if_quiet(self._farm, call)
        except FarmError as error:
            return problem_response(problem_document(error))
        if answer is None:
            return None
        return Response(answer.model_dump_json(), media_type="application/json")

    @property
    def _farm(self) -> Context:
        farm: Context = self._state.context
        return farm


def _credential_hash(scope: Scope) -> str:
    """Of what is shown; nobody has the hash of nothing."""
    return hash_of(bearer(Headers(scope=scope)) or "")
