"""The line ahead of everything else: what fails on it is answered where calls are answered otherwise."""

from types import SimpleNamespace

import pytest
from starlette.datastructures import State
from starlette.types import Message, Receive, Scope, Send

from farm.api.agents.heartbeat_fast_path import HeartbeatFastPath
from farm.services.agents.heartbeats import ExchangeCall

pytestmark = pytest.mark.anyio

BODY = b'{"seq":7,"wait_s":10}'


class BrokenRollCall:
    """One with a mistake in it."""

    def find_caller_host(self, _credential_hash: str) -> str:
        return "bench"

    def may_be_idle(self, call: ExchangeCall) -> bool:
        raise ZeroDivisionError(call.session_id)


async def test_a_call_on_which_it_fails_goes_on_as_it_came() -> None:
    state = State()
    state.context = SimpleNamespace(clock_check=SimpleNamespace(agrees=True), heartbeats=BrokenRollCall())
    heard: list[bytes] = []

    async def route(_scope: Scope, receive: Receive, _send: Send) -> None:
        heard.append((await receive())["body"])

    async def receive() -> Message:
        return {"type": "http.request", "body": BODY}

    async def send(message: Message) -> None:
        pytest.fail(f"it was answered: {message}")

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/v1/agent/sessions/3/exchange",
        "query_string": b"",
        "headers": [(b"authorization", b"Bearer secret")],
    }
    await HeartbeatFastPath(route, state)(scope, receive, send)
    assert heard == [BODY]
