"""Listening sockets, and the applications that are served on them."""

import asyncio
import contextlib
import socket
import ssl
from asyncio import BaseTransport, TimerHandle, Transport
from collections.abc import AsyncIterator, Iterator
from typing import cast

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from farm.api.http.connection_limits import ConnectionLimits, raise_file_limit
from farm.api.http.tls import TlsCertificate
from farm.core.base.address import web_address
from farm.core.errors import FarmFault, InvalidInput

#: Open connections get this long to end when the farm stops.
_SHUTDOWN_GRACE_S = 3
HEADER_TIMEOUT_S = 30.0
#: An answer of which so long nothing more is read, or acknowledged, ends.
UNREAD_TIMEOUT_S = 60.0
#: A peer that keeps its connection for later does not answer to the end of it.
_TLS_CLOSE_TIMEOUT_S = 1.0


@contextlib.contextmanager
def bind_socket(
    host: str, port: int, *, hint: str, unread_s: float = UNREAD_TIMEOUT_S
) -> Iterator[socket.socket]:
    """Bind a socket to an address, 0 being any free port.

    Its connections end when a peer does not read for `unread_s` what was sent to it: the kernel does that
    (RFC 5482), also for connections that were closed but still have to send something.

    Raises:
        InvalidInput: the address is taken, or not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sets TCP_NODELAY on connections; without, answers may wait 40 ms for
    # the ACK of their own first part.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(unread_s * 1000))
        try:
            listener.bind((host, port))
        except OSError as error:
            raise InvalidInput(f"cannot listen on {host}:{port}: {error.strerror}", hint=hint) from error
        yield listener


def url_of(listener: socket.socket) -> str:
    """Return the URL of the application on a socket."""
    host, port = listener.getsockname()[:2]
    return web_address(host, port)


@contextlib.asynccontextmanager
async def serve(
    app: FastAPI, listener: socket.socket, *, lifespan: bool = True, certificate: TlsCertificate | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    """Serve an application; yields, once it answers, the task that ends only when something went wrong.

    Args:
        app: whose resources are opened first.
        listener: bound; closed at the end.
        lifespan: False for one that shares the resources of another.
        certificate: for HTTPS; None serves HTTP.

    Raises:
        FarmFault: its resources could not be opened.
    """
    raise_file_limit()
    server = _Server(
        uvicorn.Config(
            app,
            http=GuardedProtocol if certificate is None else _protocol_with(certificate),
            # There is no such call; an installed WebSocket library would take connections over.
            ws="none",
            log_config=None,
            access_log=False,
            # Forwarded addresses are not trusted.
            proxy_headers=False,
            timeout_graceful_shutdown=_SHUTDOWN_GRACE_S,
            lifespan="on" if lifespan else "off",
        )
    )
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await _wait_until_started(server, task)
        yield task
    finally:
        server.should_exit = True
        await task


class _Server(uvicorn.Server):
    """Leaves signals to the daemon, which stops things in an order of its own, and errors to its caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets=sockets)
        except SystemExit as error:
            # Within a task it would end the loop at once, without a message.
            raise FarmFault("the farm could not start", hint="the log says why, right above") from error


async def _wait_until_started(server: uvicorn.Server, task: asyncio.Task[None]) -> None:
    while not server.started:
        if task.done():
            await task
            raise RuntimeError("the server ended before it listened")
        await asyncio.sleep(0.01)


class GuardedProtocol(H11Protocol):
    """A connection that ends when a head does not come to its end, or the rest of a body that is not read.

    One beyond the limits of its listener ends at once. The reader of a body sets its own limit; once it has
    answered, this one applies.
    """

    head_s = HEADER_TIMEOUT_S
    limits = ConnectionLimits()
    _limit: TimerHandle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(cast(Transport, transport))
        addresses = (_address(cast(H11Protocol, other)) for other in self.connections)
        if not self.limits.admits(_address(self), addresses, self.loop.time()):
            self.transport.abort()
            return
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
        """Return whether a head has begun to arrive that no reader sets a limit to."""
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


class TlsProtocol(GuardedProtocol):
    """A connection that begins with a TLS handshake.

    It counts for the limits of its listener from its beginning. asyncio's servers would tell of a connection
    only once its handshake is done, and thousands that never begin one would use up the farm's files.
    """

    certificate: TlsCertificate
    _is_encrypted = False
    _is_lost = False
    #: What arrived in one segment with the end of the handshake.
    _early = b""

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        if not transport.is_closing():
            # No byte is for HTTP yet.
            cast(Transport, transport).pause_reading()
            self._handshake = self.loop.create_task(self._shake_hands(cast(Transport, transport)))

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_encrypted:
            super().data_received(data)
        else:
            self._early += data

    async def _shake_hands(self, transport: Transport) -> None:
        encrypted: Transport | None = None
        error: Exception | None = None
        try:
            encrypted = await self.loop.start_tls(
                transport,
                self,
                self.certificate.context,
                server_side=True,
                ssl_handshake_timeout=self.head_s,
                ssl_shutdown_timeout=_TLS_CLOSE_TIMEOUT_S,
            )
        except (OSError, ssl.SSLError) as failure:
            error = failure
        if self._is_lost:
            return
        if encrypted is None:
            # A peer that speaks no TLS, was too slow, or went away: nothing else tells of that yet.
            self.connection_lost(error)
            return
        self._is_encrypted = True
        H11Protocol.connection_made(self, encrypted)
        if self._early:
            # Without any: an empty one means to h11 that the peer has ended.
            super().data_received(self._early)
            self._early = b""


def _protocol_with(served: TlsCertificate) -> type[TlsProtocol]:
    class Protocol(TlsProtocol):
        certificate = served

    return Protocol


def _address(connection: H11Protocol) -> str:
    return connection.client[0] if connection.client else ""
