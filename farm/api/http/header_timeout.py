"""Heads of requests do not take for ever to come. How long one may be is h11's to say: 16 KiB."""

from asyncio import BaseTransport, TimerHandle, Transport
from typing import cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_TIMEOUT_S = 30.0


class HeaderTimeoutProtocol(H11Protocol):
    """A connection that ends when a head does not come to its end, or the rest of a body that is not read.

    How long a body may take is for those who read it to say; once they have answered, nobody does.
    """

    head_s = HEADER_TIMEOUT_S
    _limit: TimerHandle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(cast(Transport, transport))
        self._limit = self.loop.call_later(self.head_s, self._end)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timeout()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        if not self._needs_timeout():
            self._cancel_timeout()
        elif self._limit is None:
            self._limit = self.loop.call_later(self.head_s, self._end)

    def _needs_timeout(self) -> bool:
        """Whether something has begun to come that no reader sets a limit to."""
        state = self.conn.their_state
        if state is h11.IDLE:
            return bool(self.conn.trailing_data[0])
        return state is h11.SEND_BODY and self.cycle.response_complete

    def _cancel_timeout(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _end(self) -> None:
        self.transport.close()
