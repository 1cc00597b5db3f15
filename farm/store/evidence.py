"""Reports as they came: the raw text behind measurements, kept until the rules of retention let it go."""

import zlib
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.ids import AttemptId, Digest
from farm.store.tables import evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReport:
    """A report as it came."""

    report_digest: Digest
    counted: bool
    #: None once it expired.
    body: bytes | None
    expired_at: datetime | None
    #: The rule that let it go.
    expired_by: str | None


def add_report(
    connection: Connection,
    attempt_id: AttemptId,
    *,
    digest: Digest,
    body: bytes,
    counted: bool,
    now: datetime,
) -> None:
    """Keep a report's bytes."""
    compressed = zlib.compress(body)
    connection.execute(
        evidence.insert().values(
            attempt_id=attempt_id,
            report_digest=digest,
            counted=counted,
            body=compressed,
            body_bytes=len(compressed),
            received_at=now,
        )
    )


def report_digests(connection: Connection, attempt_id: AttemptId) -> set[Digest]:
    """The reports of an attempt that came, counted or not, expired or not."""
    query = sa.select(evidence.c.report_digest).where(evidence.c.attempt_id == attempt_id)
    return set(connection.execute(query).scalars())


def reports_of(connection: Connection, attempt_id: AttemptId) -> list[StoredReport]:
    """Every report of an attempt, oldest first; one at most counted."""
    query = sa.select(evidence).where(evidence.c.attempt_id == attempt_id).order_by(evidence.c.evidence_id)
    return [
        StoredReport(
            report_digest=row.report_digest,
            counted=row.counted,
            body=None if row.body is None else zlib.decompress(row.body),
            expired_at=row.expired_at,
            expired_by=row.expired_by,
        )
        for row in connection.execute(query)
    ]
