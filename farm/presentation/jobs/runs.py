"""The runs of a cell as rows: each attempt of each of its jobs, with its number or the reason for none."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from farm.core.base.ids import AttemptId, JobId
from farm.core.jobs.job import JobState
from farm.core.runs.measurement import CellState, Quality
from farm.presentation.cell_state import state_of_counts
from farm.presentation.jobs.measurement import value_text
from farm.presentation.text import failure_text, round_text, with_attempt
from farm.wire.documents.results.explain import AttemptSummary, JobDetail


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One attempt of a job, or a job without any."""

    where: str
    job_id: JobId
    attempt_id: AttemptId | None
    #: The outcome, or the state of what has none yet.
    state: str
    quality: Quality | None = None
    value_ns: float | None = None
    #: What the value is: `median of 30 samples`.
    value_of: str = ""
    #: Why it failed, does not count, or was not run.
    why: str = ""
    began_at: datetime | None = None

    @property
    def mark(self) -> CellState:
        """Return the state that a cell with this run alone has."""
        return state_of_counts({} if self.quality is None else {self.quality: 1}, {self.state: 1})


def run_rows(jobs: Iterable[JobDetail]) -> Iterator[RunRow]:
    """Yield the runs of jobs in their order; a job that was not tried is one row without an attempt."""
    last: AttemptId | None = None
    for job in jobs:
        last = job.attempts[-1] if job.attempts else last
        where = round_text(job.round, job.block, job.repeat)
        yield from (_attempt_row(job, attempt, where) for attempt in job.attempt_list)
        if not job.attempt_list or job.state is JobState.QUEUED:
            state = job.outcome or job.state
            again = "waits for another attempt" if job.attempt_list else ""
            why = with_attempt(failure_text(job.message, job.code), last) or again
            yield RunRow(where=where, job_id=job.job_id, attempt_id=None, state=state, why=why)


def _attempt_row(job: JobDetail, attempt: AttemptSummary, where: str) -> RunRow:
    run = job.run if job.run is not None and job.run.attempt_id == attempt.attempt_id else None
    failure = with_attempt(failure_text(attempt.message, attempt.code), attempt.attempt_id)
    return RunRow(
        where=where,
        job_id=job.job_id,
        attempt_id=attempt.attempt_id,
        state=attempt.outcome or attempt.state,
        quality=None if run is None else run.quality,
        value_ns=None if run is None else run.value_ns,
        value_of="" if run is None else value_text(run),
        why="; ".join(run.quality_reasons) if run else failure,
        began_at=attempt.claimed_at,
    )
