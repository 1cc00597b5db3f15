"""Reports: the raw text behind measurements, stored until a retention rule expires it; missing reports."""

import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, Digest, HostId
from farm.core.jobs.attempt import AttemptState
from farm.core.jobs.job import JobState
from farm.core.results.settle.effects import KeepReport
from farm.database.rows import to_record
from farm.database.tables import attempts, devices, evidence, is_one_of, jobs, lazy_expansions
from farm.database.transaction import Tx

_INSERT = evidence.insert()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReport:
    """A stored report."""

    report_digest: Digest
    counted: bool
    #: None if it expired.
    body: bytes | None
    expired_at: datetime | None
    #: The retention rule that applied.
    expired_by: str | None


def add_reports(connection: Connection, reports: Sequence[KeepReport]) -> None:
    """Store reports in their order."""
    connection.execute(_INSERT, [_row(report) for report in reports])


def _row(report: KeepReport) -> dict[str, object]:
    compressed = zlib.compress(report.body)
    return {
        "attempt_id": report.attempt_id,
        "report_digest": report.digest,
        "counted": report.counted,
        "body": compressed,
        "body_bytes": len(compressed),
        "received_at": report.at,
    }


_DIGESTS_QUERY = sa.select(evidence.c.attempt_id, evidence.c.report_digest).where(
    evidence.c.attempt_id.in_(sa.bindparam("attempt_ids", expanding=True))
)


def digests_by_attempt(
    connection: Connection, attempt_ids: Collection[AttemptId]
) -> dict[AttemptId, set[Digest]]:
    """Return the digests of all reports of attempts, counted or not, expired or not."""
    digests: dict[AttemptId, set[Digest]] = {}
    for row in connection.execute(_DIGESTS_QUERY, {"attempt_ids": list(attempt_ids)}):
        digests.setdefault(row.attempt_id, set()).add(row.report_digest)
    return digests


def reports_of(connection: Connection, attempt_id: AttemptId) -> list[StoredReport]:
    """Return all reports of an attempt, oldest first; at most one of them counted."""
    query = sa.select(evidence).where(evidence.c.attempt_id == attempt_id).order_by(evidence.c.evidence_id)
    return [
        to_record(StoredReport, row, body=None if row.body is None else zlib.decompress(row.body))
        for row in connection.execute(query)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainedReport:
    """A report with a stored body, without the body."""

    evidence_id: int
    size_bytes: int
    received_at: datetime


def retained_bytes(connection: Connection) -> int:
    """Return the total size of all stored bodies."""
    query = sa.select(sa.func.coalesce(sa.func.sum(evidence.c.body_bytes), 0))
    total: int = connection.execute(query.where(evidence.c.expired_at.is_(None))).scalar_one()
    return total


def expirable_reports(
    connection: Connection,
    *,
    since: datetime | None = None,
    before: datetime | None = None,
    limit: int | None = None,
) -> Iterator[RetainedReport]:
    """Return the reports of finished matrices: first those that did not count, then the others, oldest first.

    They were received from `since` on and before `before`; `limit` is the most of each kind.
    """
    for counted in (False, True):
        query = _retained_of_finished(counted=counted).limit(limit)
        if since is not None:
            query = query.where(evidence.c.received_at >= since)
        if before is not None:
            query = query.where(evidence.c.received_at < before)
        for row in connection.execute(query):
            yield to_record(RetainedReport, row)


def _retained_of_finished(*, counted: bool) -> sa.Select[tuple[int, int, datetime]]:
    """Return the query of stored reports whose matrix is finished; a check counts as a matrix of its own."""
    of_matrix = jobs.alias("of_matrix")
    unfinished = sa.exists().where(
        of_matrix.c.matrix_id == jobs.c.matrix_id,
        is_one_of(of_matrix.c.state, (JobState.QUEUED, JobState.ACTIVE)),
    )
    to_come = sa.exists().where(
        lazy_expansions.c.matrix_id == jobs.c.matrix_id, lazy_expansions.c.cancelled_at.is_(None)
    )
    return (
        sa.select(evidence.c.evidence_id, evidence.c.body_bytes.label("size_bytes"), evidence.c.received_at)
        .join(attempts, attempts.c.attempt_id == evidence.c.attempt_id)
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .where(
            evidence.c.expired_at.is_(None),
            evidence.c.counted.is_(counted),
            jobs.c.state == JobState.FINISHED,
            ~unfinished,
            ~to_come,
        )
        .order_by(evidence.c.received_at)
    )


def expire_reports(tx: Tx, evidence_ids: Sequence[int], *, rule: str) -> None:
    """Delete bodies of reports; their measurements stay."""
    which = evidence.c.evidence_id.in_(evidence_ids)
    others = [column for column in evidence.c if column.name != "body"]
    rows = [dict(row) for row in tx.connection.execute(sa.select(*others).where(which)).mappings()]
    # Not by UPDATE: SQLite frees pages when rows are deleted, but not when they shrink.
    tx.connection.execute(evidence.delete().where(which))
    expired = {"body": None, "expired_at": tx.now, "expired_by": rule}
    tx.connection.execute(evidence.insert(), [{**row, **expired} for row in rows])


def count_expired(connection: Connection) -> int:
    """Count the reports without a body."""
    query = sa.select(sa.func.count()).where(evidence.c.expired_at.is_not(None))
    return connection.execute(query).scalar_one()


def retained_between(connection: Connection, since: datetime | None, until: datetime) -> tuple[int, int]:
    """Return the number and total size of stored reports received in a span of time."""
    query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(evidence.c.body_bytes), 0)).where(
        evidence.c.expired_at.is_(None), evidence.c.received_at < until
    )
    if since is not None:
        query = query.where(evidence.c.received_at >= since)
    count, size_bytes = connection.execute(query).one()
    return count, size_bytes


#: The number of latest attempts of each device that are examined: older ones were followed by others.
_LATEST = 20


def missing_reports(connection: Connection, host_id: HostId) -> list[AttemptId]:
    """Return the lost attempts on a host's devices that are still the current ones of their jobs."""
    query = sa.select(devices.c.device_id).where(devices.c.host_id == host_id).order_by(devices.c.device_id)
    attempt_ids: list[AttemptId] = []
    for device_id in connection.execute(query).scalars().all():
        attempt_ids += [
            AttemptId(row.attempt_id) for row in connection.execute(_missing_on_device(device_id, host_id))
        ]
    return attempt_ids


def _missing_on_device(device_id: str, host_id: HostId) -> sa.Select[Any]:
    latest = (
        sa.select(attempts)
        .where(attempts.c.device_id == device_id)
        .order_by(attempts.c.fence.desc())
        .limit(_LATEST)
        .subquery()
    )
    return (
        sa.select(latest.c.attempt_id)
        .join(jobs, jobs.c.job_id == latest.c.job_id)
        .where(
            latest.c.host_id == host_id,
            latest.c.state == AttemptState.LOST,
            jobs.c.attempt_id == latest.c.attempt_id,
            jobs.c.state == JobState.QUEUED,
        )
        .order_by(latest.c.attempt_id)
    )
