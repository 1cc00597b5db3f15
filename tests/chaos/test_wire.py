"""A cable carries bytes both ways while it is plugged in, and nothing once it was pulled out."""

import asyncio
import socket
from collections.abc import Iterator

import pytest
from held_port import held_port
from looping import Looping, looping
from wire import Wire


@pytest.fixture
def loop() -> Iterator[Looping]:
    with looping() as loop:
        yield loop


@pytest.fixture
def wire(loop: Looping) -> Iterator[Wire]:
    """A cable to something that says everything again."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while said := await reader.read(100):
            writer.write(said)
        writer.close()

    with held_port() as phone_port, held_port() as port:
        server = loop.run(asyncio.start_server(echo, "127.0.0.1", phone_port))
        wire = Wire(port, phone_port)
        yield wire
        loop.run(wire.pull_out())
        loop.run(_close(server))


async def _close(server: asyncio.Server) -> None:
    server.close()


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
    socket.create_connection(("127.0.0.1", wire.port), timeout=10).close()
