"""Several farm processes on one PostgreSQL: what one is told, agents of another hear of at once."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.errors import Blame
from farm.database.notifications import HostNotification
from tests.api.routes.test_agents import check_of, healthy_phone
from tests.api.routes.test_all_routes import matrix_spec, refused, register_variant
from tests.support.database.postgres import PostgresServer
from tests.support.farm.http_farm import HttpAgent, HttpFarm, http_farm
from tests.support.farm.processes import eventually
from tests.support.farm.service_fixture import good_evidence, phone, report_body
from tests.support.invariants.invariants import check_engine

Farms = tuple[HttpFarm, HttpFarm]

#: An exchange that nobody wakes is held for longer than any of these tests waits for it.
_HELD_S = 30.0
#: To hear of something takes milliseconds; a busy machine may take longer.
_AT_ONCE_S = 25.0


@pytest.fixture
def farms(postgres: PostgresServer, tmp_path: Path) -> Iterator[Farms]:
    """Two processes' worth of a farm, each with a data folder of its own."""
    with postgres.database("migrated") as name:
        shared = {"database_url": postgres.url(name), "blobs_path": tmp_path / "blobs"}
        with http_farm(tmp_path / "1", **shared) as first, http_farm(tmp_path / "2", **shared) as second:
            yield first, second
            check_engine(first.context.database.engine)


@pytest.fixture
def threads(farms: Farms) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool
        for farm in farms:
            farm.stop_holding()


def held_exchange(agent: HttpAgent, threads: ThreadPoolExecutor, **said: object) -> Future[httpx.Response]:
    """An exchange of an agent that was applied, and is held because there is nothing to say."""
    held = threads.submit(agent.exchange, wait_s=_HELD_S, **said)
    applied = "SELECT count(*) FROM sessions WHERE session_id = :session AND exchange_seq = :seq"
    database = agent.farm.context.database

    def is_applied(connection: Connection) -> bool:
        values = {"session": agent.session_id, "seq": agent.seq}
        return bool(connection.execute(sa.text(applied), values).scalar_one())

    eventually(lambda: database.read(is_applied) and agent.farm.context.held_exchanges.count, "it is held")
    assert not held.done()
    return held


def submit(farm: HttpFarm) -> None:
    answer = farm.http.post("/api/v1/matrices", json={"spec": matrix_spec()})
    assert answer.status_code == 201, answer.text


def listeners(connection: Connection) -> list[int]:
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
    return list(connection.execute(sa.text(query)).scalars())


def end_backend(connection: Connection, pid: int) -> None:
    connection.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})


def test_work_submitted_at_one_process_reaches_an_agent_that_another_holds(
    farms: Farms, threads: ThreadPoolExecutor
) -> None:
    first, second = farms
    register_variant(first)
    agent = second.enroll()
    held = held_exchange(agent, threads, devices=healthy_phone(agent))
    submit(first)
    (assignment,) = held.result(_AT_ONCE_S).json()["assignments"]
    assert assignment["plan"]["harness"] == "speed_benchmark_torch"


def test_who_lost_the_connection_that_listens_listens_again(
    farms: Farms, threads: ThreadPoolExecutor
) -> None:
    first, second = farms
    register_variant(first)
    agent = second.enroll()
    devices = healthy_phone(agent)
    database = first.context.database
    before = eventually(lambda: two(database.read(listeners)), "both listen")
    for pid in before:
        database.read(end_backend, pid)
    eventually(lambda: two(set(database.read(listeners)) - set(before)), "both listen again")
    held = held_exchange(agent, threads, devices=devices)
    submit(first)
    assert held.result(_AT_ONCE_S).json()["assignments"]


