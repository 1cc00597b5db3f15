"""Reference runs of device checks, from which the reference range of a device model is learned."""

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, Digest, JobId
from farm.core.checks.reference_range import ReferenceSample
from farm.core.checks.reference_run import ReferenceRun, ReferenceVerdict
from farm.database.tables import reference_runs

#: Limits of the runs from which reference ranges and drift are learned: number and age.
_RUNS_OF_KIND = 512
_MAX_AGE = timedelta(days=60)


def add_reference_run(connection: Connection, run: ReferenceRun) -> None:
    """Store a check's reference run."""
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
    """Return the last fit runs of a reference key before a time, newest first."""
    query = _of_kind(reference_key, program_digest, before).where(
        reference_runs.c.verdict != ReferenceVerdict.UNFIT
    )
    return [_run(row).past for row in connection.execute(query.limit(_RUNS_OF_KIND))]


def own_runs(connection: Connection, device_id: DeviceId, *, limit: int) -> list[ReferenceRun]:
    """Return the last runs of a device, newest first; other reference keys belong to its older systems."""
    query = sa.select(reference_runs).where(reference_runs.c.device_id == device_id)
    query = query.order_by(reference_runs.c.measured_at.desc(), reference_runs.c.reference_run_id.desc())
    return [_run(row) for row in connection.execute(query.limit(limit))]


def own_fit_runs(connection: Connection, run: ReferenceRun) -> list[ReferenceSample]:
    """Return earlier fit runs of the same device and reference key, within the age limit for drift."""
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
    """Return the reference run of a check, or None."""
    row = connection.execute(sa.select(reference_runs).where(reference_runs.c.job_id == job_id)).one_or_none()
    return None if row is None else _run(row)


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
