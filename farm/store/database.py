"""The database: whole transactions, as if one came after the other, on SQLite and on PostgreSQL."""

import asyncio
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from farm.core.errors import FarmBusy
from farm.store.wakes import Wake, Waking, notify

P = ParamSpec("P")
T = TypeVar("T")

_READERS = 4
#: PostgreSQL runs this many transactions side by side; more of them would only fail each other.
_POSTGRES_WRITERS = 8
#: How often a transaction is run again that PostgreSQL could not put in an order with the others, and the
#: longest pause before: whoever is out of step with others for a moment need not meet them again.
_RERUNS = 30
_RERUN_PAUSE_S = 0.1
#: How long anybody waits for a connection of the pool, or for a server to answer.
_CONNECT_S = 10
#: How long a writer waits for another process's transaction before it says that the farm is busy.
BUSY_MS = 10_000
#: What waiting can cure: a lock, a full disk, a disk that comes back (https://sqlite.org/rescode.html).
_CURABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOMEM,
    }
)
#: Connections, resources, an operator's shutdown, locks, and an order that was not found
#: (PostgreSQL manual, appendix A): the first two characters of a code are its class.
_CURABLE_CLASSES = frozenset({"08", "40", "53", "55", "57"})


def sqlite_url(path: Path) -> str:
    """The URL of a database file."""
    return f"sqlite:///{path}"


