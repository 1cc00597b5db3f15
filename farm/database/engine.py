"""The database: serializable transactions on SQLite and PostgreSQL."""

import asyncio
import math
import random
import select
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.psycopg import PGCompiler_psycopg
from sqlalchemy.engine import Connection, Engine

from farm.database.errors import is_serialization_failure, transient_errors_as_busy
from farm.database.notifications import ALL_HOSTS, NO_HOSTS, HostNotification, PendingNotification, publish
from farm.database.rows import copy_rows
from farm.database.tables import database_epochs

P = ParamSpec("P")
T = TypeVar("T")

_READERS = 4
#: Threads for short lookups, such as authentication, which must not wait for long reads.
_PEEKERS = 2
#: The longest that a requested read may take: the statement timeout on PostgreSQL, the whole read on SQLite.
READ_MS = 30_000
#: Instructions of SQLite's machine between two checks of the time; they take some milliseconds.
_SQLITE_CHECK_EVERY = 100_000
#: The number of a process's writes that queue for PostgreSQL's lock at once; others queue in the process.
_POSTGRES_WRITERS = 4
#: The time for which a process that is idle in a transaction may keep all others from writing.
STUCK_MS = 30_000
#: The retries of a transaction that PostgreSQL could not serialize, and the longest random pause before
#: a retry, so that the same transactions do not conflict again.
_MAX_RETRIES = 30
_RETRY_PAUSE_S = 0.1
#: Longest wait of a caller for a connection of the pool, or for the server to answer.
_CONNECT_S = 10
#: Detects within 25 s that the server's machine acknowledges neither what is sent nor keepalives. By default,
#: Linux takes a quarter of an hour, and two hours while nothing is sent.
_DETECT_LOSS = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
#: Longest wait of a writer for another process's transaction before it raises FarmBusy.
BUSY_MS = 10_000


def sqlite_url(path: Path) -> str:
    """Return the URL of an SQLite file."""
    return f"sqlite:///{path}"


@contextmanager
def opened_engine(url: str) -> Iterator[Engine]:
    """Yield an engine whose connections are closed at the end."""
    engine = create_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


