"""One address in front of whichever farm process lives, as a load balancer has it."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress


class Forwarder:
    """Passes connections on to the first of some ports that takes them."""

    def __init__(self, listener: socket.socket, ports: Sequence[int]) -> None:
        self._listener = listener
        self._ports = ports
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    def serve(self) -> None:
        """Pass connections on until the listener is shut down."""
        with suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                threading.Thread(target=self._join, args=(caller,), daemon=True).start()

    def _join(self, caller: socket.socket) -> None:
        with closing(caller), suppress(OSError), closing(self._connected()) as farm:
            back = threading.Thread(target=_pump, args=(farm, caller), daemon=True)
            back.start()
            _pump(caller, farm)
            back.join()

    def _connected(self) -> socket.socket:
        for port in self._ports:
            with suppress(ConnectionRefusedError):
                return socket.create_connection(("127.0.0.1", port))
        raise ConnectionRefusedError


@contextmanager
def forwarding(*ports: int) -> Iterator[Forwarder]:
    """A forwarder on a port of its own, while the block runs."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        forwarder = Forwarder(listener, ports)
        thread = threading.Thread(target=forwarder.serve, daemon=True)
        thread.start()
        try:
            yield forwarder
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(65536):
            sink.sendall(chunk)
    # Either end that is gone ends both ways: nobody talks into the void.
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
