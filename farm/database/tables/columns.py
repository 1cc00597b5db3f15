"""Naming of constraints, column types, and conditions of partial indexes."""

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
#: For tables with public ids: an id is never reused, even if its row is deleted, and a restored database
#: continues above all ids given before (farm.database.sequences).
NO_NUMBER_REUSE: dict[str, Any] = {"sqlite_autoincrement": True}


class UtcTime(sa.types.TypeDecorator[datetime]):
    """An aware datetime, stored as whole microseconds since 1970-01-01 UTC on both databases."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else (value - _EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        return None if value is None else _EPOCH + timedelta(microseconds=value)


def one_of(column: str, enum: type[StrEnum]) -> sa.CheckConstraint:
    """Return a constraint that allows only the enum's values: no transition leaves an unknown state."""
    listed = ", ".join(f"'{member.value}'" for member in enum)
    return sa.CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


def where(condition: str) -> dict[str, Any]:
    """Return the condition of a partial index for both databases."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def literal(value: StrEnum) -> sa.ColumnClause[str]:
    """Return an enum value written into the statement itself, as in the condition of a partial index.

    With a parameter, neither SQLite nor a prepared statement of PostgreSQL would use the partial index.
    """
    return sa.literal_column(f"'{value.value}'", sa.Text())


def is_set(flag: sa.Column[bool]) -> sa.TextClause:
    """Return the condition that a flag is set, written as in the condition of a partial index.

    SQLAlchemy writes a comparison with 1 for SQLite, which takes no partial index for it.
    """
    return sa.text(str(flag))


def is_one_of(column: sa.ColumnElement[Any], members: Iterable[StrEnum]) -> sa.ColumnElement[bool]:
    """Return the condition that a column has one of several enum values, written as `literal` does."""
    return column.in_([literal(member) for member in members])
