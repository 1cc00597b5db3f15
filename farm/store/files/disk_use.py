"""What a database takes on disk."""

from pathlib import Path

from sqlalchemy.engine import Connection


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
