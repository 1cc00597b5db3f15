"""The size of a database on disk."""

from pathlib import Path

from sqlalchemy.engine import Connection


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
