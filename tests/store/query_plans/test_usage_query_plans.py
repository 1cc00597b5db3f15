"""The usage of a week costs what happened in that week, on both databases, however old the farm is."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.engine import Connection

from farm.core.operations.usage import Period
from farm.database.engine import Database
from farm.store.operations import usage
from tests.store.query_plans.test_postgres_query_plans import copies, indexes, nodes, scanned
from tests.store.query_plans.test_sqlite_query_plans import is_table_scan, plans
from tests.support.database.database_fixtures import opened
from tests.support.database.postgres import PostgresServer
from tests.support.database.sample_rows import ATTEMPT, NOW, PHONE, add, add_rows, tables
from tests.support.database.sent_statements import sent_to

WEEK = Period(begin=NOW - timedelta(days=371), end=NOW - timedelta(days=364))
READ: dict[str, tuple[Callable[[Connection], object], str]] = {
    "devices": (lambda c: usage.device_changes(c, WEEK), "ix_events_facts"),
    "the oldest": (usage.known_since, "ix_events_facts"),
    "hosts": (lambda c: usage.host_changes(c, WEEK), "ix_events_facts"),
    "attempts": (lambda c: usage.attempts_in(c, WEEK), "ix_attempts_device_claims"),
    "device actions": (lambda c: usage.actions_in(c, WEEK), "ix_device_actions_requested_at"),
}
#: There is one row for each device and host.
SMALL = ("SCAN devices", "SCAN hosts")


@pytest.mark.parametrize("name", READ)
def test_sqlite_finds_the_changes_of_a_week_by_its_index(sqlite_filled: Database, name: str) -> None:
    query, index = READ[name]
    found = [step for plan in plans(sqlite_filled, query) for step in plan]
    assert any(index in step for step in found), found
    assert not [step for step in found if is_table_scan(step) and step not in SMALL], found
    # Of a subject: a kind, and a range of times.
    ranges = [step for step in found if "ix_events_facts" in step]
    assert all("subject_id=? AND kind=?" in step for step in ranges), found


#: Two years of a farm, a row each 10 minutes or so.
ROWS, STEP_US = 100_000, 630_000_000


@pytest.fixture(scope="module")
def old_farm(postgres: PostgresServer) -> Iterator[Database]:
    """A PostgreSQL with two years of events, attempts and device actions of 100 devices."""
    with postgres.database("migrated") as name, opened(postgres.url(name)) as database:
        database.write(_fill)
        yield database


def _fill(connection: Connection) -> None:
    add_rows(connection)
    add(connection, tables.attempts, ATTEMPT, state="finished", outcome="succeeded", finished_at=NOW)
    action = {"device_id": PHONE, "kind": "clean", "requested_by": "ann", "requested_at": NOW}
    add(connection, tables.device_actions, action, finished_at=NOW, done="cleaned")
    event = {"at": NOW, "actor": "farm", "kind": "device_presence_changed", "subject_id": PHONE}
    add(connection, tables.events, event, subject="device", to_state="online")
    device = {"device_id": "'device-' || n", "label": "NULL"}
    copies(connection, "devices", 100, f"device_id = '{PHONE}'", **device)
    device_id = "'device-' || (1 + n % 100)"
    ago = f" - n::bigint * {STEP_US}"
    claimed = {"device_id": device_id, "fence": "n + 1", "claimed_at": f"claimed_at{ago}"}
    copies(connection, "attempts", ROWS, "true", **claimed, finished_at=f"finished_at{ago}")
    copies(
        connection,
        "device_actions",
        ROWS // 10,
        "true",
        device_id=device_id,
        requested_at=f"requested_at{ago}",
    )
    kind = "(ARRAY['device_presence_changed', 'device_health_changed', 'device_updated'])[1 + n % 3]"
    copies(connection, "events", ROWS, "true", subject_id=device_id, kind=kind, at=f"at{ago}")
    connection.exec_driver_sql("ANALYZE")


def _planned(database: Database, query: Callable[[Connection], object]) -> list[dict[str, Any]]:
    def explained(connection: Connection) -> list[dict[str, Any]]:
        with sent_to(connection) as sent:
            query(connection)
        found = [
            connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON, ANALYZE) {sql}", values)
            for sql, values in sent
        ]
        return [plan.scalar_one()[0]["Plan"] for plan in found]

    return database.write(explained)


@pytest.mark.parametrize("name", READ)
def test_postgresql_finds_the_changes_of_a_week_by_its_index(old_farm: Database, name: str) -> None:
    query, index = READ[name]
    found = _planned(old_farm, query)
    if name != "hosts":
        # There is no event of a host: any index finds none.
        assert index in indexes(found), found
    assert not scanned(found) & {"attempts", "events", "device_actions"}, found
    read = sum(node["Actual Rows"] * node["Actual Loops"] for plan in found for node in nodes(plan))
    # Of two years, a week.
    assert read < ROWS / 10, found
