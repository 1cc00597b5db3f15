"""The database: whole transactions, as if one came after the other, on SQLite and on PostgreSQL."""

import asyncio
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from farm.database.errors import is_serialization_failure, transient_errors_as_busy
from farm.database.notifications import ALL_HOSTS, NO_HOSTS, HostNotification, PendingNotification, publish
from farm.database.tables import database_epochs

P = ParamSpec("P")
T = TypeVar("T")

_READERS = 4
#: For what takes no time, such as who calls: it waits for no long read.
_PEEKERS = 2
#: What people read for longer than this on PostgreSQL is called off; SQLite has no such limit.
READ_MS = 60_000
#: So many of a process's writes queue for PostgreSQL's lock; the others queue here.
_POSTGRES_WRITERS = 4
#: A process that stands still in a transaction keeps all others from writing for so long.
STUCK_MS = 30_000
#: How often a transaction is run again that PostgreSQL could not put in an order with the others, and the
#: longest pause before: whoever is out of step with others for a moment need not meet them again.
_MAX_RETRIES = 30
_RETRY_PAUSE_S = 0.1
#: How long anybody waits for a connection of the pool, or for a server to answer.
_CONNECT_S = 10
#: How long a writer waits for another process's transaction before it says that the farm is busy.
BUSY_MS = 10_000


def sqlite_url(path: Path) -> str:
    """The URL of a database file."""
    return f"sqlite:///{path}"


