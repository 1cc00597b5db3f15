"""Request bodies in memory: bounded in number and in bytes, for the whole farm and for each caller."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Message, Receive

from farm.core.errors import FarmBusy

#: Of documents and reports that calls have sent and that are not answered yet.
_MAX_BYTES = 256 * 1024 * 1024
#: Bodies that have begun to arrive; files among them, whose bytes go to the disk.
_MAX_ARRIVING = 1024
#: The part of both that one caller may have; more than a report of the largest size.
_SHARE_OF_CALLER = 3
_BUSY_HINT = "it is accepted as soon as others are answered: send it again in a moment"


class BodiesInProgress:
    """What the bodies of unanswered calls take, by caller."""

    def __init__(self, *, max_bytes: int = _MAX_BYTES, max_arriving: int = _MAX_ARRIVING) -> None:
        """Nothing has been sent yet; a caller gets a third of each limit."""
        self._max_bytes, self._max_arriving = max_bytes, max_arriving
        self._bytes: Counter[str] = Counter()
        self._arriving: Counter[str] = Counter()

    @contextmanager
    def counting(self, caller: str, receive: Receive, *, is_file: bool) -> Iterator[Receive]:
        """Yield a receiver that counts a call's body until the block ends; bytes of files do not count.

        Receiving raises FarmBusy for what is beyond a limit.
        """
        size_bytes = 0
        is_arriving = False

        async def receive_counted() -> Message:
            nonlocal size_bytes, is_arriving
            message = await receive()
            more = message["type"] == "http.request" and message.get("more_body", False)
            if more != is_arriving:
                is_arriving = more
                _add(self._arriving, caller, 1 if more else -1)
                if more:
                    _check(self._arriving, caller, self._max_arriving, "bodies of requests arrive")
            if not is_file and (length_bytes := len(message.get("body", b""))):
                size_bytes += length_bytes
                _add(self._bytes, caller, length_bytes)
                _check(self._bytes, caller, self._max_bytes, "bytes of requests are in memory")
            return message

        try:
            yield receive_counted
        finally:
            _add(self._bytes, caller, -size_bytes)
            _add(self._arriving, caller, -is_arriving)


def _add(counts: Counter[str], caller: str, change: int) -> None:
    counts[caller] += change
    if not counts[caller]:
        del counts[caller]


def _check(counts: Counter[str], caller: str, most: int, what: str) -> None:
    if counts[caller] > most // _SHARE_OF_CALLER:
        raise FarmBusy(f"too many {what} for this caller", hint=_BUSY_HINT)
    if counts.total() > most:
        raise FarmBusy(f"too many {what}", hint=_BUSY_HINT)
