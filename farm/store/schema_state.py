"""Which schema a database has, by a look that changes nothing."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory

from farm.store.migrate import MIGRATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaState:
    """What a database file says of itself."""

    #: The last migration that was applied; None on a file without any.
    revision: str | None
    #: The newest this version knows.
    newest: str
    #: Whether this version knows the database's migration.
    is_known: bool


def read_schema_state(path: Path) -> SchemaState:
    """Look into an SQLite file; a farm may be at work on it.

    Raises:
        sqlite3.Error: it is not a database of ours, damaged, or cannot be read.
    """
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        (table,) = connection.execute(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'alembic_version'"
        ).fetchone()
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone() if table else None
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)
    newest = scripts.get_current_head()
    assert newest is not None
    revision = None if row is None else str(row[0])
    known = {script.revision for script in scripts.walk_revisions()}
    return SchemaState(revision=revision, newest=newest, is_known=revision is None or revision in known)
