"""The migrations make the schema that the code describes, forwards and backwards."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection, Engine

from farm.core.errors import Conflict, SchemaMismatch
from farm.database.engine import create_engine, sqlite_url
from farm.database.migrate import MIGRATIONS, defer_foreign_keys, upgrade
from farm.database.tables import metadata
from tests.database.migrations.downgrades import downgrade
from tests.support.database.sample_rows import (
    add_rows,
)

SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY 1, 2"


def config(connection: Connection | None = None) -> Config:
    made = Config()
    made.set_main_option("script_location", str(MIGRATIONS))
    made.attributes["connection"] = connection
    return made


def schema(engine: Engine) -> list[tuple[str, ...]]:
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(SCHEMA)
        return [tuple(row) for row in rows if row.name != "alembic_version"]


def test_upgrading_an_empty_database_gives_the_schema_of_the_code(engine: Engine) -> None:
    upgrade(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_indexes_and_checks_are_the_same_as_those_of_the_code(engine: Engine, tmp_path: Path) -> None:
    # compare_metadata knows neither CHECK constraints nor the conditions of partial indexes.
    upgrade(engine)
    other = create_engine(sqlite_url(tmp_path / "other.sqlite3"))
    with other.connect().execution_options(farm_writes=True) as connection, connection.begin():
        metadata.create_all(connection)
    tables = [row for row in schema(engine) if row[0] != "view"]
    assert [rules(each) for each in tables] == [rules(each) for each in schema(other)]
    other.dispose()


def rules(row: tuple[str, ...]) -> tuple[str, str, list[str]]:
    """A table's or index's name with its conditions, in no particular spelling."""
    kind, name, _, sql = row
    text = " ".join(sql.replace("\n", " ").replace("\t", " ").replace('"', "").split())
    parts = [part for part in text.split("CONSTRAINT ") if part.startswith(("ck_", "uq_", "fk_"))]
    # Of an index, its columns and their order, too.
    where = [text.partition(" ON ")[2] if kind == "index" else text.partition(" WHERE ")[2]]
    never_twice = ["AUTOINCREMENT"] if "AUTOINCREMENT" in text else []
    return kind, name, sorted(part.strip(" ,)") for part in parts) + where + never_twice


def test_upgrading_again_changes_nothing(engine: Engine) -> None:
    upgrade(engine)
    before = schema(engine)
    upgrade(engine)
    assert schema(engine) == before


def test_downgrading_leaves_nothing_and_can_be_undone(engine: Engine) -> None:
    upgrade(engine)
    before = schema(engine)
    downgrade(engine, "base")
    assert schema(engine) == []
    upgrade(engine)
    assert [rules(each) for each in schema(engine)] == [rules(each) for each in before]


def test_there_is_one_head() -> None:
    assert len(ScriptDirectory.from_config(config()).get_heads()) == 1


def test_a_database_is_upgraded_while_someone_reads_it(engine: Engine, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("PRAGMA journal_mode=WAL")
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
        upgrade(engine)
        assert reader.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM jobs").fetchone() == (0,)


def test_a_migration_that_fails_leaves_the_database_as_it_was(engine: Engine) -> None:
    def fail(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "CREATE TABLE jobs" in statement:
            raise RuntimeError("the disk is full")

    sa.event.listen(engine, "before_cursor_execute", fail)
    with pytest.raises(RuntimeError, match="the disk is full"):
        upgrade(engine)
    sa.event.remove(engine, "before_cursor_execute", fail)
    assert schema(engine) == []
    upgrade(engine)


def test_a_database_with_tables_that_no_farm_made_is_left_as_it_is(engine: Engine) -> None:
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        connection.exec_driver_sql("CREATE TABLE jobs (somebody TEXT)")
    before = schema(engine)
    with pytest.raises(Conflict, match="it has a table jobs"):
        upgrade(engine)
    assert schema(engine) == before


def test_a_database_of_a_development_version_is_refused(engine: Engine) -> None:
    upgrade(engine)
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0100'")
    before = schema(engine)
    with pytest.raises(SchemaMismatch, match="development version before the first release") as refusal:
        upgrade(engine)
    assert "empty data folder" in refusal.value.hint
    assert schema(engine) == before


def test_a_migration_that_leaves_dangling_references_is_rolled_back(engine: Engine) -> None:
    upgrade(engine)
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        add_rows(connection)
    with (
        pytest.raises(sa.exc.IntegrityError, match="dangling references"),
        engine.connect().execution_options(farm_writes=True) as connection,
        defer_foreign_keys(connection),
        connection.begin(),
    ):
        connection.exec_driver_sql("DELETE FROM programs")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM programs").scalar_one() > 0