class Database:
    """Runs services in transactions: each call is one, committed when the service returns, else rolled back.

    Services may read, decide and write as if nobody else were there. On SQLite every write runs on one thread
    of its own, because its file lock makes waiting unfair between threads. On PostgreSQL writes queue for one
    lock, whichever farm process they come from, and first come is first served; they are serializable
    transactions all the same, so one that meets a writer that asked for no lock is run again; that is why a
    service does nothing but through its connection. Errors of the database that waiting can cure leave as
    FarmBusy; others are mistakes of ours.
    """

    def __init__(
        self,
        url: str,
        *,
        busy_ms: int = BUSY_MS,
        stuck_ms: int = STUCK_MS,
        read_ms: int = READ_MS,
        process: str = "",
    ) -> None:
        """Open a database; nothing is connected yet.

        Args:
            busy_ms: how long a transaction waits for others.
            stuck_ms: how long one may stand still on PostgreSQL before it is undone.
            read_ms: how long a statement may take on PostgreSQL that somebody waits to read.
            process: which farm process this is, to the others.
        """
        self.engine = create_engine(url, busy_ms=busy_ms, stuck_ms=stuck_ms)
        self._busy_ms = busy_ms
        self._read_ms = read_ms
        self.process = process
        #: How often a transaction had to be run again.
        self.reruns = 0
        #: Told, on a writer's thread, whom a committed change may concern.
        self.on_change: Callable[[HostNotification], None] = lambda _: None
        writers = 1 if self.engine.dialect.name == "sqlite" else _POSTGRES_WRITERS
        self._writer = ThreadPoolExecutor(writers, thread_name_prefix="farm-writer")
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="farm-reader")
        self._glancers = ThreadPoolExecutor(_PEEKERS, thread_name_prefix="farm-glancer")
        self._closing = threading.Lock()

    def write(self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a service that may write, and wait for its commit; whom it says it concerns looks again."""
        return self._submit(NO_HOSTS, service, *args, **kwargs).result()

    async def write_async(
        self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `write`; a cancelled caller does not undo a transaction that has begun."""
        return await asyncio.wrap_future(self._submit(NO_HOSTS, service, *args, **kwargs))

    async def change_async(
        self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `write_async`; then whoever waits for work looks again, in this process and in all others.

        That is everybody, unless the service says whom it concerns.
        """
        return await asyncio.wrap_future(self.submit_change(service, *args, **kwargs))

    def submit_change(
        self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """As `change_async`, waiting for nothing."""
        return self._submit(ALL_HOSTS, service, *args, **kwargs)

    def read(self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a service that only reads, on one snapshot, in the caller's thread; it cannot write."""
        return self._read(None, service, *args, **kwargs)

    def _read(
        self,
        limit_ms: int | None,
        service: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        with transient_errors_as_busy(), self.engine.connect() as connection:
            return service(connection.execution_options(farm_read_ms=limit_ms), *args, **kwargs)

    async def read_async(
        self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `read`, on a reader thread; what takes too long ends in FarmBusy on PostgreSQL."""
        run = partial(self._read, self._read_ms, service, *args, **kwargs)
        return await asyncio.wrap_future(self._readers.submit(run))

    async def peek_async(
        self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `read_async`, for a lookup or two: it never waits for those who read much."""
        run = partial(self._read, self._read_ms, service, *args, **kwargs)
        return await asyncio.wrap_future(self._glancers.submit(run))

    def close(self) -> None:
        """Finish what is under way, then let go of the file."""
        with self._closing:
            self._writer.shutdown(wait=True)
            self._readers.shutdown(wait=True)
            self._glancers.shutdown(wait=True)
            self.engine.dispose()

    def _submit(
        self,
        otherwise: HostNotification,
        service: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Future[T]:
        """Have a service run, and whom it concerns told: `otherwise` where it does not say."""
        asked_s = time.monotonic()

        def run() -> tuple[T, HostNotification]:
            waking = PendingNotification(otherwise)
            with self._writing(waking, asked_s) as connection:
                result = service(connection, *args, **kwargs)
                publish(connection, waking.wake(), process=self.process)
            return result, waking.wake()

        def run_and_tell() -> T:
            result, wake = self._with_retries(run)
            if wake != NO_HOSTS:
                self.on_change(wake)
            return result

        return self._writer.submit(run_and_tell)

    @contextmanager
    def _writing(self, waking: PendingNotification, asked_s: float) -> Iterator[Connection]:
        # Counted from the question: behind a held lock, writers must not wait one after the other.
        left_ms = max(0, self._busy_ms - round(1000 * (time.monotonic() - asked_s)))
        options = {"farm_writes": True, "farm_notification": waking, "farm_busy_ms": left_ms}
        with self.engine.connect().execution_options(**options) as connection, connection.begin():
            exclude_other_writers(connection)
            yield connection

    def _with_retries(self, transaction: Callable[[], T]) -> T:
        with transient_errors_as_busy():
            for number in range(_MAX_RETRIES):
                try:
                    return transaction()
                except sa.exc.DBAPIError as error:
                    if not is_serialization_failure(error.orig):
                        raise
                self.reruns += 1
                time.sleep(random.uniform(0, min(_RETRY_PAUSE_S, 0.001 * 2**number)))
            return transaction()


def exclude_other_writers(connection: Connection) -> None:
    """Have PostgreSQL keep all other writers waiting until the transaction ends; SQLite does so anyway.

    First of all in it: a snapshot taken before the wait would not show what was waited for (PostgreSQL
    manual, LOCK). The table is as good as any that is hardly ever written.
    """
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(f"LOCK TABLE {database_epochs.name} IN EXCLUSIVE MODE")


def disable_idle_timeout(connection: Connection) -> None:
    """Have PostgreSQL not end a transaction that waits for a slow disk of ours, however long."""
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")


def libpq_parameters(url: sa.URL) -> dict[str, Any]:
    """The parameters of a connection of psycopg's own to the database of an engine."""
    _, parameters = url.get_dialect()().create_connect_args(url)
    return dict(parameters)


def create_engine(
    url: str, *, busy_ms: int = BUSY_MS, stuck_ms: int = STUCK_MS, patience_s: int = _CONNECT_S
) -> Engine:
    """An engine whose transactions behave alike on both databases.

    Args:
        url: SQLAlchemy's; `postgresql://` means psycopg 3.
        busy_ms: how long a transaction waits for locks of other processes, or in a statement for a row.
        stuck_ms: how long a transaction may stand still on PostgreSQL.
        patience_s: how long anybody waits for a PostgreSQL connection.
    """
    if sa.make_url(url).get_backend_name() == "sqlite":
        engine = sa.create_engine(url)
        sa.event.listen(engine, "connect", lambda raw, _record: _prepare_sqlite(raw, busy_ms))
        sa.event.listen(engine, "begin", lambda connection: _begin_sqlite(connection, busy_ms))
        return engine
    settings = {"lock_timeout": busy_ms, "idle_in_transaction_session_timeout": stuck_ms, "timezone": "UTC"}
    engine = sa.create_engine(
        url,
        isolation_level="SERIALIZABLE",
        pool_size=_READERS + _PEEKERS + _POSTGRES_WRITERS,
        max_overflow=0,
        pool_timeout=patience_s,
        pool_pre_ping=True,
        connect_args={
            "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
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


def _begin_sqlite(connection: Connection, busy_ms: int) -> None:
    options = connection.get_execution_options()
    writes = options.get("farm_writes", False)
    # Most transactions are shorter than SQLAlchemy takes for three statements.
    run = _driver_errors(connection)
    run(f"PRAGMA busy_timeout={options.get('farm_busy_ms', busy_ms)}")
    # A write on a reader's connection would be rolled back without a word.
    run(f"PRAGMA query_only={'OFF' if writes else 'ON'}")
    # Taking the write lock at once: a lock taken halfway could not wait for another writer.
    run("BEGIN IMMEDIATE" if writes else "BEGIN")


def _driver_errors(connection: Connection) -> Callable[[str], object]:
    """Runs statements past SQLAlchemy; errors leave as its own."""
    raw: Any = connection.connection.driver_connection

    def run(statement: str) -> object:
        try:
            return raw.execute(statement)
        except sqlite3.Error as error:
            raise sa.exc.DBAPIError.instance(statement, None, error, sqlite3.Error) from error

    return run


def _begin_postgres(connection: Connection) -> None:
    writes = connection.get_execution_options().get("farm_writes", False)
    if not writes:
        # A snapshot is enough for who only reads; it neither waits nor makes others wait.
        begin = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
        limit_ms = connection.get_execution_options().get("farm_read_ms") or 0
        connection.exec_driver_sql(f"{begin}; SET LOCAL statement_timeout = {limit_ms}")
