"""Provenance of measurements: the run, its evidence, and the device facts."""

import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, DeviceId, Digest, FactsId, JobId, MatrixId
from farm.core.devices.controls import ControlLevel
from farm.core.devices.device import DeviceFacts
from farm.core.devices.software_version import build_by_facts
from farm.core.results.pairing import BlockKey
from farm.core.runs.measurement import Quality, SampleKind
from farm.database.rows import is_among, to_record
from farm.database.tables import attempts, cells, device_facts, evidence, is_set, jobs, measurements

_FACTS = TypeAdapter(DeviceFacts)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A measurement with its attempt, without samples."""

    job_id: JobId
    attempt_id: AttemptId
    cell_id: CellId
    round: int
    block: int
    repeat: int
    accepted: bool
    quality: Quality
    quality_reasons: Sequence[str]
    #: Notices that do not lower its quality.
    notices: Sequence[str] | None
    control_level: ControlLevel
    cpu_s: float | None
    kind: SampleKind
    sample_count: int
    value_ns: float
    clock_step_ns: int
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
    start_skin_c: float | None
    start_battery_c: float | None
    boot_id: str | None
    start_uptime_s: float | None
    measured_at: datetime
    #: Rises with every attempt on the device, so it gives the order of runs.
    fence: int


_ATTEMPT_COLUMNS = ("fence",)
_COLUMNS = [
    (attempts if name in _ATTEMPT_COLUMNS else measurements).c[name]
    for name in MeasuredRun.__dataclass_fields__
]


def runs_of_cells(connection: Connection, cell_ids: Sequence[CellId]) -> list[MeasuredRun]:
    """Return the accepted measurements of cells, in the order in which they ran."""
    return _runs(connection, measurements.c.cell_id.in_(cell_ids))


def runs_of_jobs(connection: Connection, job_ids: Collection[JobId]) -> dict[JobId, MeasuredRun]:
    """Return by job its accepted measurement; jobs without one are missing."""
    runs = _runs(connection, is_among(connection, measurements.c.job_id, job_ids))
    return {run.job_id: run for run in runs}


def _runs(connection: Connection, which: sa.ColumnElement[bool]) -> list[MeasuredRun]:
    query = (
        sa.select(*_COLUMNS)
        .join(attempts, attempts.c.attempt_id == measurements.c.attempt_id)
        .where(which, is_set(measurements.c.accepted))
        .order_by(attempts.c.fence)
    )
    return [to_record(MeasuredRun, row) for row in connection.execute(query)]


def counted_reports(connection: Connection, attempt_ids: Sequence[AttemptId]) -> dict[AttemptId, bytes]:
    """Return the reports that settled attempts; expired ones are missing."""
    query = sa.select(evidence.c.attempt_id, evidence.c.body).where(
        evidence.c.attempt_id.in_(attempt_ids), evidence.c.counted, evidence.c.body.is_not(None)
    )
    return {row.attempt_id: zlib.decompress(row.body) for row in connection.execute(query)}


# Built once: that takes longer than its answer.
_FACTS_QUERY = sa.select(device_facts.c.facts_id, device_facts.c.facts).where(
    device_facts.c.facts_id.in_(sa.bindparam("facts_ids", expanding=True))
)


def facts_by_id(connection: Connection, facts_ids: Sequence[FactsId]) -> dict[FactsId, DeviceFacts]:
    """Return device facts by id."""
    rows = connection.execute(_FACTS_QUERY, {"facts_ids": facts_ids})
    return {row.facts_id: _FACTS.validate_python(row.facts, strict=False) for row in rows}


def builds_of(connection: Connection, facts_ids: Collection[FactsId | None]) -> dict[FactsId, int]:
    """Return the builds that measurements of a device were made on; empty where all are of one snapshot."""
    return builds_of_each(connection, [facts_ids])[0]


def builds_of_each(
    connection: Connection, sets: Iterable[Collection[FactsId | None]]
) -> list[dict[FactsId, int]]:
    """Return for each of many sets of snapshots what `builds_of` returns, by one statement."""
    present = [frozenset(facts_id for facts_id in own if facts_id is not None) for own in sets]
    several = {own for own in present if len(own) > 1}
    facts = facts_by_id(connection, sorted(frozenset().union(*several))) if several else {}
    numbers = {own: build_by_facts({facts_id: facts[facts_id] for facts_id in own}) for own in several}
    return [numbers.get(own, {}) for own in present]


def fences_by_block(
    connection: Connection, matrix_id: MatrixId, device_id: DeviceId
) -> dict[BlockKey, list[tuple[int, JobId]]]:
    """Return by block the fences and jobs of a matrix on a device, in running order."""
    # By their cells: no index has the jobs of a matrix by device.
    own = sa.select(cells.c.cell_id).where(cells.c.matrix_id == matrix_id, cells.c.device_id == device_id)
    query = (
        sa.select(jobs.c.round, jobs.c.block, jobs.c.repeat, attempts.c.fence, jobs.c.job_id)
        .join(attempts, attempts.c.attempt_id == jobs.c.attempt_id)
        .where(jobs.c.cell_id.in_(own))
        .order_by(attempts.c.fence)
    )
    fences: defaultdict[BlockKey, list[tuple[int, JobId]]] = defaultdict(list)
    for round, block, repeat, fence, job_id in connection.execute(query):
        fences[round, block, repeat].append((fence, job_id))
    return dict(fences)
