"""What ran before an attempt is found by one step in an index, however much a device ran before."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId
from farm.database.engine import Database
from farm.store.jobs.run_order import orders_of
from tests.store.query_plans.test_postgres_query_plans import copies, indexes, scanned
from tests.store.query_plans.test_sqlite_query_plans import is_table_scan, plans
from tests.support.database.database_fixtures import opened
from tests.support.database.postgres import PostgresServer
from tests.support.database.sample_rows import ATTEMPT, MEASUREMENT, NOW, add, add_rows, tables
from tests.support.database.sent_statements import sent_to

LAST = [AttemptId(1), AttemptId(2)]


def test_sqlite_finds_what_ran_before_by_fencing_tokens(sqlite_filled: Database) -> None:
    (plan,) = plans(sqlite_filled, lambda connection: orders_of(connection, LAST))
    assert not [step for step in plan if is_table_scan(step)], plan
    assert any("(device_id=? AND fence<?)" in step for step in plan), plan
    inside = plan[next(place for place, step in enumerate(plan) if "CORRELATED" in step) :]
    assert not any("B-TREE" in step for step in inside), plan


@pytest.fixture(scope="module")
def histories(postgres: PostgresServer) -> Iterator[Callable[[int], Database]]:
    """PostgreSQL databases whose one device ran so many attempts."""
    with (
        postgres.database("migrated") as few,
        postgres.database("migrated") as many,
        opened(postgres.url(few)) as short,
        opened(postgres.url(many)) as long,
    ):
        short.write(lambda connection: _fill(connection, 1_000))
        long.write(lambda connection: _fill(connection, 50_000))
        yield lambda attempts: short if attempts == 1_000 else long


def _fill(connection: Connection, attempts: int) -> None:
    add_rows(connection)
    ended = {"state": "finished", "outcome": "succeeded", "measuring_at": NOW, "finished_at": NOW}
    add(connection, tables.attempts, ATTEMPT, **ended)
    copies(connection, "attempts", attempts, "attempt_id = 1", fence="n + 1")
    add(connection, tables.measurements, MEASUREMENT, accepted=False)
    copies(connection, "measurements", attempts, "measurement_id = 1", attempt_id="n + 1")
    connection.exec_driver_sql("ANALYZE")


def _planned(database: Database, how: str = "") -> dict[str, Any]:
    def explain(connection: Connection) -> dict[str, Any]:
        newest = connection.exec_driver_sql("SELECT max(attempt_id) FROM attempts").scalar_one()
        with sent_to(connection) as sent:
            orders_of(connection, [AttemptId(newest - number) for number in range(20)])
        ((sql, values),) = sent
        plan: dict[str, Any] = connection.exec_driver_sql(
            f"EXPLAIN (FORMAT JSON{how}) {sql}", values
        ).scalar_one()[0]["Plan"]
        return plan

    return database.write(explain)


def test_postgresql_finds_what_ran_before_by_fencing_tokens(
    histories: Callable[[int], Database],
) -> None:
    plan = _planned(histories(50_000))
    assert not scanned([plan]) & {"attempts", "measurements"}, plan
    assert "uq_attempts_device_id_fence" in indexes([plan]), plan


def test_what_ran_before_costs_the_same_after_50_thousand_runs_as_after_one(
    histories: Callable[[int], Database],
) -> None:
    def buffers(database: Database) -> int:
        plan = _planned(database, ", ANALYZE, BUFFERS")
        return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

    few, many = buffers(histories(1_000)), buffers(histories(50_000))
    assert many <= 1.5 * few, (few, many)
