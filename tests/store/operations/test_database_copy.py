"""Rows go from one database to another as they are, and numbers go on after them."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.database import tables
from farm.database.engine import Database, sqlite_url
from farm.database.sequences import skip_sequence_numbers, tables_with_public_ids
from farm.store.operations.database_copy import copy_rows, count_rows, has_rows
from tests.support.database.migrated_database import put_migrated
from tests.support.database.sample_rows import ATTEMPT, JOB, MEASUREMENT, NOW, add

ODD = {
    "samples": bytes(range(256)),
    "value_ns": 1234567.890123,
    "min_ns": 2**52,
    "metrics": [{"name": 'a "quoted" name\n', "value": 0.1, "nothing": None, "unit": "µs"}],
}
EVENT = {"at": NOW, "actor": "ann", "kind": "k", "subject": "s", "subject_id": "1"}


def add_odd(connection: Connection) -> None:
    """Values that two databases could have two opinions of."""
    add(connection, tables.attempts, ATTEMPT)
    add(connection, tables.measurements, {**MEASUREMENT, **ODD})
    add(connection, tables.events, EVENT, cause="tab\t, backslash \\, quote ', \\N, newline\n, ünïcödé 😀")
    for number in range(2, 40):
        add(connection, tables.jobs, {**JOB, "round": number})
        add(connection, tables.attempts, {**ATTEMPT, "job_id": number, "fence": number, "state": "finished"})
        add(connection, tables.evidence, evidence(number))


def evidence(number: int) -> dict[str, Any]:
    body = bytes([number]) * 1000
    return {
        "attempt_id": number,
        "report_digest": str(number),
        "counted": True,
        "body": body,
        "body_bytes": len(body),
        "received_at": NOW,
    }


def everything(connection: Connection) -> dict[str, list[tuple[object, ...]]]:
    return {
        table.name: [tuple(row) for row in connection.execute(sa.select(table).order_by(*table.primary_key))]
        for table in tables.metadata.sorted_tables
    }


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A second database, empty, of each kind."""
    if request.param == "sqlite":
        path = tmp_path / "copy.sqlite3"
        put_migrated(path)
        with closing(Database(sqlite_url(path))) as database:
            yield database
        return
    server = request.getfixturevalue("postgres")
    with server.database("migrated") as name, closing(Database(server.url(name))) as database:
        yield database


def test_every_value_arrives_as_it_was(filled: Database, target: Database) -> None:
    filled.write(add_odd)
    assert not target.read(has_rows)
    with filled.engine.connect() as source:
        counts = target.write(lambda connection: copy_rows(source, connection))
        assert target.read(everything) == everything(source)
        assert counts == target.read(count_rows) == count_rows(source)
    assert target.read(has_rows)


def test_numbers_go_on_after_those_that_were_copied_and_none_is_given_twice(
    filled: Database, target: Database
) -> None:
    filled.write(add_odd)
    with filled.engine.connect() as source:
        target.write(lambda connection: copy_rows(source, connection))
    target.write(add, tables.events, EVENT)
    assert last_event(target) == 2
    target.write(skip_sequence_numbers, lambda table, last: 1000)
    target.write(add, tables.events, EVENT)
    assert last_event(target) == 1003
    target.write(lambda connection: connection.execute(tables.events.delete()))
    target.write(add, tables.events, EVENT)
    assert last_event(target) == 1004


def test_a_text_that_postgresql_cannot_keep_loses_one_character_and_no_row(
    sqlite_filled: Database, target: Database
) -> None:
    sqlite_filled.write(add, tables.events, EVENT, cause="a\0b")
    with sqlite_filled.engine.connect() as source:
        target.write(lambda connection: copy_rows(source, connection))
    kept = target.read(lambda connection: connection.execute(sa.select(tables.events.c.cause)).scalar_one())
    assert kept == ("a\0b" if target.engine.dialect.name == "sqlite" else "a\ufffdb")


def test_numbers_are_left_out_in_tables_that_never_had_a_row(target: Database) -> None:
    target.write(skip_sequence_numbers, lambda table, last: 1000)
    target.write(add, tables.events, EVENT)
    assert last_event(target) == 1001


def test_what_people_and_agents_quote_is_numbered_once() -> None:
    quoted = {table.name for table in tables_with_public_ids()}
    assert quoted >= {"attempts", "jobs", "matrices", "sessions", "device_actions", "events"}


def last_event(database: Database) -> int:
    return int(
        database.read(lambda c: c.execute(sa.select(sa.func.max(tables.events.c.event_id))).scalar_one())
    )
