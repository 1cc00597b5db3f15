"""Exact reads from a stream of chunks."""

from agents.virtual.transport.connection import ServiceStream


class ByteStream:
    """Reads a stream by count; nothing is lost between calls."""

    def __init__(self, stream: ServiceStream) -> None:
        self._stream = stream
        self._pending = bytearray()

    async def read_exactly(self, count: int) -> bytes:
        """Return the next `count` bytes; waits for them."""
        while len(self._pending) < count:
            self._pending += await self._stream.read()
        data = bytes(self._pending[:count])
        del self._pending[:count]
        return data
