"""Bodies that do not come: nobody waits for them for ever."""

import asyncio
import json

import pytest
from starlette.types import Message, Receive, Scope, Send

from farm.api.http.request_bodies import RequestBodyGuard

pytestmark = pytest.mark.anyio


async def never(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise AssertionError("what did not arrive is not passed on")


async def test_a_document_that_stops_coming_is_refused_in_time_and_its_connection_closed() -> None:
    arriving: list[Message] = [{"type": "http.request", "body": b"{", "more_body": True}]
    sent: list[Message] = []

    async def receive() -> Message:
        return arriving.pop() if arriving else await asyncio.Future()

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/v1/matrices",
        "query_string": b"",
        "headers": [(b"content-length", b"100")],
    }
    await RequestBodyGuard(never, document_s=0.01)(scope, receive, send)
    start, body = sent
    assert start["status"] == 408
    assert (b"connection", b"close") in start["headers"]
    document = json.loads(body["body"])
    assert (document["code"], document["transient"]) == ("input.too_slow", True)
