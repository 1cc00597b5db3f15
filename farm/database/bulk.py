"""Many rows in one statement: they travel as one JSON text, which the database takes apart."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection


def insert_rows(
    connection: Connection,
    table: sa.Table,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    same: Mapping[str, object],
    unless: Sequence[str] = (),
) -> None:
    """Insert rows in their order; the database numbers them in it.

    Several times as quick as a parameter for each value: a matrix has a million rows.

    Args:
        columns: of the table, of numbers, texts or JSON; what each row has, in that order.
        same: columns that all rows have alike, of any type.
        unless: columns that are unique together: what is there already with the same values stays.
    """
    if not rows:
        return
    taken_apart = _postgresql if connection.dialect.name == "postgresql" else _sqlite
    text = sa.bindparam("rows", json.dumps(rows, separators=(",", ":")), type_=sa.Text())
    query = taken_apart(text, [table.c[name] for name in columns])
    constants = [sa.bindparam(name, value, type_=table.c[name].type) for name, value in same.items()]
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    insert = dialect.insert(table).from_select(
        [*columns, *same], query.add_columns(*constants), include_defaults=False
    )
    connection.execute(insert.on_conflict_do_nothing(index_elements=unless) if unless else insert)


def is_among(
    connection: Connection, column: sa.ColumnElement[int], numbers: Collection[int]
) -> sa.ColumnElement[bool]:
    """Whether a column has one of many numbers, which travel as `insert_rows` has them."""
    text = sa.bindparam("numbers", json.dumps(list(numbers)), type_=sa.Text())
    if connection.dialect.name == "postgresql":
        each = sa.func.json_array_elements_text(sa.cast(text, sa.JSON)).column_valued("each")
        return column.in_(sa.select(sa.cast(each, column.type)))
    return column.in_(sa.select(sa.func.json_each(text).table_valued("value").c.value))


def _sqlite(text: sa.BindParameter[str], columns: Sequence[sa.Column[Any]]) -> sa.Select[Any]:
    each = sa.func.json_each(text).table_valued("key", "value")
    # The type of a JSON value is its own: numbers stay numbers, and what is JSON inside stays JSON.
    values = [sa.func.json_extract(each.c.value, f"$[{place}]") for place in range(len(columns))]
    return sa.select(*values).order_by(each.c.key)


def _postgresql(text: sa.BindParameter[str], columns: Sequence[sa.Column[Any]]) -> sa.Select[Any]:
    array = sa.cast(text, sa.JSON)
    each = sa.func.json_array_elements(array).table_valued("value", with_ordinality="key").render_derived()
    values = [_value(each.c.value, place, column) for place, column in enumerate(columns)]
    return sa.select(*values).order_by(each.c.key)


def _value(row: sa.ColumnElement[Any], place: int, column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    is_json = isinstance(column.type, sa.JSON)
    taken = row.op("->" if is_json else "->>")(sa.literal_column(str(place)))
    return taken if is_json else sa.cast(taken, column.type)
