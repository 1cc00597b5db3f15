"""The migrations make the schema that the code describes, forwards and backwards."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection, Engine

from farm.core.errors import Conflict
from farm.database.engine import create_engine, sqlite_url
from farm.database.migrate import MIGRATIONS, config_for, tables_may_be_replaced, upgrade
from farm.database.tables import metadata

SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY 1, 2"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "farm.sqlite3"


@pytest.fixture
def engine(path: Path) -> Iterator[Engine]:
    made = create_engine(sqlite_url(path))
    yield made
    made.dispose()


def config(connection: Connection | None = None) -> Config:
    made = Config()
    made.set_main_option("script_location", str(MIGRATIONS))
    made.attributes["connection"] = connection
    return made


def downgrade(engine: Engine, to: str) -> None:
    with (
        engine.connect().execution_options(farm_writes=True) as connection,
        tables_may_be_replaced(connection),
        connection.begin(),
    ):
        command.downgrade(config_for(connection), to)


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
    assert [rules(each) for each in schema(engine)] == [rules(each) for each in schema(other)]
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


def test_a_database_is_upgraded_while_somebody_reads_it(engine: Engine, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("PRAGMA journal_mode=WAL")
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
        upgrade(engine)
        assert reader.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM jobs").fetchone() == (0,)


def test_a_migration_that_fails_leaves_the_database_as_it_was(engine: Engine) -> None:
    upgrade(engine)
    downgrade(engine, "0007")
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        connection.exec_driver_sql("CREATE TABLE rejections (in_the_way INTEGER)")
    before = schema(engine)
    with pytest.raises(sa.exc.OperationalError, match="already exists"):
        upgrade(engine)
    assert schema(engine) == before


def test_a_database_with_tables_that_no_farm_made_is_left_as_it_is(engine: Engine) -> None:
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        connection.exec_driver_sql("CREATE TABLE jobs (somebody TEXT)")
    before = schema(engine)
    with pytest.raises(Conflict, match="it has a table jobs"):
        upgrade(engine)
    assert schema(engine) == before


FIRST_ROWS = (
    "INSERT INTO hosts VALUES ('bench', 'active', 1, 'hash', 1)",
    "INSERT INTO devices (device_id, host_id, serial, presence, health, admin, fence, cleaned_fence,"
    " created_at, seen_at) VALUES ('phone', 'bench', 'phone', 'online', 'good', 'active', 3, 3, 1, 2)",
    f"INSERT INTO artifacts VALUES ('{'a' * 64}', 10, 1), ('{'b' * 64}', 20, 2)",
    f"INSERT INTO programs VALUES (1, 'bench', 'arm64-v8a', '{'a' * 64}', 1)",
    f"INSERT INTO variants VALUES (1, 'm/float32/lite', 'm', 'r', '{'b' * 64}', '{{}}', 1)",
    "INSERT INTO matrices VALUES (1, 'first', 'bench', '{}', 5, 7, '[]', 1)",
    "INSERT INTO cells VALUES (1, 1, 0, 'phone', 1, 1, 'cpu', '{}', 1, 'cpu', NULL)",
)


def fill_first_schema(engine: Engine) -> None:
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        command.upgrade(config_for(connection), "0001")
        for statement in FIRST_ROWS:
            connection.exec_driver_sql(statement)


def rows(engine: Engine, query: str) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]


def test_cells_without_jobs_are_divided_into_pages_and_joined_again(engine: Engine) -> None:
    fill_first_schema(engine)
    rejected = [
        {"device_id": None if number % 2 else "phone", "label": f"cell {number}", "reason": "no"}
        for number in range(2001)
    ]
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        connection.execute(sa.text("UPDATE matrices SET rejected = :all"), {"all": json.dumps(rejected)})
    upgrade(engine)
    assert rows(engine, "SELECT rejected_count FROM matrices") == [(2001,)]
    pages = rows(engine, "SELECT first_index, json_array_length(cells) FROM rejections ORDER BY 1")
    assert pages == [(0, 1000), (1000, 1000), (2000, 1)]
    downgrade(engine, "0007")
    ((joined,),) = rows(engine, "SELECT rejected FROM matrices")
    assert json.loads(str(joined)) == rejected


def test_programs_of_the_first_schema_become_bundles_of_one_file(engine: Engine) -> None:
    fill_first_schema(engine)
    upgrade(engine)
    assert rows(engine, "SELECT harness, digest, entry, env, command, definition, lacks FROM programs") == [
        ("bench", "a" * 64, "bench", "{}", '["${program}", "${arguments}"]', None, "[]")
    ]
    assert rows(engine, "SELECT * FROM program_files") == [(1, "bench", "a" * 64, 1)]
    assert rows(engine, "SELECT used_at, expired_at FROM artifacts") == [(1, None), (2, None)]
    assert rows(engine, "SELECT program_id, variant_id FROM cells") == [(1, 1)]
    assert rows(engine, "SELECT tags, label, held_until FROM devices") == [("[]", None, None)]
    assert rows(engine, "PRAGMA foreign_key_check") == []
    assert rows(engine, "PRAGMA foreign_keys") == [(1,)]


def test_going_back_to_the_first_schema_keeps_its_rows(engine: Engine) -> None:
    fill_first_schema(engine)
    upgrade(engine)
    downgrade(engine, "0001")
    assert rows(engine, "SELECT * FROM programs") == [(1, "bench", "arm64-v8a", "a" * 64, 1)]
    assert rows(engine, "SELECT program_id, variant_id FROM cells") == [(1, 1)]


def test_a_migration_that_leaves_rows_astray_is_undone(engine: Engine) -> None:
    fill_first_schema(engine)
    with (
        pytest.raises(sa.exc.IntegrityError, match="refer to nothing"),
        engine.connect().execution_options(farm_writes=True) as connection,
        tables_may_be_replaced(connection),
        connection.begin(),
    ):
        connection.exec_driver_sql("DELETE FROM programs")
    assert rows(engine, "SELECT program_id FROM programs") == [(1,)]
