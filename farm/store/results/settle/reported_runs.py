"""Attempts with their jobs, read together: what every report asks for first."""

from collections.abc import Collection, Iterable
from functools import cache
from types import SimpleNamespace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId
from farm.core.jobs.attempt import Attempt, AttemptRecord
from farm.core.jobs.job import Job
from farm.database.tables import attempts, jobs
from farm.store.jobs.attempts import attempt_of, record_of
from farm.store.jobs.jobs import job_of

_RECORD = tuple(column for column in attempts.c if column.name != "plan")


def find_records(
    connection: Connection, attempt_ids: Collection[AttemptId]
) -> list[tuple[AttemptRecord, Job]]:
    """Return attempts without their plans, each with its job; ids that nothing has are missing."""
    rows = connection.execute(_records(), {"attempt_ids": list(attempt_ids)})
    return [(record_of(_part(row, _RECORD)), job_of(_part(row, jobs.c))) for row in rows]


def find_planned(connection: Connection, attempt_ids: Collection[AttemptId]) -> list[tuple[Attempt, Job]]:
    """Return attempts, each with its job; ids that nothing has are missing."""
    rows = connection.execute(_planned(), {"attempt_ids": list(attempt_ids)})
    return [(attempt_of(_part(row, attempts.c)), job_of(_part(row, jobs.c))) for row in rows]


def _part(row: sa.Row[Any], columns: Iterable[sa.Column[Any]]) -> Any:
    """Return the columns of one table as a row of their own: both tables have some of one name."""
    values = row._mapping
    return SimpleNamespace(**{column.name: values[column] for column in columns})


@cache
def _records() -> sa.Select[Any]:
    return _with_jobs(sa.select(*_RECORD, jobs))


@cache
def _planned() -> sa.Select[Any]:
    return _with_jobs(sa.select(attempts, jobs))


def _with_jobs(query: sa.Select[Any]) -> sa.Select[Any]:
    asked = attempts.c.attempt_id.in_(sa.bindparam("attempt_ids", expanding=True))
    return query.select_from(attempts).join(jobs, jobs.c.job_id == attempts.c.job_id).where(asked)
