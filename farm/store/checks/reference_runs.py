"""Golden runs: what a phone's check took, as it is judged; learned from by the kind of phone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, Digest, FactsId, JobId
from farm.core.checks.reference_range import ReferenceSample
from farm.core.checks.reference_run import OUT_OF_RANGE, ReferenceVerdict
from farm.database.tables import reference_runs

#: What bands are learned from, and drifts: so many runs of a kind at most, and of so long.
_RUNS_OF_KIND = 512
_MAX_AGE = timedelta(days=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRun:
    """A golden run's row."""

    job_id: JobId
    device_id: DeviceId
    reference_key: str
    facts_id: FactsId | None
    program_digest: Digest
    value_ns: float
    verdict: ReferenceVerdict
    #: Why it cannot be judged, in words; exactly where its verdict is `unfit`.
    unfit_reasons: str | None = None
    measured_at: datetime

    @property
    def past(self) -> ReferenceSample:
        """As bands are learned from it."""
        was_out_of_range = self.verdict in OUT_OF_RANGE
        return ReferenceSample(
            phone=self.device_id,
            value_ns=self.value_ns,
            at=self.measured_at,
            was_out_of_range=was_out_of_range,
        )


def add_reference_run(connection: Connection, run: ReferenceRun) -> None:
    """Keep a check's golden run."""
    connection.execute(
        reference_runs.insert().values(
            job_id=run.job_id,
            device_id=run.device_id,
            reference_key=run.reference_key,
            facts_id=run.facts_id,
            program_digest=run.program_digest,
            value_ns=run.value_ns,
            verdict=run.verdict,
            unfit_reasons=run.unfit_reasons,
            measured_at=run.measured_at,
        )
    )


def runs_of_kind(
    connection: Connection, reference_key: str, program_digest: Digest, *, before: datetime
) -> list[ReferenceSample]:
    """The last fit runs of a kind of phone before a moment, newest first."""
    query = _of_kind(reference_key, program_digest, before).where(
        reference_runs.c.verdict != ReferenceVerdict.UNFIT
    )
    return [_run(row).past for row in connection.execute(query.limit(_RUNS_OF_KIND))]


def own_runs(connection: Connection, device_id: DeviceId, *, limit: int) -> list[ReferenceRun]:
    """The newest runs of a device, newest first; those of other bands are older systems of it."""
    query = sa.select(reference_runs).where(reference_runs.c.device_id == device_id)
    query = query.order_by(reference_runs.c.measured_at.desc(), reference_runs.c.reference_run_id.desc())
    return [_run(row) for row in connection.execute(query.limit(limit))]


def own_fit_runs(connection: Connection, run: ReferenceRun) -> list[ReferenceSample]:
    """Fit runs of the same device and band before a run, of as long as drifts are looked for."""
    query = sa.select(reference_runs).where(
        reference_runs.c.device_id == run.device_id,
        reference_runs.c.measured_at < run.measured_at,
        reference_runs.c.measured_at >= run.measured_at - _MAX_AGE,
        reference_runs.c.reference_key == run.reference_key,
        reference_runs.c.program_digest == run.program_digest,
        reference_runs.c.verdict != ReferenceVerdict.UNFIT,
    )
    return [_run(row).past for row in connection.execute(query)]


def find_reference_run(connection: Connection, job_id: JobId) -> ReferenceRun | None:
    """The golden run of a check."""
    row = connection.execute(sa.select(reference_runs).where(reference_runs.c.job_id == job_id)).one_or_none()
    return None if row is None else _run(row)


def verdicts_in_same_range(runs: Sequence[ReferenceRun]) -> list[ReferenceVerdict]:
    """The verdicts of the newest run and those before it that were judged by the same band."""
    if not runs:
        return []
    newest = runs[0]
    same = (newest.reference_key, newest.program_digest)
    return [run.verdict for run in runs if (run.reference_key, run.program_digest) == same]


def _of_kind(reference_key: str, program_digest: Digest, before: datetime) -> sa.Select[Any]:
    return (
        sa.select(reference_runs)
        .where(
            reference_runs.c.reference_key == reference_key,
            reference_runs.c.program_digest == program_digest,
            reference_runs.c.measured_at < before,
            reference_runs.c.measured_at >= before - _MAX_AGE,
        )
        .order_by(reference_runs.c.measured_at.desc())
    )


def _run(row: sa.Row[Any]) -> ReferenceRun:
    return ReferenceRun(
        job_id=row.job_id,
        device_id=row.device_id,
        reference_key=row.reference_key,
        facts_id=row.facts_id,
        program_digest=row.program_digest,
        value_ns=row.value_ns,
        verdict=ReferenceVerdict(row.verdict),
        unfit_reasons=row.unfit_reasons,
        measured_at=row.measured_at,
    )
