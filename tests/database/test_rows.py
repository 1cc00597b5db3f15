"""Many rows in one statement arrive as they were given, on both databases; rows become records."""

from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.engine import Connection

from farm.core.devices.device import Admin, Cluster
from farm.database import tables
from farm.database.engine import Database
from farm.database.rows import find_record, insert_rows, is_among, to_record
from tests.support.database.sample_rows import CELL

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