class Database:
    """A database that runs services in transactions: each call commits when the service returns, else rolls
    back.

    Services may read, decide and write without regard to concurrent callers. On SQLite every write runs on
    one dedicated thread, because its file lock is unfair between threads. On PostgreSQL writes of all farm
    processes queue for one lock, first come, first served; they are serializable too, so a
    transaction that conflicts with a writer without the lock is retried. A service must therefore have no
    effects but through its connection. Transient errors of the database are raised as FarmBusy; others are
    bugs.
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
            stuck_ms: how long a transaction may be idle on PostgreSQL before it is rolled back.
            read_ms: how long a statement of a requested read may take; on SQLite, the whole read.
            process: the name of this farm process in notifications.
        """
        self.engine = create_engine(url, busy_ms=busy_ms, stuck_ms=stuck_ms)
        self._busy_ms = busy_ms
        self._read_ms = read_ms
        self.process = process
        #: The number of retries.
        self.reruns = 0
        #: Called on a writer's thread with the hosts that a committed change may concern.
        self.on_change: Callable[[HostNotification], None] = lambda _: None
        #: Called first in each transaction that writes; what it raises refuses the write.
        self.before_write: Callable[[Connection], None] = lambda _: None
        writers = 1 if self.engine.dialect.name == "sqlite" else _POSTGRES_WRITERS
        self._writer = ThreadPoolExecutor(writers, thread_name_prefix="farm-writer")
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="farm-reader")
        self._peekers = ThreadPoolExecutor(_PEEKERS, thread_name_prefix="farm-peeker")
        self._pinger = ThreadPoolExecutor(1, thread_name_prefix="farm-ping")
        self._ping: Future[object] | None = None
        self._closing = threading.Lock()

    def write(self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a service that may write, and wait for its commit; the hosts that it names are notified."""
        return self._submit(NO_HOSTS, service, *args, **kwargs).result()

    async def write_async(
        self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `write` on a writer's thread; cancelling the caller undoes no transaction that has begun."""
        return await asyncio.wrap_future(self._submit(NO_HOSTS, service, *args, **kwargs))

    async def change_async(
        self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `write_async`, then notify waiting exchanges in this process and all others.

        All hosts are notified, unless the service names them.
        """
        return await asyncio.wrap_future(self.submit_change(service, *args, **kwargs))

    def submit_change(
        self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Submit a change as `change_async` does, without waiting for it."""
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
            result = service(connection.execution_options(farm_read_ms=limit_ms), *args, **kwargs)
            # At a rollback, psycopg forgets the statements that the server has prepared.
            connection.commit()
            return result

    async def read_async(
        self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `read` on a reader thread; raise FarmBusy if it takes too long."""
        run = partial(self._read, self._read_ms, service, *args, **kwargs)
        return await asyncio.wrap_future(self._readers.submit(run))

    async def peek_async(
        self, service: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a short lookup as `read_async` does, without waiting for long reads."""
        run = partial(self._read, self._read_ms, service, *args, **kwargs)
        return await asyncio.wrap_future(self._peekers.submit(run))

    async def ping_async(self) -> None:
        """Return when the database answers, without waiting for other reads; concurrent calls are one."""
        if self._ping is None or self._ping.done():
            ask = Connection.exec_driver_sql
            self._ping = self._pinger.submit(self._read, self._read_ms, ask, "SELECT 1")
        await asyncio.wrap_future(self._ping)

    def close(self) -> None:
        """Finish running transactions, then close all connections."""
        with self._closing:
            self._pinger.shutdown(wait=True)
            self._writer.shutdown(wait=True)
            self._readers.shutdown(wait=True)
            self._peekers.shutdown(wait=True)
            self.engine.dispose()

    def _submit(
        self,
        default: HostNotification,
        service: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Future[T]:
        """Run a service on a writer's thread and notify the hosts that it names, else those of `default`."""
        submitted_s = time.monotonic()

        def run() -> tuple[T, HostNotification]:
            pending = PendingNotification(default)
            with self._write_transaction(pending, submitted_s) as connection:
                result = service(connection, *args, **kwargs)
                publish(connection, pending.resolve(), process=self.process)
            return result, pending.resolve()

        def run_and_notify() -> T:
            result, notification = self._with_retries(run)
            if notification != NO_HOSTS:
                self.on_change(notification)
            return result

        return self._writer.submit(run_and_notify)

    @contextmanager
    def _write_transaction(self, pending: PendingNotification, submitted_s: float) -> Iterator[Connection]:
        # Counted from the submission: behind a held lock, writers must not add up their waits.
        remaining_ms = max(0, self._busy_ms - round(1000 * (time.monotonic() - submitted_s)))
        options = {"farm_writes": True, "farm_notification": pending, "farm_busy_ms": remaining_ms}
        with self.engine.connect().execution_options(**options) as connection, connection.begin():
            exclude_other_writers(connection, within_ms=remaining_ms)
            self.before_write(connection)
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


def exclude_other_writers(connection: Connection, *, within_ms: int | None = None) -> None:
    """Lock out all other writers on PostgreSQL until the transaction ends; SQLite does so anyway.

    Args:
        connection: in a new transaction.
        within_ms: how long to wait; None for as long as for any lock.

    Must be the first statement of the transaction: a snapshot taken before the wait would not show what was
    committed during it (PostgreSQL manual, LOCK). Any table that is rarely written would do.
    """
    if connection.dialect.name == "sqlite":
        return
    lock = f"LOCK TABLE {database_epochs.name} IN EXCLUSIVE MODE"
    if within_ms is not None:
        # 0 would be no limit. Later locks of the transaction have the usual one.
        lock = f"SET LOCAL lock_timeout = {max(1, within_ms)}; {lock}; SET LOCAL lock_timeout TO DEFAULT"
    connection.exec_driver_sql(lock)


def disable_idle_timeout(connection: Connection) -> None:
    """Disable PostgreSQL's idle timeout for a transaction that waits for a slow local disk."""
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")


def libpq_parameters(url: sa.URL) -> dict[str, Any]:
    """Return the parameters of a plain psycopg connection; those of the URL take precedence."""
    _, parameters = url.get_dialect()().create_connect_args(url)
    return {**_DETECT_LOSS, **parameters}


def create_engine(
    url: str, *, busy_ms: int = BUSY_MS, stuck_ms: int = STUCK_MS, connect_timeout_s: int = _CONNECT_S
) -> Engine:
    """Return an engine whose transactions behave alike on both databases.

    Args:
        url: SQLAlchemy's; `postgresql://` means psycopg 3.
        busy_ms: how long a transaction waits for locks of other processes, or in a statement for a row.
        stuck_ms: how long a transaction may be idle on PostgreSQL.
        connect_timeout_s: how long a caller waits for a PostgreSQL connection.
    """
    address = sa.make_url(url)
    if address.get_backend_name() == "sqlite":
        engine = sa.create_engine(url)
        sa.event.listen(engine, "connect", lambda raw, _record: _prepare_sqlite(raw, busy_ms))
        sa.event.listen(engine, "begin", lambda connection: _begin_sqlite(connection, busy_ms))
        return engine
    settings = {"lock_timeout": busy_ms, "idle_in_transaction_session_timeout": stuck_ms, "timezone": "UTC"}
    engine = sa.create_engine(
        address,
        isolation_level="SERIALIZABLE",
        # One for each thread, with the one that parses reports and the one that pings.
        pool_size=_READERS + _PEEKERS + _POSTGRES_WRITERS + 2,
        max_overflow=0,
        pool_timeout=connect_timeout_s,
        connect_args=libpq_parameters(address)
        | {
            "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
            "connect_timeout": connect_timeout_s,
            "application_name": "benchfarm",
        },
    )
    engine.dialect.statement_compiler = _PostgresCompiler
    sa.event.listen(engine, "checkout", partial(_check_idle, engine.dialect))
    sa.event.listen(engine, "begin", _begin_postgres)
    sa.event.listen(engine, "do_executemany", copy_rows)
    return engine


class _PostgresCompiler(PGCompiler_psycopg):
    """Write limits as text: of a parameter, PostgreSQL assumes a tenth of all rows, and plans each time."""

    def limit_clause(self, select: sa.Select[Any], **options: Any) -> str:
        write: Callable[..., str] = super().limit_clause
        return write(select, **options | {"literal_execute": True})


def _prepare_sqlite(raw: Any, busy_ms: int) -> None:
    # The driver would otherwise begin and commit implicitly, for instance around DDL.
    raw.isolation_level = None
    for pragma in (
        "journal_mode=WAL",
        # The agent deletes a report once it is acknowledged: the commit must be on disk by then.
        "synchronous=FULL",
        "foreign_keys=ON",
        f"busy_timeout={busy_ms}",
    ):
        raw.execute(f"PRAGMA {pragma}")
    try:
        raw.execute("SELECT ln(1.0)")
    except sqlite3.OperationalError:
        # An SQLite that was compiled without SQLITE_ENABLE_MATH_FUNCTIONS.
        raw.create_function("ln", 1, _ln, deterministic=True)


def _ln(value: float | None) -> float | None:
    return None if value is None or value <= 0 else math.log(value)


def _begin_sqlite(connection: Connection, busy_ms: int) -> None:
    options = connection.get_execution_options()
    writes = options.get("farm_writes", False)
    # Three statements through SQLAlchemy would take longer than most transactions.
    run = _driver_errors(connection)
    run(f"PRAGMA busy_timeout={options.get('farm_busy_ms', busy_ms)}")
    # A write on a reader's connection would otherwise be rolled back silently.
    run(f"PRAGMA query_only={'OFF' if writes else 'ON'}")
    _limit_sqlite(connection, options.get("farm_read_ms"))
    # Take the write lock at once: a lock taken later in the transaction could not wait for another writer.
    run("BEGIN IMMEDIATE" if writes else "BEGIN")


def _limit_sqlite(connection: Connection, limit_ms: int | None) -> None:
    """Have statements fail once the time is over; with None, as long as they take."""
    raw: Any = connection.connection.driver_connection
    if limit_ms is None:
        raw.set_progress_handler(None, 0)
        return
    until_s = time.monotonic() + limit_ms / 1000
    raw.set_progress_handler(lambda: time.monotonic() > until_s, _SQLITE_CHECK_EVERY)


def _driver_errors(connection: Connection) -> Callable[[str], object]:
    """Return a function that runs statements on the driver and raises SQLAlchemy's errors."""
    raw: Any = connection.connection.driver_connection

    def run(statement: str) -> object:
        try:
            return raw.execute(statement)
        except sqlite3.Error as error:
            raise sa.exc.DBAPIError.instance(statement, None, error, sqlite3.Error) from error

    return run


def _check_idle(dialect: sa.Dialect, raw: Any, _record: object, _proxy: object) -> None:
    """Have a connection of the pool replaced that the server has ended.

    The server is asked only where it has sent something since, such as the end: not in each transaction.
    """
    try:
        received = select.poll()
        received.register(raw.fileno(), select.POLLIN)
        if received.poll(0):
            dialect.do_ping(raw)
    except psycopg.OperationalError as error:
        raise sa.exc.DisconnectionError from error


def _begin_postgres(connection: Connection) -> None:
    options = connection.get_execution_options()
    raw: Any = connection.connection.driver_connection
    # The driver begins a write. For a reader, a snapshot is enough: it neither waits nor blocks others.
    raw.autocommit = not options.get("farm_writes", False)
    if raw.autocommit:
        limit = f"SET LOCAL statement_timeout = {options.get('farm_read_ms') or 0}"
        connection.exec_driver_sql(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {limit}")
