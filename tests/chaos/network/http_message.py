"""One HTTP/1.1 message as bytes: enough to pass it on whole, in part, or twice."""

import asyncio
from dataclasses import dataclass

_HEAD_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request with a body of known length, as httpx sends them."""

    head: bytes
    body: bytes

    @property
    def path(self) -> str:
        return self.head.split(b" ", 2)[1].decode()

    @property
    def last_words(self) -> bytes:
        """The whole of it, asking for a connection that ends with the answer, which then has a plain end."""
        first, *fields = self.head.removesuffix(_HEAD_END).split(b"\r\n")
        kept = [field for field in fields if not field.lower().startswith(b"connection:")]
        return b"\r\n".join([first, *kept, b"Connection: close"]) + _HEAD_END + self.body


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request; None when the caller has no more."""
    try:
        head = await reader.readuntil(_HEAD_END)
        return Request(head=head, body=await reader.readexactly(_length(head)))
    except asyncio.IncompleteReadError:
        return None


def head_of(answer: bytes) -> bytes:
    """Status and header fields of an answer, without its body."""
    return answer.partition(_HEAD_END)[0] + _HEAD_END


def _length(head: bytes) -> int:
    for field in head.lower().split(b"\r\n"):
        if field.startswith(b"content-length:"):
            return int(field.partition(b":")[2])
    return 0
