"""Listening sockets, and the applications that are served on them."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

import uvicorn
from fastapi import FastAPI

from farm.api.http.header_timeout import HeaderTimeoutProtocol
from farm.core.base.address import web_address
from farm.core.errors import FarmFault, InvalidInput

#: Open connections get this long to end by themselves when the farm stops.
_SHUTDOWN_GRACE_S = 3


@contextlib.contextmanager
def bind_socket(host: str, port: int, *, hint: str) -> Iterator[socket.socket]:
    """A socket bound to an address, 0 being any free port.

    Raises:
        InvalidInput: the address is taken, or not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sets TCP_NODELAY on connections; without, answers may wait 40 ms for
    # the ACK of their own first part.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise InvalidInput(f"cannot listen on {host}:{port}: {error.strerror}", hint=hint) from error
        yield listener


def url_of(listener: socket.socket) -> str:
    """The address of what is served on a socket."""
    host, port = listener.getsockname()[:2]
    return web_address(host, port)


@contextlib.asynccontextmanager
async def serve(
    app: FastAPI, listener: socket.socket, *, lifespan: bool = True
) -> AsyncIterator[asyncio.Task[None]]:
    """Serve an application; yields, once it answers, the task that ends only when something went wrong.

    Args:
        app: whose resources are opened first.
        listener: bound; closed at the end.
        lifespan: False for one that shares the resources of another.

    Raises:
        FarmFault: its resources could not be opened.
    """
    server = _Server(
        uvicorn.Config(
            app,
            http=HeaderTimeoutProtocol,
            # There is no such call; a library that happens to be there would take connections over.
            ws="none",
            log_config=None,
            access_log=False,
            # Who says that it speaks for others is not believed.
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
            # Within a task it would end the loop at once, and nobody would say anything.
            raise FarmFault("the farm could not start", hint="the log says why, right above") from error


async def _wait_until_started(server: uvicorn.Server, task: asyncio.Task[None]) -> None:
    while not server.started:
        if task.done():
            await task
            raise RuntimeError("the server ended before it listened")
        await asyncio.sleep(0.01)
