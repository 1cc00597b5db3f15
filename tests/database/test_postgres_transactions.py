"""Several farm processes write to one PostgreSQL: in one order, fairly, and nothing half done."""

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from psycopg.pq.abc import PGconn
from sqlalchemy.engine import Connection

from farm.core.errors import FarmBusy
from farm.database.engine import Database
from farm.database.migrate import upgrade
from farm.database.tables import artifacts
from tests.support.database.postgres import PostgresServer
from tests.support.database.sample_rows import NOW


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    with postgres.database("migrated") as name:
        yield postgres.url(name)


@contextmanager
def opened(url: str, **settings: int) -> Iterator[Database]:
    database = Database(url, **settings)
    try:
        yield database
    finally:
        database.close()


def put(connection: Connection, number: int) -> None:
    row = {"digest": f"{number:064}", "size_bytes": number, "created_at": NOW, "used_at": NOW}
    connection.execute(artifacts.insert().values(row))


def put_next(connection: Connection) -> int:
    """What only works as if nobody else were there: a number that nobody has."""
    last = connection.execute(sa.select(sa.func.max(artifacts.c.size_bytes))).scalar() or 0
    put(connection, int(last) + 1)
    return int(last) + 1


def count(connection: Connection) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(artifacts)).scalar_one()


def own_backend(connection: Connection) -> int:
    pid: int = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    return pid


def end_backend(connection: Connection, pid: int) -> None:
    connection.execute(sa.text("SELECT pg_terminate_backend(:pid, 10000)"), {"pid": pid})


@pytest.mark.fault(43)
def test_writers_of_several_processes_are_put_in_an_order_and_none_starves(url: str) -> None:
    each, processes = 20, 3
    with opened(url) as first, opened(url) as second, opened(url) as third, ThreadPoolExecutor(9) as pool:
        farms = [first, second, third]

        def work(number: int) -> list[int]:
            return [farms[number % processes].write(put_next) for _ in range(each)]

        numbers = [number for found in pool.map(work, range(9)) for number in found]
        assert sorted(numbers) == list(range(1, 9 * each + 1))
        # Hardly any: PostgreSQL passes the lock on a moment before it forgets what the transaction read.
        assert sum(farm.reruns for farm in farms) < len(numbers) / 4


def test_a_write_that_meets_a_writer_without_the_lock_is_run_again(url: str) -> None:
    with opened(url) as database, psycopg.connect(libpq(url)) as stranger:
        stranger.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        runs = []

        def meets(connection: Connection) -> int:
            runs.append(put_next(connection))
            if len(runs) == 1:
                stranger.execute("SELECT max(size_bytes) FROM artifacts")
                stranger.execute("INSERT INTO artifacts SELECT repeat('f', 64), 1, 0, 0 ")
                stranger.commit()
            return runs[-1]

        assert database.write(meets) == 2
        assert runs == [1, 2]
        assert database.reruns == 1


def test_a_write_that_never_finds_its_order_is_busy_and_leaves_nothing(url: str) -> None:
    with opened(url) as database:
        runs = []

        def fails(connection: Connection) -> None:
            runs.append(put_next(connection))
            connection.exec_driver_sql("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$")

        with pytest.raises(FarmBusy) as refused:
            database.write(fails)
        assert refused.value.transient
        assert len(runs) > 10
        assert set(runs) == {1}
        assert database.read(count) == 0


def test_two_that_add_the_same_row_end_as_one_after_the_other(url: str) -> None:
    with opened(url) as database, psycopg.connect(libpq(url)) as stranger:

        def put_once(connection: Connection) -> str:
            known = connection.execute(sa.select(artifacts).where(artifacts.c.size_bytes == 1)).all()
            if known:
                return "known"
            if not stranger.closed:
                stranger.execute(f"INSERT INTO artifacts SELECT '{1:064}', 1, 0, 0")
                stranger.commit()
                stranger.close()
            put(connection, 1)
            return "added"

        assert database.write(put_once) == "known"


