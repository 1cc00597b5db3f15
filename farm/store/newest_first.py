"""Rows by number and time, the newest first: the order of all lists of what people add."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa


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