def test_who_listens_goes_on_whatever_another_program_says_there(
    farms: Farms, threads: ThreadPoolExecutor
) -> None:
    first, second = farms
    register_variant(first)
    agent = second.enroll()
    held = held_exchange(agent, threads, devices=healthy_phone(agent))
    database = first.context.database
    before = eventually(lambda: two(database.read(listeners)), "both listen")

    def say(connection: Connection) -> None:
        for payload in ("", "hello", "[]", "7", '["other", 7]', '["other", [[]]]'):
            connection.exec_driver_sql("SELECT pg_notify('farm_notifications', %s)", (payload,))

    database.write(say)
    assert not held.done()
    submit(first)
    assert held.result(_AT_ONCE_S).json()["assignments"]
    assert set(database.read(listeners)) == set(before)


def test_who_follows_events_behind_a_long_transaction_leaves_others_room_to_read(farms: Farms) -> None:
    farm, _ = farms
    agent = farm.enroll()
    asked: list[str] = []

    @sa.event.listens_for(farm.context.database.engine, "before_cursor_execute")
    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        if "pg_locks" in statement:
            asked.append(statement)

    with farm.context.database.engine.connect().execution_options(farm_writes=True) as long:
        long.exec_driver_sql("UPDATE events SET cause = cause")
        # A transaction that does not end within 2 s.
        assert agent.farm.http.get("/api/v1/events").status_code == 503
    assert 2 < len(asked) < 20


def two(pids: "set[int] | list[int]") -> list[int] | None:
    return list(pids) if len(pids) == 2 else None


def test_a_process_that_did_not_listen_has_its_agents_look_once_it_does(
    farms: Farms, threads: ThreadPoolExecutor
) -> None:
    first, second = farms
    register_variant(first)
    agent = second.enroll()
    held = held_exchange(agent, threads, devices=healthy_phone(agent))
    database = first.context.database
    pids = eventually(lambda: two(database.read(listeners)), "both listen")

    def submit_while_nobody_listens(connection: Connection) -> None:
        for pid in pids:
            end_backend(connection, pid)

    database.read(submit_while_nobody_listens)
    # Most likely before they are back; whoever comes back looks, whatever was said meanwhile.
    submit(first)
    assert held.result(_AT_ONCE_S).json()["assignments"]


def test_a_report_to_one_process_wakes_only_whom_it_concerns(
    farms: Farms, threads: ThreadPoolExecutor
) -> None:
    first, second = farms
    woken: list[HostNotification] = []
    agent, other = first.enroll("bench-1"), second.enroll("bench-2")
    check = check_of(agent)
    held = held_exchange(other, threads)
    first.context.database.on_change = woken.append
    agent.post(f"/attempts/{check.attempt_id}/report", content=report_body(good_evidence(check)))
    assert [wake.hosts for wake in woken] == [frozenset({HostId("bench-1")})]
    assert not held.done()


def test_an_agent_may_go_from_one_process_to_the_other_and_back(farms: Farms) -> None:
    first, second = farms
    agent = first.enroll()
    check = check_of(agent)
    agent.farm = second
    (listed,) = agent.exchange(devices=(phone("phone-1"),)).json()["assignments"]
    assert listed["attempt_id"] == check.attempt_id
    body = report_body(good_evidence(check))
    answers = []
    for farm in (second, first, second):
        agent.farm = farm
        answers.append(agent.post(f"/attempts/{check.attempt_id}/report", content=body).json())
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["counted"]


@pytest.mark.invariant("I10", "I11")
@pytest.mark.fault(49, 50)
def test_a_process_whose_clock_is_off_serves_no_agents_and_says_why(farms: Farms) -> None:
    first, _ = farms
    agent = first.enroll()
    assert agent.exchange().status_code == 200
    first.context.clock_check.ahead = timedelta(seconds=-12)
    answer = agent.exchange()
    problem = refused(answer, 503, "farm.busy", Blame.FARM)
    assert "-12 s" in problem["detail"]
    assert answer.headers["retry-after"]
    first.context.clock_check.ahead = timedelta(seconds=2)
    assert agent.exchange().status_code == 200
