"""Matrices by time, name and person, the newest first, however many others there are.

Names are found by their trigrams, which the leader stores some seconds after a submission; names without them
are read. A text of fewer than three characters is found by reading names, the newest first.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.database.rows import is_among, to_record
from farm.database.tables import matrices, name_trigrams
from farm.database.transaction import Tx
from farm.store.matrices.matrices import Matrix
from farm.store.newest_first import newest_first

#: Of a name that is stored with its trigrams, however short it is.
_INDEXED = ""
#: Matrices that are looked up at once by their numbers.
_AT_ONCE = 500
#: A text is searched by the trigram that the fewest names have: of so many, counted up to this number.
_COUNTED_TRIGRAMS, _COUNTED_NAMES = 20, 1000
#: Matrices that are few enough to be named by their numbers.
FEW = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFilter:
    """A filter of matrices; None does not restrict."""

    #: Submitted at this time or later.
    since: datetime | None = None
    #: This text is in the name, in any case.
    name: str | None = None
    #: The actor that submitted it.
    submitted_by: str | None = None
    #: The matrices of that name and person, where they are few: `with_few_matches`.
    matrix_ids: tuple[MatrixId, ...] | None = None


def matrices_of(*, name: str | None, person: str | None) -> MatrixFilter | None:
    """Return the filter of a text in names and the actor that submitted them; None: all matrices."""
    return MatrixFilter(name=name or None, submitted_by=person) if name or person else None


def trigrams(text: str) -> set[str]:
    """Return all parts of three characters of a text, in one case."""
    folded = text.casefold()
    return {folded[start : start + 3] for start in range(len(folded) - 2)}


def index_names(tx: Tx, *, limit: int) -> None:
    """Store the trigrams of the names of the next matrices that have none."""
    query = (
        sa.select(matrices.c.matrix_id, matrices.c.name)
        .where(matrices.c.matrix_id > _last_indexed(tx.connection))
        .order_by(matrices.c.matrix_id)
        .limit(limit)
    )
    rows = [
        {"trigram": part, "matrix_id": matrix_id}
        for matrix_id, name in tx.connection.execute(query).all()
        for part in (_INDEXED, *sorted(trigrams(name)))
    ]
    if rows:
        tx.connection.execute(name_trigrams.insert(), rows)


def _last_indexed(connection: Connection) -> MatrixId:
    last = sa.select(sa.func.max(name_trigrams.c.matrix_id)).where(name_trigrams.c.trigram == _INDEXED)
    return MatrixId(connection.execute(last).scalar() or 0)


def list_matrices(
    connection: Connection,
    *,
    before: MatrixId | None = None,
    limit: int | None = None,
    which: MatrixFilter | None = None,
) -> list[Matrix]:
    """Return the matrices, newest first: up to `limit` of those before one, where they are given."""
    which = which or MatrixFilter()
    rarest = None if which.name is None else _rarest_trigram(connection, which.name)
    if rarest is None:
        query = matrices_query(which, before=before, limit=limit)
        return [to_record(Matrix, row) for row in connection.execute(query)]
    named = _named_ids(connection, which, rarest, before=before)
    query = sa.select(matrices).where(is_among(connection, matrices.c.matrix_id, [*islice(named, limit)]))
    rows = connection.execute(query.order_by(matrices.c.matrix_id.desc()))
    return [to_record(Matrix, row) for row in rows]


def matrices_query(
    which: MatrixFilter, *, before: MatrixId | None, limit: int | None
) -> sa.Select[tuple[object, ...]]:
    """Return the query of matrices, which reads an index range with a time or a person."""
    return _newest_first(sa.select(matrices), which, before=before).limit(limit)


def _newest_first(query: sa.Select[Any], which: MatrixFilter, *, before: MatrixId | None) -> sa.Select[Any]:
    query = newest_first(query, matrices.c.matrix_id, matrices.c.created_at, before=before, since=which.since)
    return query.where(*_named(which))


def _named(which: MatrixFilter) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]] = []
    if which.submitted_by is not None:
        conditions.append(matrices.c.submitted_by == which.submitted_by)
    if which.name is not None:
        conditions.append(matrices.c.name.icontains(which.name, autoescape=True))
    return conditions


def _rarest_trigram(connection: Connection, text: str) -> str | None:
    """Return the trigram of a text that the fewest names have, as far as they are counted, or None."""
    counts: dict[str, int] = {}
    for trigram in sorted(trigrams(text))[:_COUNTED_TRIGRAMS]:
        some = sa.select(sa.null()).where(name_trigrams.c.trigram == trigram).limit(_COUNTED_NAMES)
        count = sa.select(sa.func.count()).select_from(some.subquery())
        counts[trigram] = connection.execute(count).scalar_one()
    return min(counts, key=lambda trigram: counts[trigram], default=None)


def _named_ids(
    connection: Connection, which: MatrixFilter, trigram: str, *, before: MatrixId | None
) -> Iterator[MatrixId]:
    """Yield the matrices of a filter by a trigram of its name, the newest first."""
    last_indexed = _last_indexed(connection)
    own: sa.Select[Any] = sa.select(matrices.c.matrix_id)
    recent = _newest_first(own, which, before=before).where(matrices.c.matrix_id > last_indexed)
    yield from connection.execute(recent).scalars()
    lowest: int | None = 0
    if which.since is not None:
        own = own.where(matrices.c.created_at >= which.since)
        first = sa.select(sa.func.min(matrices.c.matrix_id)).where(matrices.c.created_at >= which.since)
        lowest = connection.execute(first).scalar()
    end = last_indexed + 1 if before is None else min(before, last_indexed + 1)
    while lowest is not None and (some := _page_of_trigram(connection, trigram, lowest=lowest, before=end)):
        matching = own.where(is_among(connection, matrices.c.matrix_id, some), *_named(which))
        yield from connection.execute(matching.order_by(matrices.c.matrix_id.desc())).scalars()
        end = some[-1]


def _page_of_trigram(connection: Connection, trigram: str, *, lowest: int, before: int) -> list[MatrixId]:
    own = name_trigrams.c.matrix_id
    query = sa.select(own).where(name_trigrams.c.trigram == trigram, own >= lowest, own < before)
    return [*connection.execute(query.order_by(own.desc()).limit(_AT_ONCE)).scalars()]


def with_few_matches(connection: Connection, which: MatrixFilter | None) -> MatrixFilter | None:
    """Return a filter of points with the matrices of its name and person, if they are `FEW`.

    Where they are more, rows that are read newest first are soon of one of them.
    """
    if which is None:
        return None
    rarest = None if which.name is None else _rarest_trigram(connection, which.name)
    if rarest is not None:
        found = _named_ids(connection, which, rarest, before=None)
    elif which.submitted_by is not None:
        query = _newest_first(sa.select(matrices.c.matrix_id), which, before=None)
        found = iter(connection.execute(query.limit(FEW + 1)).scalars())
    else:
        return which
    some = tuple(islice(found, FEW + 1))
    return which if len(some) > FEW else replace(which, matrix_ids=some)


def is_of_matching(column: sa.ColumnElement[int], which: MatrixFilter) -> sa.ColumnElement[bool]:
    """Return the condition that the matrix in a column is of a name or a person.

    Without the numbers of the few that match, it looks up each matrix: rows that are read newest first are
    soon enough.
    """
    if which.matrix_ids is not None:
        return column.in_(which.matrix_ids)
    matching = sa.exists().where(matrices.c.matrix_id == column, *_named(which))
    # A query that joins matrices has a row of them of its own.
    return matching.correlate_except(matrices)


def matching_among(
    connection: Connection, which: MatrixFilter | None, matrix_ids: Collection[MatrixId]
) -> set[MatrixId]:
    """Return those of some matrices that are of a name or a person; all without a filter."""
    if which is None or not matrix_ids:
        return set(matrix_ids)
    query = sa.select(matrices.c.matrix_id).where(
        is_among(connection, matrices.c.matrix_id, matrix_ids), *_named(which)
    )
    return {MatrixId(row.matrix_id) for row in connection.execute(query)}