@pytest.mark.invariant("I17")
def test_a_backend_that_ends_in_the_middle_is_a_fault_that_passes_and_leaves_nothing(url: str) -> None:
    with opened(url) as database, opened(url) as other:

        def cut_off(connection: Connection) -> None:
            put(connection, 1)
            other.read(end_backend, own_backend(connection))
            put(connection, 2)

        with pytest.raises(FarmBusy) as refused:
            database.write(cut_off)
        assert refused.value.transient
        assert database.read(count) == 0
        database.write(put, 3)
        assert database.read(count) == 1


def test_idle_connections_that_were_ended_are_no_ones_trouble(url: str) -> None:
    with opened(url) as database, opened(url) as other:
        for backend in (database.write(own_backend), database.read(own_backend)):
            other.read(end_backend, backend)
        database.write(put, 1)
        assert database.read(count) == 1


def test_a_process_that_stands_still_in_a_transaction_holds_others_up_for_a_while_only(url: str) -> None:
    stuck, released = threading.Event(), threading.Event()

    def stand_still(connection: Connection) -> None:
        put(connection, 1)
        stuck.set()
        released.wait(60)
        put(connection, 2)

    with opened(url, stuck_ms=300) as halted, opened(url) as other, ThreadPoolExecutor(1) as pool:
        halt = pool.submit(halted.write, stand_still)
        assert stuck.wait(30)
        began = time.monotonic()
        other.write(put, 3)
        assert time.monotonic() - began >= 0.2
        released.set()
        with pytest.raises(FarmBusy):
            halt.result(30)
        assert other.read(count) == 1


