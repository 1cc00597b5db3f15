"""The database itself forbids what must never be, whoever writes."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from farm.core.jobs.attempt import LIVE_STATES
from farm.database import tables
from farm.database.engine import Database
from farm.database.tables import metadata
from tests.database.broken_rows import BROKEN
from tests.support.database.database_fixtures import any_database, opened
from tests.support.database.sample_rows import ATTEMPT, JOB, MEASUREMENT, SESSION, add, add_rows

pytestmark = pytest.mark.on_postgresql


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """As `filled`, for tests whose writes are all refused."""
    with any_database(request, tmp_path_factory.mktemp("shared")) as url, opened(url) as database:
        database.write(add_rows)
        yield database


@pytest.mark.parametrize("rule", BROKEN)
@pytest.mark.invariant("I1", "I2", "I3", "I4", "I17", "I18")
def test_the_database_refuses_what_breaks_the_rule(shared: Database, rule: str) -> None:
    def write(connection: Connection) -> None:
        for table, row in BROKEN[rule]:
            add(connection, table, row)

    with pytest.raises(IntegrityError) as caught:
        shared.write(write)
    assert named(rule, shared) in str(caught.value.orig), caught.value.orig


def named(rule: str, database: Database) -> str:
    """What the message says: a rule's name, or on SQLite the columns of a unique index."""
    name = rule.strip()
    if name.startswith("ck_") or database.engine.dialect.name != "sqlite":
        return name
    for table in metadata.tables.values():
        for item in [*table.indexes, *table.constraints]:
            if item.name == name:
                assert isinstance(item, sa.Index | sa.UniqueConstraint)
                return ", ".join(f"{table.name}.{column.name}" for column in item.columns)
    raise LookupError(name)


def test_every_rule_of_the_schema_is_tried() -> None:
    uniques = {
        str(item.name)
        for table in metadata.tables.values()
        for item in [*table.indexes, *table.constraints]
        if isinstance(item, sa.UniqueConstraint | sa.CheckConstraint)
        or (isinstance(item, sa.Index) and item.unique)
    }
    assert uniques == {rule.strip() for rule in BROKEN}


@pytest.mark.parametrize("state", LIVE_STATES)
@pytest.mark.invariant("I1")
def test_every_live_state_holds_the_device(filled: Database, state: str) -> None:
    filled.write(add, tables.jobs, {**JOB, "round": 2})
    filled.write(add, tables.attempts, {**ATTEMPT, "state": state})
    with pytest.raises(IntegrityError):
        filled.write(add, tables.attempts, {**ATTEMPT, "job_id": 2, "fence": 2})


@pytest.mark.parametrize("state", ["finished", "returned", "lost"])
def test_an_attempt_that_is_over_holds_nothing(filled: Database, state: str) -> None:
    filled.write(add, tables.attempts, {**ATTEMPT, "state": state, "cpu_domain": "cpu"})
    filled.write(add, tables.attempts, {**ATTEMPT, "fence": 2, "cpu_domain": "cpu"})


def test_a_closed_session_makes_room_for_the_next(filled: Database) -> None:
    filled.write(lambda connection: connection.execute(tables.sessions.update().values(state="closed")))
    filled.write(add, tables.sessions, {**SESSION, "epoch": 2})


def test_a_job_may_have_many_measurements_that_are_not_accepted(filled: Database) -> None:
    for fence in (1, 2):
        filled.write(add, tables.attempts, {**ATTEMPT, "state": "lost", "fence": fence})
        filled.write(add, tables.measurements, {**MEASUREMENT, "attempt_id": fence, "accepted": False})


def test_a_row_cannot_refer_to_what_does_not_exist(filled: Database) -> None:
    with pytest.raises(IntegrityError, match=r"(?i)foreign key"):
        filled.write(add, tables.attempts, {**ATTEMPT, "job_id": 99})
