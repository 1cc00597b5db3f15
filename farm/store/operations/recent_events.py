"""Recent events: counts by time, and which things changed since an event."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.operations.event import EventKind, EventSubject
from farm.database.rows import is_among
from farm.database.tables import attempts, events, jobs

#: After a pause with more events, everything may have changed.
MOST_EVENTS = 2000


def count_between(connection: Connection, kind: EventKind, times: Sequence[datetime]) -> list[int]:
    """Return the number of events of a kind between each time and the next one, and since the last.

    Events have numbers in about the order of their times: each time is found once, as the number of the
    first event since then, and numbers are counted. Events of concurrent transactions may be counted in the
    neighbouring range.
    """
    first_ids = [_first_event_since(connection, time) for time in times]
    counts = []
    for first, end in pairwise([*first_ids, None]):
        if first is None:
            counts.append(0)
            continue
        query = (
            sa.select(sa.func.count())
            .select_from(events)
            .where(events.c.kind == kind.value, events.c.event_id >= first)
        )
        if end is not None:
            query = query.where(events.c.event_id < end)
        counts.append(connection.execute(query).scalar_one())
    return counts


def _first_event_since(connection: Connection, time: datetime) -> int | None:
    query = sa.select(events.c.event_id).where(events.c.at >= time).order_by(events.c.at).limit(1)
    return connection.execute(query).scalar_one_or_none()


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
