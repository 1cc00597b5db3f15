"""The size of a database on disk, and its compaction."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import Connection

from farm.core.errors import FarmDiskFull


def size_bytes(connection: Connection) -> int:
    """Return the size of a database on disk, including its write-ahead log."""
    if connection.dialect.name != "sqlite":
        size: int = connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one()
        return size
    path = Path(connection.engine.url.database or "")
    files = [path.with_name(path.name + suffix) for suffix in ("", "-wal")]
    return sum(file.stat().st_size for file in files if file.exists())


def free_bytes_inside(connection: Connection) -> int:
    """Return the free bytes inside an SQLite file, which does not shrink automatically.

    PostgreSQL reuses free space itself and does not report it: 0.
    """
    if connection.dialect.name != "sqlite":
        return 0
    pages, page_bytes = (
        connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("freelist_count", "page_size")
    )
    size_bytes: int = pages * page_bytes
    return size_bytes


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
