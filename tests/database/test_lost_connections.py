"""Connections to PostgreSQL that are gone without a sign until they are used."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import sqlalchemy as sa

from farm.core.errors import FarmBusy
from farm.database.engine import Database
from tests.database.test_postgres_transactions import own_backend
from tests.support.database.postgres import PostgresServer

SOCKET = ".s.PGSQL.5432"


class Gateway:
    """Passes connections on to a server. Those that it forgets end at their next byte, and not before."""

    def __init__(self, listener: socket.socket, server: str) -> None:
        self._listener, self._server = listener, server
        self._generation = 0

    def forget(self) -> None:
        """Forget all connections; later ones are passed on."""
        self._generation += 1

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
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
def gateway(folder: Path, server: Path) -> Iterator[Gateway]:
    """A gateway at a socket in `folder`, while the block runs."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / SOCKET))
        listener.listen()
        passing = Gateway(listener, str(server / SOCKET))
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
        behind = sa.make_url(postgres.url(name))
        with gateway(Path(folder), Path(str(behind.query["host"]))) as passing:
            url = behind.set(query={"host": folder}).render_as_string()
            database = Database(url)
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
