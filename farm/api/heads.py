"""Heads of requests: how large they may be, and how long they may take to come."""

from asyncio import BaseTransport, TimerHandle, Transport
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: A head, or what stands between the pieces of a body; and what one read of the socket brings on top.
MAX_HEAD_BYTES = 64 * 1024
HEAD_S = 30.0


class BoundedHeads(HttpToolsProtocol):
    """A connection that ends when what is no body grows too long, or a head does not come to its end.

    How long a body may take is for those who read it to say. llhttp, which reads requests, sets no limit: a
    line without end would be kept as long as it comes.
    """

    head_s = HEAD_S
    #: Received since the last piece of a body, and since the last head or request that was complete.
    _pending_bytes = 0
    _limit: TimerHandle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(cast(Transport, transport))
        self._limit = self.loop.call_later(self.head_s, self._end)

    def connection_lost(self, exc: Exception | None) -> None:
        self._came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._pending_bytes += len(data)
        super().data_received(data)
        if self._pending_bytes > MAX_HEAD_BYTES:
            self.send_400_response("What stands before a body is too long.")
        elif self._pending_bytes and self._limit is None:
            self._limit = self.loop.call_later(self.head_s, self._end)

    def on_headers_complete(self) -> None:
        self._came()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._came()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._came()
        super().on_message_complete()

    def _came(self) -> None:
        self._pending_bytes = 0
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _end(self) -> None:
        self.transport.close()
