"""An empty farm's database: migrated once in a process of tests, copied for each of them."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from farm.database.engine import Database, sqlite_url
from farm.database.migrate import upgrade
from tests.support.database.compiled_statements import share_compiled_statements


def put_migrated(path: Path) -> None:
    """Put a copy there; a database that is there stays as it is."""
    share_compiled_statements()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_migrated())


@cache
def _migrated() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "farm.sqlite3"
        database = Database(sqlite_url(path))
        try:
            upgrade(database.engine)
        finally:
            database.close()
        # Closing moved all of the write-ahead log into the file.
        assert [each.name for each in path.parent.iterdir()] == [path.name]
        return path.read_bytes()
