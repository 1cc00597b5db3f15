"""Compaction of an SQLite file."""

import sqlite3
from contextlib import closing
from pathlib import Path

from farm.core.errors import FarmDiskFull


def compact(path: Path) -> int:
    """Compact a database file that is not in use, and return the freed bytes.

    Raises:
        FarmDiskFull: the disk has no space for a second copy; the file stays unchanged.
    """
    before_bytes = path.stat().st_size
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        try:
            connection.execute("VACUUM")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_FULL:
                raise
            raise FarmDiskFull(
                f"there is not enough disk space to rewrite {path}",
                hint="free as many bytes as the file has first",
            ) from error
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return before_bytes - path.stat().st_size
