"""Rows by number and time, the newest first: the order of all lists of what people add."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFilter:
    """A filter of what people add; None does not restrict."""

    #: Added at this time or later.
    since: datetime | None = None
    #: This text is in the name, in any case.
    name: str | None = None
    #: Who added it.
    person: str | None = None


def newest_first(
    query: sa.Select[Any],
    number: sa.ColumnElement[int],
    added_at: sa.ColumnElement[datetime],
    *,
    before: int | None,
    since: datetime | None,
) -> sa.Select[Any]:
    """Return a query of rows, the newest first: those before one and since a time, where they are given.

    Args:
        query: of the rows.
        number: the column of their numbers, which rise.
        added_at: the column of the time at which a row was added.
        before: the number of the last row of the page before.
        since: only rows that were added at this time or later.
    """
    query = query.order_by(number.desc())
    if before is not None:
        query = query.where(number < before)
    if since is not None:
        # Not the range of numbers, which both databases would prefer, and read to its end.
        query = query.where(number.in_(sa.select(number).where(added_at >= since)))
    return query


def matching_newest_first(
    query: sa.Select[Any],
    number: sa.ColumnElement[int],
    added_at: sa.ColumnElement[datetime],
    name: sa.ColumnElement[str],
    added_by: sa.ColumnElement[str],
    *,
    which: ListFilter,
    before: int | None,
) -> sa.Select[Any]:
    """Return a query of the rows that match, the newest first; arguments as those of `newest_first`.

    Args:
        name: the column of their names.
        added_by: the column of who added a row.
        which: the rows.
    """
    query = newest_first(query, number, added_at, before=before, since=which.since)
    if which.name is not None:
        query = query.where(name.icontains(which.name, autoescape=True))
    return query if which.person is None else query.where(added_by == which.person)
