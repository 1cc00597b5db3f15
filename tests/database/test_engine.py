"""Whole transactions: all of a service or nothing, one writer at a time, readers beside it."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Connection

from farm.core.errors import FarmBusy
from farm.database.engine import Database, sqlite_url
from farm.database.errors import transient_errors_as_busy
from farm.database.migrate import upgrade
from farm.database.tables import UtcTime, artifacts
from tests.support.database.sample_rows import NOW


def put(connection: Connection, number: int) -> None:
    row = {"digest": f"{number:064}", "size_bytes": number, "created_at": NOW, "used_at": NOW}
    connection.execute(artifacts.insert().values(row))


def count(connection: Connection) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(artifacts)).scalar_one()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process's transaction, as far as SQLite is concerned."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.mark.invariant("I17")
def test_a_commit_of_sqlite_is_on_the_disk_when_it_is_answered(sqlite_database: Database) -> None:
    """With NORMAL, a power cut undoes the last commits, and agents have deleted what those acknowledged."""

    def synchronous(connection: Connection) -> int:
        level: int = connection.exec_driver_sql("PRAGMA synchronous").scalar_one()
        return level

    full = 2
    assert sqlite_database.write(synchronous) == full


def test_a_service_that_fails_leaves_nothing_behind(database: Database) -> None:
    def fails(connection: Connection) -> None:
        put(connection, 1)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        database.write(fails)
    assert database.read(count) == 0
    database.write(put, 1)
    assert database.read(count) == 1


@pytest.mark.invariant("I17")
def test_a_failed_savepoint_leaves_the_rest_of_the_service(database: Database) -> None:
    def put_both(connection: Connection) -> None:
        with connection.begin_nested():
            put(connection, 2)
            put(connection, 1)

    def tries(connection: Connection) -> None:
        put(connection, 1)
        with pytest.raises(sa.exc.IntegrityError):
            put_both(connection)
        put(connection, 3)

    database.write(tries)
    assert database.read(count) == 2


@pytest.mark.fault(40)
def test_a_database_that_someone_else_locked_is_busy_and_not_a_hang(
    sqlite_database: Database, tmp_path: Path
) -> None:
    with locked(tmp_path / "farm.sqlite3"):
        with pytest.raises(FarmBusy, match="locked") as caught:
            sqlite_database.write(put, 1)
        assert caught.value.transient
        assert sqlite_database.read(count) == 0
    sqlite_database.write(put, 1)


def test_a_mistake_of_ours_is_not_called_busy(database: Database) -> None:
    def asks(connection: Connection) -> None:
        connection.exec_driver_sql("SELECT * FROM nowhere")

    for run in (database.write, database.read):
        with pytest.raises(sa.exc.DBAPIError, match="nowhere"):
            run(asks)


@pytest.mark.fault(40)
def test_a_lost_race_for_the_write_ahead_log_is_busy() -> None:
    # SQLite gives up after ten seconds of them (https://sqlite.org/rescode.html#protocol).
    error = sqlite3.OperationalError("locking protocol")
    error.sqlite_errorcode = sqlite3.SQLITE_PROTOCOL
    with pytest.raises(FarmBusy, match="locking protocol"), transient_errors_as_busy():
        raise sa.exc.OperationalError("BEGIN", {}, error)


def test_an_error_of_the_driver_itself_is_not_hidden_by_another(sqlite_database: Database) -> None:
    def reads_no_text(connection: Connection) -> None:
        connection.exec_driver_sql("SELECT CAST(X'FF' AS TEXT)").all()

    with pytest.raises(sa.exc.OperationalError, match="UTF-8"):
        sqlite_database.read(reads_no_text)


@pytest.mark.invariant("I17")
@pytest.mark.fault(41)
def test_a_full_disk_is_a_fault_that_may_pass_and_keeps_no_half(sqlite_database: Database) -> None:
    def fill(connection: Connection) -> None:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
        try:
            for number in range(10_000):
                put(connection, number)
        finally:
            connection.exec_driver_sql("PRAGMA max_page_count=1000000")

    with pytest.raises(FarmBusy, match="full") as refused:
        sqlite_database.write(fill)
    assert refused.value.hint.startswith("free space on the farm's disk")
    assert sqlite_database.read(count) == 0


def test_a_reader_cannot_write(database: Database) -> None:
    with pytest.raises(sa.exc.DBAPIError, match=r"read-?only"):
        database.read(put, 1)
    database.write(put, 1)
    assert database.read(count) == 1


def test_writers_of_many_threads_all_commit(database: Database) -> None:
    def work(first: int) -> None:
        for number in range(first, first + 10):
            database.write(put, number)

    threads = [threading.Thread(target=work, args=(10 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert database.read(count) == 80


@pytest.mark.invariant("I17")
@pytest.mark.fault(43)
def test_two_farms_on_one_file_take_turns(sqlite_database: Database, tmp_path: Path) -> None:
    other = Database(sqlite_url(tmp_path / "farm.sqlite3"))

    def work(own: Database, first: int) -> None:
        for number in range(first, first + 20):
            own.write(put, number)

    recovering_device = Database(sqlite_url(tmp_path / "farm.sqlite3"))
    threads = [
        threading.Thread(target=work, args=(own, first))
        for own, first in ((other, 0), (recovering_device, 100))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    recovering_device.close()
    assert sqlite_database.read(count) == 40


def test_a_reader_sees_one_snapshot_while_others_write(database: Database) -> None:
    def looks_twice(connection: Connection) -> tuple[int, int]:
        before = count(connection)
        database.write(put, 1)
        return before, count(connection)

    assert database.read(looks_twice) == (0, 0)
    assert database.read(count) == 1


def test_reading_and_writing_work_from_an_event_loop(database: Database) -> None:
    async def both() -> int:
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(database.write_async(put, number))
        return await database.read_async(count)

    assert asyncio.run(both()) == 20


def test_a_lookup_waits_for_none_of_those_who_read_much(database: Database) -> None:
    done = threading.Event()

    def long_read(connection: Connection) -> None:
        count(connection)
        done.wait(60)

    async def both() -> int:
        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(database.read_async(long_read))
            try:
                async with asyncio.timeout(120):
                    return await database.peek_async(count)
            finally:
                done.set()

    assert asyncio.run(both()) == 0


@pytest.mark.invariant("I12")
@pytest.mark.fault(35)
def test_what_was_committed_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "farm.sqlite3"
    for number in range(3):
        own = Database(sqlite_url(path))
        upgrade(own.engine)
        own.write(put, number)
        own.close()
    again = Database(sqlite_url(path))
    assert again.read(count) == 3
    again.close()


MOMENTS = st.datetimes(
    min_value=datetime(1900, 1, 1),  # noqa: DTZ001
    max_value=datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))]),
)


@given(moment=MOMENTS)
def test_times_come_back_as_the_same_moment_in_utc(moment: datetime) -> None:
    dialect, kind = sqlite.dialect(), UtcTime()
    stored = kind.process_bind_param(moment, dialect)
    assert isinstance(stored, int)
    found = kind.process_result_value(stored, dialect)
    assert found == moment
    assert found is not None
    assert found.tzinfo is UTC


def test_no_time_stays_no_time() -> None:
    assert UtcTime().process_bind_param(None, sqlite.dialect()) is None
    assert UtcTime().process_result_value(None, sqlite.dialect()) is None


def test_slow_readers_delay_no_health_check_and_no_lookup(database: Database) -> None:
    reading, released = threading.Semaphore(0), threading.Event()

    def slow(connection: Connection) -> None:
        reading.release()
        released.wait(60)

    async def ask() -> None:
        slow_reads = [asyncio.create_task(database.read_async(slow)) for _ in range(20)]
        await asyncio.to_thread(reading.acquire)
        async with asyncio.timeout(120):
            await asyncio.gather(*(database.ping_async() for _ in range(50)))
            await database.peek_async(lambda connection: None)
        released.set()
        await asyncio.gather(*slow_reads)

    asyncio.run(ask())


def test_a_read_of_sqlite_that_takes_too_long_is_called_off(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    with closing(Database(sqlite_url(tmp_path / "db"), read_ms=50)) as database:
        with pytest.raises(FarmBusy, match="interrupted"):
            asyncio.run(database.read_async(lambda connection: connection.exec_driver_sql(endless).all()))
        # The connection is as good as ever, and what nobody waits for takes as long as it takes.
        few = endless.replace("FROM n)", "FROM n WHERE i < 300000)")
        assert database.read(lambda connection: connection.exec_driver_sql(few).scalar_one()) == 300_000
