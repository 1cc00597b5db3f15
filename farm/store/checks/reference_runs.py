"""Reference runs of device checks, from which the reference range of a device model is learned."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, Digest, JobId
from farm.core.checks.reference_range import ReferenceSample
from farm.core.checks.reference_run import ReferenceRun, ReferenceVerdict
from farm.database.rows import find_record, to_record
from farm.database.tables import reference_runs

#: Limits of the runs from which reference ranges and drift are learned: number and age.
_RUNS_OF_KIND = 512
_MAX_AGE = timedelta(days=60)


def add_reference_run(connection: Connection, run: ReferenceRun) -> None:
    """Store a check's reference run."""
    connection.execute(reference_runs.insert().values(asdict(run)))


def runs_of_kind(
    connection: Connection, reference_key: str, program_digest: Digest, *, before: datetime
) -> list[ReferenceSample]:
    """Return the last fit runs of a reference key before a time, newest first."""
    query = _fit_query(reference_key, program_digest, before).order_by(reference_runs.c.measured_at.desc())
    rows = connection.execute(query.limit(_RUNS_OF_KIND))
    return [to_record(ReferenceRun, row).past for row in rows]


def own_runs(connection: Connection, device_id: DeviceId, *, limit: int) -> list[ReferenceRun]:
    """Return the last runs of a device, newest first; other reference keys belong to its older systems."""
    query = sa.select(reference_runs).where(reference_runs.c.device_id == device_id)
    query = query.order_by(reference_runs.c.measured_at.desc(), reference_runs.c.reference_run_id.desc())
    return [to_record(ReferenceRun, row) for row in connection.execute(query.limit(limit))]


def own_fit_runs(connection: Connection, run: ReferenceRun) -> list[ReferenceSample]:
    """Return earlier fit runs of the same device and reference key, within the age limit for drift."""
    query = _fit_query(run.reference_key, run.program_digest, run.measured_at)
    rows = connection.execute(query.where(reference_runs.c.device_id == run.device_id))
    return [to_record(ReferenceRun, row).past for row in rows]


def _fit_query(reference_key: str, program_digest: Digest, before: datetime) -> sa.Select[Any]:
    return sa.select(reference_runs).where(
        reference_runs.c.reference_key == reference_key,
        reference_runs.c.program_digest == program_digest,
        reference_runs.c.measured_at < before,
        reference_runs.c.measured_at >= before - _MAX_AGE,
        reference_runs.c.verdict != ReferenceVerdict.UNFIT,
    )


def find_reference_run(connection: Connection, job_id: JobId) -> ReferenceRun | None:
    """Return the reference run of a check, or None."""
    query = sa.select(reference_runs).where(reference_runs.c.job_id == job_id)
    return find_record(connection, ReferenceRun, query)
