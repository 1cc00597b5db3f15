"""Everything that a measurement rests on, as rows: the run, its evidence, the phone as it was."""

import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, DeviceId, Digest, FactsId, JobId, MatrixId
from farm.core.devices.controls import ControlLevel
from farm.core.devices.device import DeviceFacts
from farm.core.runs.measurement import Quality, SampleKind
from farm.database.tables import attempts, device_facts, evidence, jobs, measurements
from farm.store.devices.facts import stored_facts


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A measurement with the attempt that it came of; samples are left where they are."""

    job_id: JobId
    attempt_id: AttemptId
    cell_id: CellId
    round: int
    repeat: int
    accepted: bool
    quality: Quality
    quality_reasons: Sequence[str]
    #: What is to be known of it without being held against it.
    notices: Sequence[str] | None
    control_level: ControlLevel
    cpu_s: float | None
    kind: SampleKind
    sample_count: int
    value_ns: float
    mean_ns: float
    min_ns: int | None
    max_ns: int | None
    p90_ns: float | None
    scatter: float | None
    metrics: Sequence[Mapping[str, Any]]
    actual_backend: str
    accelerator: str
    proof: str
    parser_version: int
    variant_digest: Digest | None
    program_digest: Digest
    facts_id: FactsId | None
    measured_at: datetime
    #: Rises with every attempt of the device: the order in which things ran.
    fence: int


_ATTEMPT_COLUMNS = ("fence",)
_COLUMNS = [
    (attempts if name in _ATTEMPT_COLUMNS else measurements).c[name]
    for name in MeasuredRun.__dataclass_fields__
]


def runs_of_cells(connection: Connection, cell_ids: Sequence[CellId]) -> list[MeasuredRun]:
    """The accepted measurements of some cells, in the order they ran."""
    return _runs(connection, measurements.c.cell_id.in_(cell_ids))


def run_of_job(connection: Connection, job_id: JobId) -> MeasuredRun | None:
    """The accepted measurement of a job."""
    return next(iter(_runs(connection, measurements.c.job_id == job_id)), None)


def _runs(connection: Connection, which: sa.ColumnElement[bool]) -> list[MeasuredRun]:
    query = (
        sa.select(*_COLUMNS)
        .join(attempts, attempts.c.attempt_id == measurements.c.attempt_id)
        .where(which, measurements.c.accepted)
        .order_by(attempts.c.fence)
    )
    return [_run(row) for row in connection.execute(query).mappings()]


def _run(row: Mapping[Any, Any]) -> MeasuredRun:
    values = {name: row[name] for name in MeasuredRun.__dataclass_fields__}
    words = {
        "quality": Quality(row["quality"]),
        "kind": SampleKind(row["kind"]),
        "control_level": ControlLevel(row["control_level"]),
    }
    return MeasuredRun(**{**values, **words})


def counted_reports(connection: Connection, attempt_ids: Sequence[AttemptId]) -> dict[AttemptId, bytes]:
    """The reports that settled attempts; one that expired is missing."""
    query = sa.select(evidence.c.attempt_id, evidence.c.body).where(
        evidence.c.attempt_id.in_(attempt_ids), evidence.c.counted, evidence.c.body.is_not(None)
    )
    return {row.attempt_id: zlib.decompress(row.body) for row in connection.execute(query)}


def facts_by_id(connection: Connection, facts_ids: Sequence[FactsId]) -> dict[FactsId, DeviceFacts]:
    """Devices as they were."""
    query = sa.select(device_facts.c.facts_id, device_facts.c.facts).where(
        device_facts.c.facts_id.in_(facts_ids)
    )
    return {row.facts_id: stored_facts(row.facts) for row in connection.execute(query)}


def fences_by_block(
    connection: Connection, matrix_id: MatrixId, device_id: DeviceId
) -> dict[tuple[int, int], list[tuple[int, JobId]]]:
    """By round and repeat of a matrix on a device: fence and job of what ran, in the order it ran."""
    query = (
        sa.select(jobs.c.round, jobs.c.repeat, attempts.c.fence, jobs.c.job_id)
        .join(attempts, attempts.c.attempt_id == jobs.c.attempt_id)
        .where(jobs.c.matrix_id == matrix_id, jobs.c.device_id == device_id)
        .order_by(attempts.c.fence)
    )
    found: defaultdict[tuple[int, int], list[tuple[int, JobId]]] = defaultdict(list)
    for round, repeat, fence, job_id in connection.execute(query):
        found[round, repeat].append((fence, job_id))
    return dict(found)
