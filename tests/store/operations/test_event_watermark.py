"""Who reads the event log on from where they stopped misses nothing and sees nothing twice."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.operations.event import DeviceEvent
from farm.database.engine import Database
from farm.database.tables import events
from farm.database.transaction import Tx
from farm.store.operations.event_log import EventFilter, events_after
from farm.store.operations.event_watermark import event_watermark, unfinished_writers
from farm.store.operations.events import record_event
from tests.support.database.postgres import PostgresServer
from tests.support.database.sample_rows import NOW, PHONE


def note(connection: Connection, cause: str = "test") -> None:
    record_event(Tx(connection, NOW), DeviceEvent.FOUND, PHONE, cause=cause)


class Follower:
    """Reads what is settled, as the route does that people follow."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.after = 0
        self.seen: list[tuple[int, str | None]] = []

    def look(self) -> bool:
        """Read on; False when somebody is still writing what might come before."""
        found = self.database.read(event_watermark)
        if self.database.read(unfinished_writers, found.writers):
            return False
        news = self.database.read(
            events_after, EventFilter(), after=self.after, until=found.event_id, limit=1_000_000
        )
        self.seen += [(event.event_id, event.cause) for event in news]
        self.after = max(self.after, found.event_id)
        return True


@pytest.fixture
def postgres_database(postgres: PostgresServer) -> Iterator[Database]:
    with postgres.database("migrated") as name:
        database = Database(postgres.url(name))
        try:
            yield database
        finally:
            database.close()


@contextmanager
def writing(database: Database) -> Iterator[Connection]:
    """A transaction that has written an event, and ends with the block unless the test ends it."""
    with database.engine.connect().execution_options(farm_writes=True) as connection:
        note(connection, "begun first")
        yield connection
        connection.commit()


def test_what_was_committed_is_read_once_and_in_order(database: Database) -> None:
    follower = Follower(database)
    assert follower.look()
    for number in range(3):
        database.write(note, str(number))
        assert follower.look()
        assert follower.look()
    assert [cause for _, cause in follower.seen] == ["0", "1", "2"]


@pytest.mark.invariant("I17")
def test_a_later_number_is_held_back_while_an_earlier_one_may_still_come(
    postgres_database: Database,
) -> None:
    follower = Follower(postgres_database)
    with writing(postgres_database):
        postgres_database.write(note, "begun later")
        assert not follower.look()
        assert follower.seen == []
    assert follower.look()
    assert [cause for _, cause in follower.seen] == ["begun first", "begun later"]


def test_a_number_that_never_comes_holds_no_one_up(postgres_database: Database) -> None:
    follower = Follower(postgres_database)
    with writing(postgres_database) as connection:
        connection.rollback()
        postgres_database.write(note, "after a gap")
        assert follower.look()
    assert [cause for _, cause in follower.seen] == ["after a gap"]


def test_another_database_of_the_server_holds_no_one_up(
    postgres: PostgresServer, postgres_database: Database
) -> None:
    # Copies of one template have tables of the same oid.
    with postgres.database("migrated") as name:
        other = Database(postgres.url(name))
        with writing(other):
            assert Follower(postgres_database).look()
        other.close()


def test_a_reader_of_the_log_holds_no_one_up(database: Database) -> None:
    with database.engine.connect() as reader:
        assert reader.execute(sa.select(events)).all() == []
        assert Follower(database).look()


@pytest.mark.invariant("I17")
def test_who_follows_many_writers_misses_nothing_and_sees_nothing_twice(database: Database) -> None:
    def some(connection: Connection, name: int) -> None:
        for number in range(3):
            note(connection, f"{name}.{number}")
        if name % 7 == 0:
            raise LookupError("changed its mind")

    def write(name: int) -> None:
        try:
            database.write(some, name)
        except LookupError:
            return

    follower = Follower(database)
    with ThreadPoolExecutor(4) as threads:
        written = [threads.submit(write, name) for name in range(60)]
        while not all(each.done() for each in written):
            follower.look()
    for each in written:
        each.result()
    assert follower.look()
    query = sa.select(events.c.event_id, events.c.cause).order_by(events.c.event_id)
    with database.engine.connect() as connection:
        assert follower.seen == [tuple(row) for row in connection.execute(query)]
    assert len(follower.seen) == 3 * 51
