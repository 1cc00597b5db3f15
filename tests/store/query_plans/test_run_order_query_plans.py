"""What ran before an attempt is found by one step in an index, however much a device ran before."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, DeviceId
from farm.database.engine import Database
from farm.store.jobs.run_order import last_runs, measured_devices, orders_of
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


def test_sqlite_reads_only_the_last_runs_of_a_device(sqlite_filled: Database) -> None:
    (plan,) = plans(sqlite_filled, lambda connection: last_runs(connection, DeviceId("phone-1"), limit=10))
    assert any("sqlite_autoindex_attempts_1 (device_id=?)" in step for step in plan), plan
    assert not [step for step in plan if is_table_scan(step) or "B-TREE" in step], plan


def test_sqlite_reads_only_the_newest_measurements(sqlite_filled: Database) -> None:
    found = plans(sqlite_filled, lambda connection: measured_devices(connection, after=7, at_most=10))
    assert any("measurements USING INTEGER PRIMARY KEY (rowid>?)" in step for step in found[-1]), found
    assert not [step for plan in found for step in plan if is_table_scan(step) and "measurements" not in step]


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


def _newest_orders(connection: Connection) -> object:
    newest = connection.exec_driver_sql("SELECT max(attempt_id) FROM attempts").scalar_one()
    return orders_of(connection, [AttemptId(newest - number) for number in range(20)])


def _last_runs(connection: Connection) -> object:
    return last_runs(connection, DeviceId("phone-1"), limit=100)


def _newest_measured(connection: Connection) -> object:
    return measured_devices(connection, after=0, at_most=100)


def _planned(
    database: Database, query: Callable[[Connection], object] = _newest_orders, how: str = ""
) -> dict[str, Any]:
    def explain(connection: Connection) -> dict[str, Any]:
        with sent_to(connection) as sent:
            query(connection)
        *_, (sql, values) = sent
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


@pytest.mark.parametrize("query", [_newest_orders, _last_runs, _newest_measured])
def test_the_order_of_runs_costs_the_same_after_50_thousand_of_them_as_after_a_thousand(
    histories: Callable[[int], Database], query: Callable[[Connection], object]
) -> None:
    def buffers(database: Database) -> int:
        plan = _planned(database, query, ", ANALYZE, BUFFERS")
        return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

    few, many = buffers(histories(1_000)), buffers(histories(50_000))
    assert many <= 1.5 * few, (few, many)
