"""Recent events: counts by time, and which things changed since an event."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.microseconds import to_microseconds
from farm.core.operations.event import EventKind, EventSubject
from farm.database.rows import is_among, rows_query, rows_text
from farm.database.tables import attempts, events, jobs

#: After a pause with more events, everything may have changed.
MOST_EVENTS = 2000
#: Behind all events.
_NO_EVENT = 2**62
_RANGE = [sa.column(name, sa.BigInteger) for name in ("place", "first", "end")]
_TIME = [sa.column(name, sa.BigInteger) for name in ("place", "at")]


def count_between(connection: Connection, kind: EventKind, times: Sequence[datetime]) -> list[int]:
    """Return the number of events of a kind between each time and the next one, and since the last.

    Events have numbers in about the order of their times: each time is found once, as the number of the
    first event since then, and numbers are counted. Events of concurrent transactions may be counted in the
    neighbouring range.
    """
    first_ids = _first_events_since(connection, times)
    ranges = [
        (place, _NO_EVENT if first is None else first, _NO_EVENT if end is None else end)
        for place, (first, end) in enumerate(pairwise([*first_ids, None]))
    ]
    asked = rows_query(connection.dialect.name, _RANGE, rows_text(ranges)).subquery()
    count = (
        sa.select(sa.func.count())
        .where(
            events.c.kind == kind.value, events.c.event_id >= asked.c.first, events.c.event_id < asked.c.end
        )
        .correlate(asked)
        .scalar_subquery()
    )
    return list(connection.execute(sa.select(count).select_from(asked).order_by(asked.c.place)).scalars())


def _first_events_since(connection: Connection, times: Sequence[datetime]) -> list[int | None]:
    places = [(place, to_microseconds(time)) for place, time in enumerate(times)]
    asked = rows_query(connection.dialect.name, _TIME, rows_text(places)).subquery()
    first = (
        sa.select(events.c.event_id)
        .where(sa.type_coerce(events.c.at, sa.BigInteger) >= asked.c.at)
        .order_by(events.c.at)
        .limit(1)
        .correlate(asked)
        .scalar_subquery()
    )
    return list(connection.execute(sa.select(first).select_from(asked).order_by(asked.c.place)).scalars())


def changed_subjects(
    connection: Connection, *, after: int, until: int
) -> Sequence[tuple[EventSubject, str]] | None:
    """Return the subjects of the events behind one id and up to another, and what they belong to.

    A job stands for its matrix and its device, too, and so does an attempt. None: there are too many.
    """
    query = (
        sa.select(events.c.subject, events.c.subject_id)
        .where(events.c.event_id > after, events.c.event_id <= until)
        .distinct()
        .limit(MOST_EVENTS + 1)
    )
    found = [(EventSubject(row.subject), row.subject_id) for row in connection.execute(query)]
    if len(found) > MOST_EVENTS:
        return None
    job_ids = [int(subject_id) for subject, subject_id in found if subject is EventSubject.JOB]
    attempt_ids = [int(subject_id) for subject, subject_id in found if subject is EventSubject.ATTEMPT]
    owners: set[tuple[EventSubject, str]] = set()
    work = sa.select(jobs.c.matrix_id, jobs.c.device_id).distinct()
    queries = []
    if job_ids:
        queries.append(work.where(is_among(connection, jobs.c.job_id, job_ids)))
    if attempt_ids:
        of_attempts = work.join(attempts, attempts.c.job_id == jobs.c.job_id)
        queries.append(of_attempts.where(is_among(connection, attempts.c.attempt_id, attempt_ids)))
    for of_jobs in queries:
        for matrix_id, device_id in connection.execute(of_jobs):
            owners.add((EventSubject.DEVICE, device_id))
            if matrix_id is not None:
                owners.add((EventSubject.MATRIX, str(matrix_id)))
    return [*found, *sorted(owners - {*found})]
