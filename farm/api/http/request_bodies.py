"""Limits of request bodies, and a check for characters that cannot be stored, before any route runs."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from farm.api.http.problems import problem_document, problem_response
from farm.core.errors import FarmError, InputTooLarge, InputTooSlow, InvalidInput
from farm.wire.storable_text import is_storable, make_storable

B = TypeVar("B")

#: The largest document; files and reports may be larger, and their routes read them piece by piece.
MAX_DOCUMENT_BYTES = 8 * 1024 * 1024
#: A document that takes longer holds a connection and memory for nothing: its client gave up before.
DOCUMENT_S = 60.0
_AGENTS = "/api/v1/agent/"
_STREAMED = ("/api/v1/blobs/", f"{_AGENTS}attempts/")


class RequestBodyGuard:
    """Refuses documents that are too large, and characters that no database, or only one, can keep.

    In what agents send they are replaced: phones print anything, and a host must not be shut out for it.
    """

    def __init__(self, app: ASGIApp, *, document_s: float = DOCUMENT_S) -> None:
        self._app = app
        self._document_s = document_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            _check_address(scope)
            if not scope["path"].startswith(_STREAMED):
                document = await receive_body(_document(scope, receive), within_s=self._document_s)
                if document is None:
                    return
                receive = replay_body(document, receive)
        except FarmError as error:
            await problem_response(problem_document(error))(scope, receive, send)
            return
        await self._app(scope, receive, send)


async def receive_body(body: Awaitable[B], *, within_s: float) -> B:
    """Receive a body within a time limit.

    Raises:
        InputTooSlow: it is not there by then.
    """
    try:
        async with asyncio.timeout(within_s):
            return await body
    except TimeoutError as error:
        raise InputTooSlow(f"what was announced did not come within {within_s:g} s") from error


def content_length(headers: Headers) -> int | None:
    """Return the announced length of a body; None without one."""
    text = headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _check_address(scope: Scope) -> None:
    if "\0" in scope["path"] or b"%00" in scope["query_string"]:
        raise InvalidInput("the address has a NUL character in it", hint="nothing here is called so")


async def _document(scope: Scope, receive: Receive) -> bytes | None:
    """Receive the whole body; None when the client is gone."""
    if (content_length(Headers(scope=scope)) or 0) > MAX_DOCUMENT_BYTES:
        raise _too_large()
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_DOCUMENT_BYTES:
            raise _too_large()
    if b"\0" in body:
        # Of documents, those in UTF-16 and UTF-32 have such bytes: Python would read them.
        raise InvalidInput("what was sent is no text in UTF-8", hint="JSON travels as UTF-8 (RFC 8259)")
    if scope["path"].startswith(_AGENTS):
        return make_storable(bytes(body))
    if not is_storable(bytes(body)):
        raise InvalidInput(
            "there is a NUL character in what was sent, or half of a surrogate pair", hint="leave it out"
        )
    return bytes(body)


def _too_large() -> InputTooLarge:
    return InputTooLarge(f"a document has at most {MAX_DOCUMENT_BYTES} bytes")


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a receiver of a body that was read, followed by later messages."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return messages.pop() if messages else await receive()

    return received
