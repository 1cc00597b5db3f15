"""Which errors of a database waiting can cure, and which mean that a transaction is to be run again."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import sqlalchemy as sa

from farm.core.errors import FarmBusy

#: What waiting can cure: a lock, a full disk, a disk that comes back (https://sqlite.org/rescode.html).
_TRANSIENT = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOMEM,
        # A race for the write-ahead log with others that begin, as after one was killed.
        sqlite3.SQLITE_PROTOCOL,
    }
)
#: Connections, resources, an operator's shutdown, locks, and an order that was not found
#: (PostgreSQL manual, appendix A): the first two characters of a code are its class.
_TRANSIENT_CLASSES = frozenset({"08", "40", "53", "55", "57"})


def is_serialization_failure(error: BaseException | None) -> bool:
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


@contextmanager
def transient_errors_as_busy() -> Iterator[None]:
    """Translate the errors of a database.

    Raises:
        FarmBusy: waiting can cure it.
        sqlalchemy.exc.DBAPIError: it cannot: a mistake of ours.
    """
    try:
        yield
    except sa.exc.TimeoutError as error:
        raise FarmBusy("all connections to the database are in use") from error
    except sa.exc.DBAPIError as error:
        if not _is_transient(error.orig):
            raise
        raise FarmBusy(f"the database refused for now: {error.orig}", hint=_remedy(error.orig)) from error


def _is_transient(error: BaseException | None) -> bool:
    if isinstance(error, psycopg.errors.IdleInTransactionSessionTimeout):
        # This process stood still in a transaction; it is undone.
        return True
    if isinstance(error, sqlite3.OperationalError):
        # The lower byte is the primary code; the rest says which kind of it.
        # The driver's own errors have none.
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _TRANSIENT
    if isinstance(error, psycopg.OperationalError):
        # Without a code the connection was lost, or never made.
        return error.sqlstate is None or error.sqlstate[:2] in _TRANSIENT_CLASSES
    return False


def _remedy(error: BaseException | None) -> str | None:
    """What helps where waiting alone does not."""
    if isinstance(error, sqlite3.Error) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL:
        return (
            "free space on the farm's disk (`farm storage show`); agents keep what they have, and try again"
        )
    return None