class Database:
    """Runs services in transactions: each call is one, committed when the service returns, else rolled back.

    Services may read, decide and write as if nobody else were there. On SQLite every write runs on one thread
    of its own, because its file lock makes waiting unfair between threads. On PostgreSQL transactions are
    serializable and run side by side; one that cannot be put in an order with the others is run again, so a
    service does nothing but through its connection. Errors of the database that waiting can cure leave as
    FarmBusy; others are mistakes of ours.
    """

    def __init__(self, url: str, *, busy_ms: int = BUSY_MS, process: str = "") -> None:
        """Open a database; nothing is connected yet.

        Args:
            process: which farm process this is, to the others.
        """
        self.engine = create_engine(url, busy_ms=busy_ms)
        self.process = process
        #: How often a transaction had to be run again.
        self.reruns = 0
        #: Told, on a writer's thread, whom a committed change may concern.
        self.on_change: Callable[[Wake], None] = lambda _: None
        writers = 1 if self.engine.dialect.name == "sqlite" else _POSTGRES_WRITERS
        self._writer = ThreadPoolExecutor(writers, thread_name_prefix="farm-writer")
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="farm-reader")
        self._closing = threading.Lock()

    def write(self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a service that may write, and wait for its commit."""
        return self._submit_write(service, *args, **kwargs).result()

    async def write_async(
        self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `write`; a cancelled caller does not undo a transaction that has begun."""
        return await asyncio.wrap_future(self._submit_write(service, *args, **kwargs))

    async def change_async(
        self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `write_async`; then whoever waits for work looks again, in this process and in all others.

        That is everybody, unless the service says whom it concerns.
        """
        return await asyncio.wrap_future(self._submit_change(service, *args, **kwargs))

    def read(self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a service that only reads, on one snapshot, in the caller's thread; it cannot write."""
        with _curable_as_busy(), self.engine.connect() as connection:
            return service(connection, *args, **kwargs)

    async def read_async(
        self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `read`, on a reader thread."""
        return await asyncio.wrap_future(self._readers.submit(lambda: self.read(service, *args, **kwargs)))

    def close(self) -> None:
        """Finish what is under way, then let go of the file."""
        with self._closing:
            self._writer.shutdown(wait=True)
            self._readers.shutdown(wait=True)
            self.engine.dispose()

    def _submit_write(
        self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        def run() -> T:
            with self._writing(None) as connection:
                return service(connection, *args, **kwargs)

        return self._writer.submit(self._in_some_order, run)

    def _submit_change(
        self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        def run() -> tuple[T, Wake]:
            waking = Waking()
            with self._writing(waking) as connection:
                result = service(connection, *args, **kwargs)
                notify(connection, waking.wake(), process=self.process)
            return result, waking.wake()

        def run_and_tell() -> T:
            result, wake = self._in_some_order(run)
            self.on_change(wake)
            return result

        return self._writer.submit(run_and_tell)

    @contextmanager
    def _writing(self, waking: Waking | None) -> Iterator[Connection]:
        options = {"farm_writes": True, "farm_waking": waking}
        with self.engine.connect().execution_options(**options) as connection, connection.begin():
            yield connection

    def _in_some_order(self, transaction: Callable[[], T]) -> T:
        with _curable_as_busy():
            for number in range(_RERUNS):
                try:
                    return transaction()
                except sa.exc.DBAPIError as error:
                    if not _is_out_of_order(error.orig):
                        raise
                self.reruns += 1
                time.sleep(random.uniform(0, min(_RERUN_PAUSE_S, 0.001 * 2**number)))
            return transaction()


def _is_out_of_order(error: BaseException | None) -> bool:
    """Whether PostgreSQL asks for the transaction to be run again (PostgreSQL manual, chapter 13.5).

    It may call it a broken unique constraint when two transactions add the same row: the one that is run
    again sees the other's.
    """
    return isinstance(
        error,
        psycopg.errors.SerializationFailure
        | psycopg.errors.DeadlockDetected
        | psycopg.errors.UniqueViolation,
    )


def size_bytes(connection: Connection) -> int:
    """What a database takes on disk, with what it has yet to write where it belongs."""
    if connection.dialect.name != "sqlite":
        size: int = connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one()
        return size
    path = Path(connection.engine.url.database or "")
    files = [path.with_name(path.name + suffix) for suffix in ("", "-wal")]
    return sum(file.stat().st_size for file in files if file.exists())


def free_bytes_inside(connection: Connection) -> int:
    """What rows that went have left inside an SQLite file, for rows to come; it does not shrink by itself.

    PostgreSQL looks after that itself, and says nothing of it: 0.
    """
    if connection.dialect.name != "sqlite":
        return 0
    pages, page_bytes = (
        connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("freelist_count", "page_size")
    )
    size_bytes: int = pages * page_bytes
    return size_bytes


@contextmanager
def _curable_as_busy() -> Iterator[None]:
    try:
        yield
    except sa.exc.TimeoutError as error:
        raise FarmBusy("all connections to the database are in use") from error
    except sa.exc.DBAPIError as error:
        if not _is_curable(error.orig):
            raise
        raise FarmBusy(f"the database refused for now: {error.orig}", hint=_cure(error.orig)) from error


def libpq_parameters(url: sa.URL) -> dict[str, Any]:
    """The parameters of a connection of psycopg's own to the database of an engine."""
    _, parameters = url.get_dialect()().create_connect_args(url)
    return dict(parameters)


def _is_curable(error: BaseException | None) -> bool:
    if isinstance(error, sqlite3.OperationalError):
        # The lower byte is the primary code; the rest says which kind of it.
        return error.sqlite_errorcode & 0xFF in _CURABLE
    if isinstance(error, psycopg.OperationalError):
        # Without a code the connection was lost, or never made.
        return error.sqlstate is None or error.sqlstate[:2] in _CURABLE_CLASSES
    return False


def _cure(error: BaseException | None) -> str | None:
    """What helps where waiting alone does not."""
    if isinstance(error, sqlite3.Error) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL:
        return (
            "free space on the farm's disk (`farm storage show`); agents keep what they have, and try again"
        )
    return None


def create_engine(url: str, *, busy_ms: int = BUSY_MS, patience_s: int = _CONNECT_S) -> Engine:
    """An engine whose transactions behave alike on both databases.

    Args:
        url: SQLAlchemy's; `postgresql://` means psycopg 3.
        busy_ms: how long a transaction waits for locks of other processes, or in a statement for a row.
        patience_s: how long anybody waits for a PostgreSQL connection.
    """
    if sa.make_url(url).get_backend_name() == "sqlite":
        engine = sa.create_engine(url)
        sa.event.listen(engine, "connect", lambda raw, _record: _prepare_sqlite(raw, busy_ms))
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine
    engine = sa.create_engine(
        url,
        isolation_level="SERIALIZABLE",
        pool_size=_READERS + _POSTGRES_WRITERS,
        max_overflow=0,
        pool_timeout=patience_s,
        pool_pre_ping=True,
        connect_args={
            "options": f"-c lock_timeout={busy_ms} -c timezone=UTC",
            "connect_timeout": patience_s,
            "application_name": "benchfarm",
        },
    )
    sa.event.listen(engine, "begin", _begin_postgres)
    return engine


def _prepare_sqlite(raw: Any, busy_ms: int) -> None:
    # The driver would otherwise begin and commit by itself, around DDL for one.
    raw.isolation_level = None
    for pragma in (
        "journal_mode=WAL",
        # The agent forgets a report once it is acknowledged: the commit must be on disk by then.
        "synchronous=FULL",
        "foreign_keys=ON",
        f"busy_timeout={busy_ms}",
    ):
        raw.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("farm_writes", False)
    # A write on a reader's connection would be rolled back without a word.
    connection.exec_driver_sql(f"PRAGMA query_only={'OFF' if writes else 'ON'}")
    # Taking the write lock at once: a lock taken halfway could not wait for another writer.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _begin_postgres(connection: Connection) -> None:
    writes = connection.get_execution_options().get("farm_writes", False)
    if not writes:
        # A snapshot is enough for who only reads; it neither waits nor makes others wait.
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
