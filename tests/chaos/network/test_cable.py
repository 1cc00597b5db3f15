"""A cable carries bytes both ways while it is plugged in, and nothing once it was pulled out."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.chaos.network.cable import Wire
from tests.chaos.testbed.event_loop_thread import Looping, looping
from tests.support.faults.port_faults import held_port


class Echo:
    """Says everything again, to one caller after the other, until it is told to stop."""

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", port))
        self._thread = threading.Thread(target=self._serve)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        # Whoever waits in `accept` is woken.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                self._answer(self._listener.accept()[0])

    def _answer(self, caller: socket.socket) -> None:
        with caller, suppress(OSError):
            while said := caller.recv(100):
                caller.sendall(said)


@pytest.fixture
def loop() -> Iterator[Looping]:
    with looping() as loop:
        yield loop


@pytest.fixture
def wire(loop: Looping) -> Iterator[Wire]:
    """A cable to something that says everything again."""
    with held_port() as phone_port, held_port() as port:
        echo = Echo(phone_port)
        echo.start()
        wire = Wire(port, phone_port)
        yield wire
        loop.run(wire.pull_out())
        echo.stop()


def test_what_is_said_arrives_and_is_answered(loop: Looping, wire: Wire) -> None:
    loop.run(wire.plug_in())
    with socket.create_connection(("127.0.0.1", wire.port), timeout=10) as end:
        end.sendall(b"hello")
        assert end.recv(5) == b"hello"


def test_a_cable_that_is_pulled_out_cuts_off_who_is_connected_and_refuses_others(
    loop: Looping, wire: Wire
) -> None:
    loop.run(wire.plug_in())
    with socket.create_connection(("127.0.0.1", wire.port), timeout=10) as end:
        end.sendall(b"hello")
        end.recv(5)
        loop.run(wire.pull_out())
        assert end.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", wire.port), timeout=10)
    loop.run(wire.plug_in())
    with socket.create_connection(("127.0.0.1", wire.port), timeout=10) as end:
        end.sendall(b"again")
        assert end.recv(5) == b"again"
