"""Connections to PostgreSQL that are gone without a sign until they are used."""

import ctypes
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import sqlalchemy as sa

from farm.core.errors import FarmBusy
from farm.database.engine import Database, opened_engine
from tests.database.test_postgres_transactions import own_backend
from tests.support.database.postgres import PostgresServer

SOCKET = ".s.PGSQL.5432"
#: Linux's SO_ATTACH_FILTER (asm-generic/socket.h), and a filter that takes no packet: BPF_RET | BPF_K of 0.
ATTACH_FILTER = 26
NO_PACKET = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
#: What makes a lost connection known within two seconds.
SOON = {
    "keepalives_idle": "1",
    "keepalives_interval": "1",
    "keepalives_count": "1",
    "tcp_user_timeout": "1000",
}


class Gateway:
    """Passes connections on to a server. Those that it forgets end at their next byte, and not before."""

    def __init__(self, listener: socket.socket, server: str) -> None:
        self._listener, self._server = listener, server
        self._generation = 0
        self._callers: list[socket.socket] = []

    def forget(self) -> None:
        """Forget all connections; later ones are passed on."""
        self._generation += 1

    def swallow(self) -> None:
        """Swallow every packet of the connections there are, by TCP: none is acknowledged any more."""
        for caller in self._callers:
            caller.setsockopt(
                socket.SOL_SOCKET, ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(NO_PACKET))
            )

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                self._callers.append(caller)
                threading.Thread(target=self._pass_on, args=(caller,), daemon=True).start()

    def _pass_on(self, caller: socket.socket) -> None:
        generation = self._generation
        with caller, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self._server)
            back = threading.Thread(target=self._answer, args=(server, caller), daemon=True)
            back.start()
            while (chunk := caller.recv(65536)) and generation == self._generation:
                server.sendall(chunk)
            server.shutdown(socket.SHUT_RDWR)
            back.join()

    @staticmethod
    def _answer(server: socket.socket, caller: socket.socket) -> None:
        with suppress(OSError):
            while chunk := server.recv(65536):
                caller.sendall(chunk)
            caller.shutdown(socket.SHUT_RDWR)


@contextmanager
def gateway(listener: socket.socket, postgres: PostgresServer) -> Iterator[Gateway]:
    """A gateway at a socket, while the block runs."""
    with listener:
        passing = Gateway(listener, f"{sa.make_url(postgres.url('postgres')).query['host']}/{SOCKET}")
        thread = threading.Thread(target=passing.serve, daemon=True)
        thread.start()
        try:
            yield passing
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("verb", ["read", "write"])
def test_connections_that_are_gone_without_a_sign_cost_one_busy_answer(
    postgres: PostgresServer, verb: str
) -> None:
    # The path of a socket has 107 letters at most, and that of a test's own folder may have more.
    with postgres.database("migrated") as name, TemporaryDirectory() as folder:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(Path(folder) / SOCKET))
        listener.listen()
        with gateway(listener, postgres) as passing:
            database = Database(f"postgresql+psycopg://postgres@/{name}?host={folder}")
            try:
                # Two connections: a reader's and a writer's.
                database.write(lambda connection: database.read(own_backend))
                passing.forget()
                with pytest.raises(FarmBusy):
                    getattr(database, verb)(own_backend)
                assert database.read(own_backend) > 0
                assert database.write(own_backend) > 0
            finally:
                database.close()


@contextmanager
def behind_tcp(postgres: PostgresServer, **parameters: str) -> Iterator[tuple[Gateway, sa.URL]]:
    """A gateway by TCP, and the address of a migrated database behind it."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with postgres.database("migrated") as name, gateway(listener, postgres) as passing:
        url = sa.URL.create("postgresql+psycopg", "postgres", None, "127.0.0.1", port, name, parameters)
        yield passing, url


@contextmanager
def swallowing(database: Database, passing: Gateway, statement: str) -> Iterator[None]:
    """Have a statement swallowed: as it is sent where it is short, and while its answer is awaited else."""
    if statement == "SELECT 1":
        database.read(own_backend)
        passing.swallow()
        yield
        return
    later = threading.Timer(0.5, passing.swallow)
    later.start()
    yield
    later.join()


STATEMENTS = ["SELECT 1", "SELECT pg_sleep(600)"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_address_says_how_soon_lost_connections_are_found(
    postgres: PostgresServer, statement: str
) -> None:
    with behind_tcp(postgres, **SOON) as (passing, url):
        find_lost(passing, url, statement)


def find_lost(passing: Gateway, url: sa.URL, statement: str) -> None:
    database = Database(url.render_as_string())
    try:
        with swallowing(database, passing, statement), pytest.raises(FarmBusy):
            database.read(lambda connection: connection.exec_driver_sql(statement))
        assert database.read(own_backend) > 0
        assert database.write(own_backend) > 0
    finally:
        database.close()


@pytest.mark.parametrize(
    ("parameters", "idle_s", "unacknowledged_ms"),
    [({}, 10, 25_000), ({"keepalives_idle": "60", "tcp_user_timeout": "70000"}, 60, 70_000)],
)
def test_each_connection_has_keepalives_and_a_limit_of_what_is_not_acknowledged(
    postgres: PostgresServer, parameters: dict[str, str], idle_s: int, unacknowledged_ms: int
) -> None:
    with (
        behind_tcp(postgres, **parameters) as (_, url),
        opened_engine(url.render_as_string()) as engine,
        engine.connect() as connection,
    ):
        raw = connection.connection.driver_connection
        assert raw is not None
        with socket.socket(fileno=raw.fileno()) as own:
            options = [socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT]
            found = [own.getsockopt(socket.IPPROTO_TCP, option) for option in options]
            own.detach()
    assert found == [idle_s, 5, 3, unacknowledged_ms]