@pytest.mark.fault(40)
def test_who_waits_too_long_for_others_is_told_so(url: str) -> None:
    with opened(url, busy_ms=50) as database, psycopg.connect(libpq(url)) as migration:
        migration.execute("LOCK TABLE database_epochs IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(FarmBusy):
            database.write(put, 1)
        migration.rollback()
        database.write(put, 1)


@pytest.mark.fault(40)
def test_behind_a_held_lock_all_writes_are_refused_in_time_and_not_in_fours(url: str) -> None:
    refused_after_s: list[float] = []

    def ask(began_s: float) -> None:
        with pytest.raises(FarmBusy):
            database.write(put, 1)
        refused_after_s.append(time.monotonic() - began_s)

    with (
        opened(url, busy_ms=1500) as database,
        psycopg.connect(libpq(url)) as other,
        ThreadPoolExecutor(40) as pool,
    ):
        other.execute("LOCK TABLE database_epochs IN EXCLUSIVE MODE")
        list(pool.map(ask, [time.monotonic()] * 40))
        # In fours, the last would be refused after 15 s.
        assert max(refused_after_s) < 10
        other.rollback()
        database.write(put, 1)


def test_readers_wait_for_no_writer(url: str) -> None:
    with opened(url) as database, psycopg.connect(libpq(url)) as writer:
        writer.execute("LOCK TABLE database_epochs IN EXCLUSIVE MODE")
        assert database.read(count) == 0


def libpq(url: str) -> str:
    return url.replace("postgresql+psycopg", "postgresql")


def test_what_takes_too_long_to_read_is_called_off(url: str) -> None:
    def slow(connection: Connection) -> None:
        connection.exec_driver_sql("SELECT pg_sleep(60)")

    with opened(url, read_ms=100) as database:
        with pytest.raises(FarmBusy, match="statement timeout"):
            asyncio.run(database.read_async(slow))
        # What nobody waits for at a screen, a copy say, takes as long as it takes.
        database.read(lambda connection: connection.exec_driver_sql("SELECT pg_sleep(0.5)").all())
        assert asyncio.run(database.read_async(count)) == 0


def test_a_farm_that_starts_waits_for_another_that_migrates(url: str) -> None:
    with (
        opened(url, busy_ms=50) as database,
        psycopg.connect(libpq(url)) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        other.execute("SELECT pg_advisory_xact_lock(8470)")
        starting = pool.submit(upgrade, database.engine)
        with pytest.raises(TimeoutError):
            starting.result(0.3)
        other.rollback()
        starting.result(30)


def driver_of(connection: Connection) -> PGconn:
    raw = connection.connection.driver_connection
    assert isinstance(raw, psycopg.Connection)
    return raw.pgconn


def test_a_read_of_one_statement_takes_three_calls_of_the_server(url: str, tmp_path: Path) -> None:
    path = tmp_path / "calls"
    with opened(url) as database, path.open("w") as file:
        database.read(lambda connection: driver_of(connection).trace(file.fileno()))
        database.read(count)
        database.read(lambda connection: driver_of(connection).untrace())
    asked = re.findall(r'\tF\t\d+\t(?:Query|Parse)\t.*?"(\w*)', path.read_text())
    assert asked == ["BEGIN", "SELECT", "COMMIT"]


def test_a_connection_that_the_server_ended_while_it_was_idle_is_replaced_before_it_is_used(url: str) -> None:
    with opened(url) as database, psycopg.connect(libpq(url), autocommit=True) as stranger:
        for run in (database.read, database.write):
            idle = run(own_backend)
            assert run(own_backend) == idle
            stranger.execute("SELECT pg_terminate_backend(%s, 10000)", [idle])
            assert run(own_backend) != idle


def test_statements_of_reads_stay_prepared(url: str) -> None:
    prepared = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%%FROM artifacts%%'"
    with opened(url) as database:
        for _ in range(10):
            database.read(count)
        assert database.read(lambda connection: connection.exec_driver_sql(prepared).scalar_one()) == 1


def test_a_connection_that_has_read_writes_serializably_and_reads_on_again(url: str) -> None:
    def how(connection: Connection) -> tuple[int, str, str]:
        names = ("transaction_isolation", "transaction_read_only")
        isolation, read_only = (connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in names)
        return own_backend(connection), isolation, read_only

    with opened(url) as database:
        first, written, last = database.read(how), database.write(how), database.read(how)
    assert first[1:] == last[1:] == ("repeatable read", "on")
    assert written[1:] == ("serializable", "off")
    assert first[0] == written[0] == last[0]


def fill(connection: Connection) -> None:
    """Add so many rows that a tenth of them would be dear to read."""
    made = {"digest": "lpad(n::text, 64, '0')", "size_bytes": "n"}
    names = [column.name for column in artifacts.c]
    values = ", ".join(made.get(name, name) for name in names)
    rows = f"SELECT {values} FROM artifacts, generate_series(1, 5000) n"
    connection.exec_driver_sql(f"INSERT INTO artifacts ({', '.join(names)}) {rows}")
    connection.exec_driver_sql("ANALYZE artifacts")


def test_a_prepared_statement_with_a_limit_is_not_planned_at_each_execution(url: str) -> None:
    def asked(connection: Connection) -> list[tuple[str, bool]]:
        query = sa.select(artifacts.c.digest).order_by(artifacts.c.digest)
        for number in range(24):
            assert len(connection.execute(query.offset(number % 2).limit(3)).all()) == 3
        plans = "SELECT statement, generic_plans > 0 FROM pg_prepared_statements ORDER BY statement"
        return [(sql, is_generic) for sql, is_generic in connection.exec_driver_sql(plans) if "LIMIT" in sql]

    with opened(url) as database:
        database.write(put, 0)
        database.write(fill)
        prepared = database.read(asked)
    # One for each offset: the numbers are in the text, for of a parameter a tenth of all rows is assumed.
    assert [is_generic for _, is_generic in prepared] == [True, True], prepared
    assert [sql.split()[-4:] for sql, _ in prepared] == [["LIMIT", "3", "OFFSET", each] for each in "01"]
