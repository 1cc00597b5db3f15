"""Gives the room that rows have left inside a SQLite file back to the disk."""

import sqlite3
from contextlib import closing
from pathlib import Path

from farm.core.errors import FarmDiskFull


def compact(path: Path) -> int:
    """Rewrite a database file that nobody uses, dense; the bytes that were freed.

    Raises:
        FarmDiskFull: the disk has no room for a second file; the first stays as it was.
    """
    before_bytes = path.stat().st_size
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        try:
            connection.execute("VACUUM")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_FULL:
                raise
            raise FarmDiskFull(
                f"there is no room to rewrite {path}",
                hint="free as much as the file has first",
            ) from error
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return before_bytes - path.stat().st_size
