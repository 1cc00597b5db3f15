"""What the farm knows of attempts whose reports came; read for many at once."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, Digest
from farm.store.jobs.attempts import Attempt, find_attempts
from farm.store.jobs.jobs import Job, find_jobs
from farm.store.results.evidence import digests_by_attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContext:
    """An attempt, its job, and the reports of it that came already, counted or not, expired or not."""

    attempt: Attempt
    job: Job
    report_digests: frozenset[Digest]


def report_contexts(
    connection: Connection, attempt_ids: Collection[AttemptId]
) -> dict[AttemptId, ReportContext]:
    """The standings of attempts; of those that nobody made there is none. Three statements."""
    attempts = find_attempts(connection, attempt_ids)
    if not attempts:
        return {}
    jobs = find_jobs(connection, {attempt.job_id for attempt in attempts.values()})
    digests = digests_by_attempt(connection, attempts)
    return {
        attempt_id: ReportContext(
            attempt=attempt,
            job=jobs[attempt.job_id],
            report_digests=frozenset(digests.get(attempt_id, ())),
        )
        for attempt_id, attempt in attempts.items()
    }
