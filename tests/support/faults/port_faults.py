"""A port on loopback that stays a test's own while nothing listens on it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_port() -> Iterator[int]:
    """A free port; connecting is refused until something listens, which may come and go.

    A number that was looked up and let go is anybody's: any outgoing connection may get it, and keeps it from
    listeners for a minute after its end. Who listens must set SO_REUSEADDR, as asyncio and uvicorn do.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
