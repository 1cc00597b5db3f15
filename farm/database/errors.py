"""Classification of database errors: transient ones, and those that require a retry of the transaction."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import sqlalchemy as sa

from farm.core.errors import FarmBusy

#: Transient errors: a lock, a full disk, an I/O error (https://sqlite.org/rescode.html).
_TRANSIENT = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOMEM,
        # A read that took too long.
        sqlite3.SQLITE_INTERRUPT,
        # A race for the write-ahead log between starting processes, as after a kill.
        sqlite3.SQLITE_PROTOCOL,
    }
)
#: Connection, serialization, resource, lock and shutdown errors (PostgreSQL manual, appendix A): the first
#: two characters of a code are its class.
_TRANSIENT_CLASSES = frozenset({"08", "40", "53", "55", "57"})


def is_serialization_failure(error: BaseException | None) -> bool:
    """Return True if PostgreSQL requires a retry of the transaction (PostgreSQL manual, chapter 13.5).

    PostgreSQL may report a unique violation when two transactions add the same row; the retried one sees the
    other's row.
    """
    return isinstance(
        error,
        psycopg.errors.SerializationFailure
        | psycopg.errors.DeadlockDetected
        | psycopg.errors.UniqueViolation,
    )


@contextmanager
def transient_errors_as_busy() -> Iterator[None]:
    """Raise transient errors of the database as FarmBusy.

    Raises:
        FarmBusy: the error is transient.
        sqlalchemy.exc.DBAPIError: the error is not transient, which means a bug.
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
        # This process was idle in a transaction, which was rolled back.
        return True
    if isinstance(error, sqlite3.OperationalError):
        # The lower byte is the primary code, the rest its extension; the driver's own errors have none.
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _TRANSIENT
    if isinstance(error, psycopg.OperationalError):
        # Without a code, the connection was lost or never made.
        return error.sqlstate is None or error.sqlstate[:2] in _TRANSIENT_CLASSES
    return False


def _remedy(error: BaseException | None) -> str | None:
    """Return a hint for errors that waiting alone does not resolve."""
    if isinstance(error, sqlite3.Error) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL:
        return "free space on the farm's disk (`farm storage show`); agents keep their reports and retry"
    return None
