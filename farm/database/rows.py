"""Rows of tables: as records whose fields have the names of columns, and many in one statement."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from pydantic import TypeAdapter
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
    """Insert rows in the given order, which is also the order of their generated ids.

    This is several times as fast as one parameter for each value; a matrix may have a million rows.

    Args:
        columns: the table's columns that each row lists, in that order; numbers, texts or JSON.
        same: columns with one value for all rows, of any type.
        unless: columns that are unique together; existing rows with the same values stay unchanged.
    """
    if not rows:
        return
    constants = [sa.bindparam(name, value, type_=table.c[name].type) for name, value in same.items()]
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    listed = rows_query(connection.dialect.name, [table.c[name] for name in columns], rows_text(rows))
    query = listed.add_columns(*constants)
    insert = dialect.insert(table).from_select([*columns, *same], query, include_defaults=False)
    connection.execute(insert.on_conflict_do_nothing(index_elements=unless) if unless else insert)


def rows_query(dialect_name: str, columns: Sequence[sa.ColumnClause[Any]], rows: str) -> sa.Select[Any]:
    """Return the query of `rows_text` in its order; an execution may pass another one as `rows`."""
    text = sa.bindparam("rows", rows, type_=sa.Text())
    return (_postgresql if dialect_name == "postgresql" else _sqlite)(text, columns)


def rows_text(rows: Sequence[Sequence[object]]) -> str:
    """Return rows as the one JSON text that `rows_query` reads."""
    return json.dumps(rows, separators=(",", ":"))


#: An insert of parameters alone: one for each column, at most with the name of its type.
_PLAIN_INSERT = re.compile(
    r"INSERT INTO (?P<into>\w+ \([^()]+\)) VALUES \((?P<values>%\(\w+\)s[^,()]*(, %\(\w+\)s[^,()]*)*)\)"
)


def copy_rows(
    cursor: Any, statement: str, rows: Sequence[Mapping[str, object]], _context: object
) -> bool | None:
    """Insert many rows into PostgreSQL by COPY, in half of the time of a statement for each of them.

    A listener of SQLAlchemy's event `do_executemany`: with None, the statement is executed as usual, because
    it is more than an insert.
    """
    if (plain := _plain_insert(statement)) is None:
        return None
    into, names = plain
    with cursor.copy(f"COPY {into} FROM STDIN") as copy:
        for row in rows:
            copy.write_row([row[name] for name in names])
    return True


@lru_cache(maxsize=256)
def _plain_insert(statement: str) -> tuple[str, list[str]] | None:
    """Return the table with its columns, and the parameter of each column; None for any other statement."""
    found = _PLAIN_INSERT.fullmatch(statement)
    return None if found is None else (found["into"], re.findall(r"%\((\w+)\)s", found["values"]))


_Key = sa.ColumnElement[int] | sa.ColumnElement[str]
_Keys = Collection[int | str]


def is_among(connection: Connection, column: _Key, values: _Keys) -> sa.ColumnElement[bool]:
    """Return the condition that a column has one of many numbers or texts, passed as one JSON text."""
    text = sa.bindparam("values", json.dumps(list(values)), type_=sa.Text(), unique=True)
    return column.in_(_elements(connection.dialect.name, column, text))


def is_key_among(connection: Connection, column: _Key, values: _Keys) -> sa.ColumnElement[bool]:
    """Return the condition of `is_among` on a column by whose index the rows are found.

    PostgreSQL takes the values for ten: a hundred, as in `is_among`, may seem a reason to read a whole table.
    """
    text = sa.bindparam("values", json.dumps(list(values)), type_=sa.Text(), unique=True)
    return is_key_listed(connection.dialect.name, column, text)


def is_key_listed(dialect_name: str, column: _Key, text: sa.BindParameter[str]) -> sa.ColumnElement[bool]:
    """Return the condition of `is_key_among` for the JSON text of a parameter."""
    elements = _elements(dialect_name, column, text)
    array = sa.func.array(elements.scalar_subquery())
    return column == sa.any_(array) if dialect_name == "postgresql" else column.in_(elements)


def _elements(dialect_name: str, column: _Key, text: sa.BindParameter[str]) -> sa.Select[Any]:
    if dialect_name == "postgresql":
        element = sa.func.json_array_elements_text(sa.cast(text, sa.JSON)).column_valued("element")
        return sa.select(sa.cast(element, column.type))
    # Not by table_valued: to make its columns takes as long as the rest of the statement.
    return sa.select(sa.column("value")).select_from(sa.func.json_each(text))


def _sqlite(text: sa.BindParameter[str], columns: Sequence[sa.ColumnClause[Any]]) -> sa.Select[Any]:
    element = sa.func.json_each(text).table_valued("key", "value")
    # json_extract keeps the type of a value: numbers stay numbers, nested JSON stays JSON.
    values = [sa.func.json_extract(element.c.value, f"$[{at}]").label(c.name) for at, c in enumerate(columns)]
    return sa.select(*values).order_by(element.c.key)


def _postgresql(text: sa.BindParameter[str], columns: Sequence[sa.ColumnClause[Any]]) -> sa.Select[Any]:
    array = sa.cast(text, sa.JSON)
    element = sa.func.json_array_elements(array).table_valued("value", with_ordinality="key").render_derived()
    values = [_value(element.c.value, place, column) for place, column in enumerate(columns)]
    return sa.select(*values).order_by(element.c.key)


def _value(row: sa.ColumnElement[Any], place: int, column: sa.ColumnClause[Any]) -> sa.ColumnElement[Any]:
    is_json = isinstance(column.type, sa.JSON)
    value = row.op("->" if is_json else "->>")(sa.literal_column(str(place)))
    return (value if is_json else sa.cast(value, column.type)).label(column.name)


T = TypeVar("T")


def to_record(kind: type[T], row: sa.Row[*tuple[Any, ...]] | Mapping[str, Any], **other: object) -> T:
    """Return a row as a record: texts as enums, JSON as the types of the fields.

    Columns without a field are left out; `other` has the values of fields that the row has not, or otherwise.
    """
    adapter, names = _adapter(cast(Any, kind))
    values: Mapping[Any, Any] = row._mapping if isinstance(row, sa.Row) else row
    values = {**values, **other} if other else values
    try:
        arguments = {name: values[name] for name in names}
    except KeyError:
        arguments = {name: values[name] for name in names if name in values}
    record: T = adapter.validate_python(arguments, strict=False)
    return record


@cache
def _adapter(kind: Any) -> tuple[TypeAdapter[Any], tuple[str, ...]]:
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else kind.model_fields
    return TypeAdapter(kind), tuple(names)


def find_record(
    connection: Connection,
    kind: type[T],
    query: sa.Select[Any],
    parameters: Mapping[str, object] | None = None,
) -> T | None:
    """Return the one row of a query as a record, or None."""
    row = connection.execute(query, parameters).one_or_none()
    return None if row is None else to_record(kind, row)


def join_limited(
    connection: Connection,
    asked: sa.Subquery,
    limited: sa.Select[tuple[Any]],
    column: sa.Column[Any],
    *conditions: sa.ColumnElement[bool],
) -> sa.Join:
    """Return each row of `asked` joined with the rows that a limited query finds for it.

    Args:
        connection: the database.
        asked: a table of the statement's own.
        limited: refers to `asked`, and returns values of `column`.
        column: of the table that is joined.
        conditions: on its rows.
    """
    if connection.dialect.name == "postgresql":
        # Of a subquery that refers to a row beside it, PostgreSQL would read the whole table for each row.
        found = limited.lateral("found")
        [value] = found.c
        return asked.join(found, sa.true()).join(column.table, sa.and_(column == value, *conditions))
    return asked.join(column.table, sa.and_(column.in_(limited.correlate(asked)), *conditions))
