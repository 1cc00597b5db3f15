"""Durations of past runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, Digest
from farm.database.rows import to_record
from farm.database.tables import JOB_IS_QUEUED, attempts, device_facts, jobs, measurements, series

#: The most runs that are used, newest first: enough for a median.
MAX_RUNS = 5000
#: The most measurements that are scanned for them, so that a disused harness costs no more.
MAX_RUNS_SCANNED = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDuration:
    """The duration of a run with a measurement."""

    series_digest: Digest
    model: str | None
    #: Only settings that are not the harness's defaults.
    settings: Mapping[str, Any]
    device_model: str | None
    #: From the claim to the settled report, in seconds.
    seconds: float


def recent_run_durations(connection: Connection, harness: str) -> list[RunDuration]:
    """Return the latest runs of a harness, among the latest of all harnesses."""
    newest = sa.select(sa.func.max(measurements.c.measurement_id)).scalar_subquery()
    query = (
        sa.select(
            series.c.series_digest,
            series.c.model,
            series.c.settings,
            device_facts.c.facts["device_model"].as_string().label("device_model"),
            attempts.c.claimed_at,
            attempts.c.finished_at,
        )
        .select_from(measurements)
        .join(series, series.c.series_id == measurements.c.series_id)
        .join(attempts, attempts.c.attempt_id == measurements.c.attempt_id)
        .outerjoin(device_facts, device_facts.c.facts_id == measurements.c.facts_id)
        .where(
            measurements.c.measurement_id > newest - MAX_RUNS_SCANNED,
            measurements.c.accepted,
            series.c.harness == harness,
            attempts.c.finished_at.is_not(None),
        )
        .order_by(measurements.c.measurement_id.desc())
        .limit(MAX_RUNS)
    )
    return [
        to_record(RunDuration, row, seconds=(row.finished_at - row.claimed_at).total_seconds())
        for row in connection.execute(query)
    ]


def queue_lengths(connection: Connection, *, min_priority: int) -> dict[DeviceId, int]:
    """Return by device how many queued jobs are ahead of a new one of a priority; devices with none are
    missing.
    """
    query = (
        sa.select(jobs.c.device_id, sa.func.count().label("job_count"))
        .where(JOB_IS_QUEUED, jobs.c.priority >= min_priority)
        .group_by(jobs.c.device_id)
    )
    return {row.device_id: row.job_count for row in connection.execute(query)}
