"""Cancellations of large matrices under way: where each of them has got to."""

from dataclasses import asdict, dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, JobId, MatrixId
from farm.database.rows import find_record
from farm.database.tables import cancellations
from farm.database.transaction import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """A cancellation, before its first transaction or between two of them."""

    matrix_id: MatrixId
    #: None: on all devices.
    device_id: DeviceId | None
    #: The actor of its events.
    requested_by: str
    #: The last transaction of the request; one that is long ago was interrupted.
    continued_at: datetime
    #: Its queued jobs up to this one are cancelled, but for those that returned to the queue since.
    after_job_id: JobId
    #: The jobs cancelled so far, and those that were finished before.
    cancelled_jobs: int
    finished_jobs: int


def find_cancellation(
    connection: Connection, matrix_id: MatrixId, device_id: DeviceId | None
) -> Cancellation | None:
    """Return a cancellation under way, or None."""
    query = _query().where(_is(matrix_id, device_id))
    return find_record(connection, Cancellation, query)


def next_interrupted(tx: Tx, *, before: datetime) -> Cancellation | None:
    """Return a cancellation that no request has continued since a time; after now counts as before it."""
    is_continued = cancellations.c.continued_at.between(before, tx.now)
    return find_record(tx.connection, Cancellation, _query().where(~is_continued).limit(1))


def put_cancellation(connection: Connection, cancellation: Cancellation) -> None:
    """Record where a cancellation has got to."""
    drop_cancellation(connection, cancellation)
    values = asdict(cancellation) | {"device_id": cancellation.device_id or ""}
    connection.execute(cancellations.insert().values(values))


def drop_cancellation(connection: Connection, cancellation: Cancellation) -> None:
    """Delete the record of a cancellation."""
    connection.execute(cancellations.delete().where(_is(cancellation.matrix_id, cancellation.device_id)))


def _query() -> sa.Select[tuple[object, ...]]:
    device_id = sa.func.nullif(cancellations.c.device_id, "").label("device_id")
    return sa.select(*(column for column in cancellations.c if column.name != "device_id"), device_id)


def _is(matrix_id: MatrixId, device_id: DeviceId | None) -> sa.ColumnElement[bool]:
    return sa.and_(cancellations.c.matrix_id == matrix_id, cancellations.c.device_id == (device_id or ""))
