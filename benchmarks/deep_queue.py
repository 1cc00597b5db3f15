"""The cost of a claim of ten phones with many and with few queued jobs: time, and pages of PostgreSQL."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from fake_host import FakeHost
from program import register_model, submit
from rig import FarmRig, farm_rig
from sqlalchemy.engine import Connection

from farm.clock import SystemClock
from farm.core.base.ids import HostId
from farm.database.engine import Database
from farm.database.transaction import Tx
from farm.services.jobs.claim import RunPlans, claim_jobs
from farm.services.jobs.plans import RunPlanner
from farm.store.hosts.hosts import current_session

HOST = "deep"
PHONES = 10
_TRIES = 5
#: More rounds than a matrix may have: jobs of the same cells, one after the other.
_FILL = """
INSERT INTO jobs (kind, device_id, matrix_id, cell_id, round, repeat, priority, state, created_at)
WITH RECURSIVE rounds(n) AS (
  SELECT CAST(:first AS INTEGER) UNION ALL SELECT n + 1 FROM rounds WHERE n < :rounds
)
SELECT kind, device_id, matrix_id, cell_id, n, 0, priority, 'queued', created_at
FROM jobs CROSS JOIN rounds WHERE round = 1 AND kind = 'benchmark'
"""
_PAGES = """
SELECT sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0)
           + coalesce(toast_blks_hit + toast_blks_read, 0))
FROM pg_statio_user_tables
"""


@dataclass(slots=True)
class DeepQueue:
    """A host with ten free phones, and a queue behind them."""

    database: Database
    rounds: int = 1

    def deepen(self, jobs: int) -> None:
        """Queue more of the same jobs, up to this number."""
        self.database.write(_fill, first=self.rounds + 1, rounds=jobs // PHONES)
        self.rounds = jobs // PHONES

    def claim_s(self) -> float:
        """Claim ten jobs, return the seconds until the commit, and undo the claim."""
        began_s = time.perf_counter()
        plans = self.database.read(RunPlanner().plan_next_jobs, HostId(HOST))
        self.database.write(_claim, plans)
        taken_s = time.perf_counter() - began_s
        self.database.write(_undo_claim)
        return taken_s

    def pages(self) -> int:
        """Claim ten jobs on PostgreSQL, return the number of pages it touches, and undo the claim.

        It is counted by the connection's own statistics: the least of several, because of vacuums.
        """
        # Earlier connections add their statistics when they end.
        self.database.engine.dispose()
        engine = sa.create_engine(self.database.engine.url, poolclass=sa.StaticPool)
        try:
            return min(_pages_of_a_claim(engine) for _ in range(_TRIES))
        finally:
            engine.dispose()


def shallow_queue(rig: FarmRig) -> DeepQueue:
    """Return ten healthy phones with one job each, on a running farm without other jobs."""
    register_model(rig)
    host = FakeHost(rig.url, HOST, rig.join_token(), PHONES)
    host.run_until_idle()
    submit(rig, rounds=1)
    host.close()
    return DeepQueue(rig.database)


@contextmanager
def deep_queue(folder: Path, jobs: int, database_url: str | None = None) -> Iterator[DeepQueue]:
    """Yield ten healthy phones with so many queued jobs, of a farm whose process has ended."""
    with farm_rig(folder, database_url) as rig:
        shallow_queue(rig)
        url = rig.database.engine.url.render_as_string(hide_password=False)
    database = Database(url)
    try:
        queue = DeepQueue(database)
        queue.deepen(jobs)
        yield queue
    finally:
        database.close()


def in_turn(ones: DeepQueue, others: DeepQueue, times: int) -> tuple[Sequence[float], Sequence[float]]:
    """Return the seconds of claims of both, taken in turn, so that other load falls on both."""
    measures: list[Callable[[], float]] = [ones.claim_s, others.claim_s]
    pairs = [[measure() for measure in measures] for _ in range(times)]
    return [first for first, _ in pairs], [second for _, second in pairs]


def _fill(connection: Connection, *, first: int, rounds: int) -> None:
    connection.execute(sa.text(_FILL), {"first": first, "rounds": rounds})
    connection.exec_driver_sql("ANALYZE")


def _claim(connection: Connection, plans: RunPlans) -> None:
    session = current_session(connection, HostId(HOST))
    assert session is not None
    claim_jobs(Tx(connection, SystemClock().now()), session.host_id, session.session_id, plans=plans)
    count = connection.exec_driver_sql("SELECT count(*) FROM attempts WHERE state = 'claimed'").scalar_one()
    assert count == PHONES, f"{count} of {PHONES} phones got a job"


def _plan_and_claim(connection: Connection) -> None:
    _claim(connection, RunPlanner().plan_next_jobs(connection, HostId(HOST)))


def _pages_of_a_claim(engine: sa.Engine) -> int:
    counts = []
    for service in (_nothing, _plan_and_claim, _undo_claim):
        with engine.begin() as connection:
            service(connection)
            connection.exec_driver_sql("SELECT pg_stat_force_next_flush()")
        with engine.begin() as connection:
            counts.append(int(connection.exec_driver_sql(_PAGES).scalar_one()))
    return counts[1] - counts[0]


def _nothing(connection: Connection) -> None:
    """Do nothing, so that earlier statistics are flushed."""


def _undo_claim(connection: Connection) -> None:
    """Finish the attempts and jobs, and mark the phones as clean."""
    connection.exec_driver_sql(
        "UPDATE jobs SET state = 'finished', outcome = 'cancelled' WHERE state = 'active'"
    )
    connection.exec_driver_sql("UPDATE attempts SET state = 'finished' WHERE state = 'claimed'")
    connection.exec_driver_sql("UPDATE devices SET cleaned_fence = fence")
