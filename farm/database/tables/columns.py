"""What the tables are made of: names of constraints, types of columns, conditions of partial indexes."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
#: For tables whose numbers people and agents quote: none is given twice, even if the row it had is gone, and
#: a database that was restored goes on above all that were given before (farm.database.sequences).
NO_NUMBER_REUSE: dict[str, Any] = {"sqlite_autoincrement": True}


class UtcTime(sa.types.TypeDecorator[datetime]):
    """An aware datetime, stored as whole microseconds since 1970-01-01 UTC on every database."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else (value - _EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        return None if value is None else _EPOCH + timedelta(microseconds=value)


def one_of(column: str, words: type[StrEnum]) -> sa.CheckConstraint:
    """Only words of the enum; a word nobody knows would be a state nobody leaves."""
    listed = ", ".join(f"'{word.value}'" for word in words)
    return sa.CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


def where(condition: str) -> dict[str, Any]:
    """The condition of a partial index, for both databases."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def word(value: StrEnum) -> sa.BindParameter[str]:
    """A word of ours written into the statement itself, as it stands in a partial index.

    Neither SQLite nor a prepared statement of PostgreSQL sees that a partial index serves a query whose words
    are parameters.
    """
    return sa.bindparam(None, value.value, type_=sa.Text(), literal_execute=True)


def is_one_of(column: sa.ColumnElement[Any], words: Iterable[StrEnum]) -> sa.ColumnElement[bool]:
    """As `word`, for several of them."""
    values = [value.value for value in words]
    return column.in_(sa.bindparam(None, values, expanding=True, literal_execute=True))
