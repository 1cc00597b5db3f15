"""Many rows in one statement arrive as they were given, on both databases."""

from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.database import tables
from farm.database.bulk import insert_rows, is_among
from farm.database.engine import Database
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
