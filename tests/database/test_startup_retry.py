"""A farm that starts outlasts a database that ends its connections, and says so where it cannot start."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import Pool

from farm.api.app import create_app
from farm.cli.shell.main import main
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.errors import FarmBusy
from farm.database.connect import check_server, retry_while_busy
from farm.database.engine import Database, sqlite_url
from farm.database.migrate import upgrade
from tests.support.database.postgres import PostgresServer


@contextmanager
def ended_once(postgres: PostgresServer, mark: str) -> Iterator[list[str]]:
    """The first statement that says so runs into the end of its connection; it is in the list then."""
    ended: list[str] = []

    def end(connection: Connection, _cursor: object, statement: str, *_more: Any) -> None:
        if mark in statement and not ended:
            ended.append(statement)
            driver: Any = connection.connection.driver_connection
            postgres.execute(f"SELECT pg_terminate_backend({driver.info.backend_pid}, 10000)")

    sa.event.listen(Engine, "before_cursor_execute", end)
    try:
        yield ended
    finally:
        sa.event.remove(Engine, "before_cursor_execute", end)


@contextmanager
def ended_at_first(postgres: PostgresServer, database: str) -> Iterator[None]:
    """Every connection to that database is ended as soon as it is made."""

    def end(driver: Any, _record: object) -> None:
        if driver.info.dbname == database:
            postgres.execute(f"SELECT pg_terminate_backend({driver.info.backend_pid}, 10000)")

    sa.event.listen(Pool, "connect", end)
    try:
        yield
    finally:
        sa.event.remove(Pool, "connect", end)


@pytest.mark.invariant("I17")
@pytest.mark.parametrize("mark", ["pg_advisory_xact_lock", "LOCK TABLE", "clock_timestamp"])
def test_a_farm_whose_connection_is_ended_while_it_starts_starts(
    postgres: PostgresServer, tmp_path: Path, mark: str
) -> None:
    """Its process ended with a traceback instead, and stayed away."""
    with postgres.database("migrated") as name:
        app = create_app(FarmConfig(data_dir=tmp_path, database_url=postgres.url(name)), SystemClock())
        with ended_once(postgres, mark) as ended:
            asyncio.run(starts_and_ends(app))
        assert len(ended) == 1


async def starts_and_ends(app: FastAPI) -> None:
    async with app.router.lifespan_context(app):
        pass


def test_a_server_that_ends_the_first_connection_is_busy_and_not_misnamed(postgres: PostgresServer) -> None:
    """It was said that the database is not there."""
    with postgres.database("migrated") as name:
        config = FarmConfig(database_url=postgres.url(name))
        with ended_at_first(postgres, name), pytest.raises(FarmBusy, match="ended a connection"):
            check_server(config)
        check_server(config)


def test_a_database_that_stays_locked_is_given_up_after_a_while(tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "farm.sqlite3", isolation_level=None)) as other,
        closing(Database(sqlite_url(tmp_path / "farm.sqlite3"), busy_ms=50)) as database,
    ):
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(FarmBusy):
            retry_while_busy(partial(upgrade, database.engine), within_s=0.3)
        other.execute("ROLLBACK")
        retry_while_busy(partial(upgrade, database.engine), within_s=0.3)


def test_a_farm_that_cannot_open_what_it_needs_says_so_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server's exit within a task ended the loop, and left nothing but a task that nobody asked."""
    (tmp_path / "blobs").touch()
    monkeypatch.setenv("FARM_BLOBS_PATH", str(tmp_path / "blobs"))
    with pytest.raises(SystemExit) as left:
        main(["up", "--port", "0", "--no-agent", "--data", str(tmp_path / "farm")])
    assert left.value.code == 6
    said = capsys.readouterr().err
    assert said.splitlines()[-2:] == [
        "error: the farm could not start",
        "hint: the log says why, right above",
    ]
    assert "never retrieved" not in said
