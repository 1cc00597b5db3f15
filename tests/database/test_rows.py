"""Many rows in one statement arrive as they were given, on both databases; rows become records."""

from dataclasses import dataclass
from typing import Any
from unittest.mock import MagicMock

import pytest
import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.engine import Connection

from farm.core.devices.device import Admin, Cluster
from farm.database import tables
from farm.database.engine import Database
from farm.database.rows import copy_rows, find_record, insert_rows, is_among, to_record
from tests.support.database.sample_rows import ATTEMPT, CELL, MEASUREMENT, add

COLUMNS = ("cell_index", "device_id", "variant_id", "settings", "label", "baseline_index")
SAME = {name: CELL[name] for name in ("matrix_id", "program_id", "backend", "replica")}


def put(connection: Connection, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    insert_rows(connection, tables.cells, COLUMNS, rows, same=SAME)
    columns = [tables.cells.c[name] for name in COLUMNS]
    query = sa.select(*columns).where(tables.cells.c.cell_index >= 100).order_by(tables.cells.c.cell_id)
    return [tuple(row) for row in connection.execute(query)]


@pytest.mark.parametrize(
    "settings", [{}, {"iter": 200, "vulkan": True, "rate": 0.1}, {"name": "ein \"Wort\" — 語 \\ '%s' :x"}]
)
def test_numbers_texts_json_and_nothing_arrive_as_they_were(
    filled: Database, settings: dict[str, Any]
) -> None:
    rows = [(100, CELL["device_id"], None, settings, "cpu 'x' \"y\" ü %s :b", None)]
    assert filled.write(put, rows) == rows


def test_rows_are_numbered_in_their_order(filled: Database) -> None:
    indexes = [100 + (7 * number) % 1000 for number in range(1000)]
    rows = [(index, CELL["device_id"], 1, {"iter": index}, str(index), index + 1) for index in indexes]
    assert filled.write(put, rows) == rows


def test_no_rows_are_no_statement(filled: Database) -> None:
    assert filled.write(put, []) == []


def test_what_is_there_already_stays_as_it_is(filled: Database) -> None:
    first: tuple[Any, ...] = (100, CELL["device_id"], None, {}, "first", None)
    filled.write(put, [first])

    def again(connection: Connection) -> None:
        rows: list[tuple[Any, ...]] = [
            (100, CELL["device_id"], None, {}, "second", None),
            (101, CELL["device_id"], None, {}, "x", None),
        ]
        insert_rows(connection, tables.cells, COLUMNS, rows, same=SAME, unless=("matrix_id", "cell_index"))

    filled.write(again)
    assert [row[4] for row in filled.write(put, [])] == ["first", "x"]


@pytest.mark.parametrize("numbers", [[], [100], list(range(99, 5000, 2))])
def test_many_numbers_are_looked_up_at_once(filled: Database, numbers: list[int]) -> None:
    filled.write(put, [(index, CELL["device_id"], None, {}, "x", None) for index in range(100, 200)])

    def found(connection: Connection) -> set[int]:
        index = tables.cells.c.cell_index
        return set(connection.execute(sa.select(index).where(is_among(connection, index, numbers))).scalars())

    assert {number for number in filled.read(found) if number >= 100} == {*numbers} & {*range(100, 200)}


def test_two_columns_are_looked_up_each_among_its_own(filled: Database) -> None:
    filled.write(put, [(index, CELL["device_id"], None, {}, "x", None) for index in range(100, 104)])

    def found(connection: Connection) -> list[int]:
        index, matrix_id = tables.cells.c.cell_index, tables.cells.c.matrix_id
        both = sa.and_(
            is_among(connection, matrix_id, [SAME["matrix_id"]]), is_among(connection, index, [101, 103])
        )
        return list(connection.execute(sa.select(index).where(both).order_by(index)).scalars())

    assert filled.read(found) == [101, 103]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A row's state, JSON, a value that may be missing, and one that no column has."""

    admin: Admin
    clusters: tuple[Cluster, ...]
    label: str | None
    host_full: bool = False


def test_a_row_becomes_a_record_of_its_fields_types() -> None:
    row = {"admin": "active", "clusters": [{"cores": [0, 1]}], "label": None, "serial": "not a field"}
    expected = Record(admin=Admin.ACTIVE, clusters=(Cluster(cores=(0, 1)),), label=None, host_full=True)
    record = to_record(Record, row, host_full=True)
    assert record == expected
    assert record.admin is Admin.ACTIVE


def test_a_row_that_lacks_a_field_is_no_record() -> None:
    with pytest.raises(ValidationError, match="label"):
        to_record(Record, {"admin": "active", "clusters": []})


def test_a_query_without_a_row_finds_no_record(filled: Database) -> None:
    query = sa.select(tables.devices.c.admin).where(sa.false())
    assert filled.read(lambda connection: find_record(connection, Record, query)) is None


#: What COPY marks, and what ends its rows and columns.
_TEXTS = ("\\N", "\\.", "tab\there", "line\nbreak\r", "quote \" and ' and \\", "ü 語 %s :b", "")


def test_many_inserted_rows_arrive_as_they_were(filled: Database) -> None:
    rows: list[dict[str, Any]] = [
        {
            **CELL,
            "cell_index": 100 + number,
            "label": text,
            "settings": {"text": text, "vulkan": True, "rate": 0.1, "nothing": None},
            "variant_id": None,
            "baseline_index": None if number % 2 else 7,
        }
        for number, text in enumerate(_TEXTS)
    ]

    def insert(connection: Connection) -> list[dict[str, Any]]:
        connection.execute(tables.cells.insert(), rows)
        query = sa.select(*(tables.cells.c[name] for name in rows[0])).order_by(tables.cells.c.cell_id)
        found = connection.execute(query.where(tables.cells.c.cell_index >= 100)).mappings()
        return [dict(row) for row in found]

    assert filled.write(insert) == rows


def test_bytes_numbers_and_times_of_many_rows_arrive_as_they_were(filled: Database) -> None:
    rows: list[dict[str, Any]] = [
        {
            **MEASUREMENT,
            "accepted": False,
            "parser_version": number,
            "samples": bytes(range(256)) if number else None,
            "value_ns": 0.1 + number,
            "scatter": 1e-300,
        }
        for number in range(20)
    ]

    def insert(connection: Connection) -> list[dict[str, Any]]:
        add(connection, tables.attempts, ATTEMPT)
        own = tables.measurements
        connection.execute(own.insert(), rows)
        query = sa.select(*(own.c[name] for name in rows[0])).order_by(own.c.measurement_id)
        return [dict(row) for row in connection.execute(query).mappings()]

    assert filled.write(insert) == rows


def test_none_of_many_rows_is_inserted_if_one_breaks_a_rule(filled: Database) -> None:
    rows = [{**CELL, "cell_index": index} for index in (100, 101, 101)]
    with pytest.raises(sa.exc.IntegrityError):
        filled.write(lambda connection: connection.execute(tables.cells.insert(), rows))
    assert filled.write(put, []) == []
    strangers = [{**CELL, "cell_index": index, "device_id": "nobody"} for index in (100, 101)]
    with pytest.raises(sa.exc.IntegrityError):
        filled.write(lambda connection: connection.execute(tables.cells.insert(), strangers))


@pytest.mark.parametrize(
    ("statement", "copied"),
    [
        ("INSERT INTO t (a, b) VALUES (%(a)s::BIGINT, %(b)s)", "COPY t (a, b) FROM STDIN"),
        ("INSERT INTO t (a, b) VALUES (%(b)s, %(a)s::DOUBLE PRECISION)", "COPY t (a, b) FROM STDIN"),
        ("INSERT INTO t (a) VALUES (%(a)s) ON CONFLICT DO NOTHING", None),
        ("INSERT INTO t (a) VALUES (%(a)s) RETURNING t.a", None),
        ("INSERT INTO t (a, b) VALUES (%(a)s, lower(%(b)s))", None),
        ("INSERT INTO t (a, b) VALUES (%(a)s, 7)", None),
        ("INSERT INTO t (a) SELECT a FROM u WHERE b = %(b)s", None),
        ("UPDATE t SET a = %(a)s", None),
    ],
)
def test_only_plain_inserts_are_copied(statement: str, copied: str | None) -> None:
    cursor = MagicMock()
    done = copy_rows(cursor, statement, [{"a": 1, "b": 2}], None)
    assert done is (True if copied else None)
    assert [call.args for call in cursor.copy.call_args_list] == ([(copied,)] if copied else [])
