"""A line to a farm that breaks off after so many bytes, once for each number it is given."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_CHUNK_BYTES = 64 * 1024


@dataclass(slots=True)
class CutLine:
    """A TCP proxy; `cuts` is what each of the next connections may carry, `None` for any amount."""

    target: tuple[str, int]
    cuts: list[int | None] = field(default_factory=list)
    #: Bytes that went to the farm.
    carried_bytes: int = 0
    #: Whether it is the answers that break off, not what is sent.
    cuts_answers: bool = False

    def serve(self, listener: socket.socket) -> None:
        """Carry connections until the listener is closed."""
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        with near, socket.create_connection(self.target) as far:
            left = self.cuts.pop(0) if self.cuts else None
            back = threading.Thread(
                target=self._pump, args=(far, near, left if self.cuts_answers else None, False)
            )
            back.start()
            self._pump(near, far, None if self.cuts_answers else left, True)
            back.join()

    def _pump(self, source: socket.socket, sink: socket.socket, left: int | None, is_sent: bool) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                data = data if left is None else data[:left]
                sink.sendall(data)
                self.carried_bytes += len(data) if is_sent else 0
                if left is not None and (left := left - len(data)) <= 0:
                    break
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def cut_line(url: str, *cuts: int | None, cuts_answers: bool = False) -> Iterator[tuple[str, CutLine]]:
    """A line to a farm, and its address."""
    address = urlsplit(url)
    line = CutLine((address.hostname or "", address.port or 0), list(cuts), cuts_answers=cuts_answers)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=line.serve, args=(listener,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", line
        finally:
            # Closing alone does not wake whoever waits in accept.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
