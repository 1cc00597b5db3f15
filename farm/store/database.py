"""The database: whole transactions, one writer at a time on SQLite, readers beside it."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from farm.core.errors import FarmBusy

P = ParamSpec("P")
T = TypeVar("T")

_READERS = 4
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


def sqlite_url(path: Path) -> str:
    """The URL of a database file."""
    return f"sqlite:///{path}"


class Database:
    """Runs services in transactions: each call is one, committed when the service returns, else rolled back.

    On SQLite every write runs on one thread of its own, because its file lock makes waiting unfair between
    threads. Errors of the database that waiting can cure leave as FarmBusy; others are mistakes of ours.
    """

    def __init__(self, url: str, *, busy_ms: int = BUSY_MS) -> None:
        self.engine = create_engine(url, busy_ms=busy_ms)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="farm-writer")
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
            with (
                _curable_as_busy(),
                self.engine.connect().execution_options(farm_writes=True) as connection,
                connection.begin(),
            ):
                return service(connection, *args, **kwargs)

        return self._writer.submit(run)


def free_bytes_inside(connection: Connection) -> int:
    """What rows that went have left inside the file, for rows to come; no file shrinks by itself."""
    pages, page_bytes = (
        connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("freelist_count", "page_size")
    )
    size_bytes: int = pages * page_bytes
    return size_bytes


@contextmanager
def _curable_as_busy() -> Iterator[None]:
    try:
        yield
    except sa.exc.OperationalError as error:
        if isinstance(error.orig, sqlite3.Error) and not _is_curable(error.orig):
            raise
        raise FarmBusy(f"the database refused for now: {error.orig}", hint=_cure(error.orig)) from error


def _is_curable(error: sqlite3.Error) -> bool:
    # The lower byte is the primary code; the rest says which kind of it.
    return error.sqlite_errorcode & 0xFF in _CURABLE


def _cure(error: BaseException | None) -> str | None:
    """What helps where waiting alone does not."""
    if isinstance(error, sqlite3.Error) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL:
        return (
            "free space on the farm's disk (`farm storage show`); agents keep what they have, and try again"
        )
    return None


def create_engine(url: str, *, busy_ms: int = BUSY_MS) -> Engine:
    """An engine with what SQLite needs to behave: WAL, foreign keys, real transactions."""
    engine = sa.create_engine(url)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", lambda raw, _record: _prepare_sqlite(raw, busy_ms))
        sa.event.listen(engine, "begin", _begin_sqlite)
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
