"""Golden runs: what a phone's check took, as it is judged; learned from by the kind of phone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, Digest, FactsId, JobId
from farm.core.checks.reference_range import PastRun
from farm.core.checks.reference_run import OUT, GoldenVerdict
from farm.database.tables import golden_runs

#: What bands are learned from, and drifts: so many runs of a kind at most, and of so long.
_RUNS_OF_KIND = 512
_WITHIN = timedelta(days=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenRun:
    """A golden run's row."""

    job_id: JobId
    device_id: DeviceId
    band_key: str
    facts_id: FactsId | None
    program_digest: Digest
    value_ns: float
    verdict: GoldenVerdict
    #: Why it cannot be judged, in words; exactly where its verdict is `unfit`.
    unfit_because: str | None = None
    measured_at: datetime

    @property
    def past(self) -> PastRun:
        """As bands are learned from it."""
        was_out = self.verdict in OUT
        return PastRun(phone=self.device_id, value_ns=self.value_ns, at=self.measured_at, was_out=was_out)


def add_golden_run(connection: Connection, run: GoldenRun) -> None:
    """Keep a check's golden run."""
    connection.execute(
        golden_runs.insert().values(
            job_id=run.job_id,
            device_id=run.device_id,
            band_key=run.band_key,
            facts_id=run.facts_id,
            program_digest=run.program_digest,
            value_ns=run.value_ns,
            verdict=run.verdict,
            unfit_because=run.unfit_because,
            measured_at=run.measured_at,
        )
    )


def runs_of_kind(
    connection: Connection, band_key: str, program_digest: Digest, *, before: datetime
) -> list[PastRun]:
    """The last fit runs of a kind of phone before a moment, newest first."""
    query = _of_kind(band_key, program_digest, before).where(golden_runs.c.verdict != GoldenVerdict.UNFIT)
    return [_run(row).past for row in connection.execute(query.limit(_RUNS_OF_KIND))]


def own_runs(connection: Connection, device_id: DeviceId, *, limit: int) -> list[GoldenRun]:
    """The newest runs of a device, newest first; those of other bands are older systems of it."""
    query = sa.select(golden_runs).where(golden_runs.c.device_id == device_id)
    query = query.order_by(golden_runs.c.measured_at.desc(), golden_runs.c.golden_id.desc())
    return [_run(row) for row in connection.execute(query.limit(limit))]


def own_fit_runs(connection: Connection, run: GoldenRun) -> list[PastRun]:
    """Fit runs of the same device and band before a run, of as long as drifts are looked for."""
    query = sa.select(golden_runs).where(
        golden_runs.c.device_id == run.device_id,
        golden_runs.c.measured_at < run.measured_at,
        golden_runs.c.measured_at >= run.measured_at - _WITHIN,
        golden_runs.c.band_key == run.band_key,
        golden_runs.c.program_digest == run.program_digest,
        golden_runs.c.verdict != GoldenVerdict.UNFIT,
    )
    return [_run(row).past for row in connection.execute(query)]


def find_golden_run(connection: Connection, job_id: JobId) -> GoldenRun | None:
    """The golden run of a check."""
    row = connection.execute(sa.select(golden_runs).where(golden_runs.c.job_id == job_id)).one_or_none()
    return None if row is None else _run(row)


def verdicts_in_band(runs: Sequence[GoldenRun]) -> list[GoldenVerdict]:
    """The verdicts of the newest run and those before it that were judged by the same band."""
    if not runs:
        return []
    newest = runs[0]
    same = (newest.band_key, newest.program_digest)
    return [run.verdict for run in runs if (run.band_key, run.program_digest) == same]


def _of_kind(band_key: str, program_digest: Digest, before: datetime) -> sa.Select[Any]:
    return (
        sa.select(golden_runs)
        .where(
            golden_runs.c.band_key == band_key,
            golden_runs.c.program_digest == program_digest,
            golden_runs.c.measured_at < before,
            golden_runs.c.measured_at >= before - _WITHIN,
        )
        .order_by(golden_runs.c.measured_at.desc())
    )


def _run(row: sa.Row[Any]) -> GoldenRun:
    return GoldenRun(
        job_id=row.job_id,
        device_id=row.device_id,
        band_key=row.band_key,
        facts_id=row.facts_id,
        program_digest=row.program_digest,
        value_ns=row.value_ns,
        verdict=GoldenVerdict(row.verdict),
        unfit_because=row.unfit_because,
        measured_at=row.measured_at,
    )
