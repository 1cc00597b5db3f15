"""The wall clock of a real farm or agent is set: its duties go on, nothing ends, and the farm says so."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.operations.alarm import AlarmKind
from farm.database.tables import attempts, devices, hosts, jobs, leader_leases
from tests.support.database.postgres import PostgresServer
from tests.support.database.sample_rows import DEVICE, HOST, PHONE
from tests.support.fakes import matrix_spec, stand_in_model, steady_program
from tests.support.farm.processes import (
    AgentProcess,
    FarmProcess,
    eventually,
    running_agent,
    running_farm,
    running_phones,
)
from tests.support.faults.wall_clock import WallClock
from tests.support.invariants.invariants import check_invariants

pytestmark = pytest.mark.long

HOUR_S, DAY_S, YEAR_S = 3600.0, 86_400.0, 365 * 86_400.0
#: Longer than an agent's calls are apart; a host is silent later.
_PAUSE_S = 12.0
#: A busy machine may take long for an answer.
_ANSWER_S = 60.0
_SETTINGS = {"FARM_REAP_EVERY_S": "0.2"}


@contextmanager
def farm_on(folder: Path, clock: WallClock, **options: Any) -> Iterator[FarmProcess]:
    farm = FarmProcess(folder, environment={**clock.environment, **_SETTINGS}, **options)
    with running_farm(farm):
        yield farm


def lease_end(farm: FarmProcess) -> datetime:
    with farm.database.engine.connect() as connection:
        end = connection.execute(sa.select(leader_leases.c.expires_at)).scalar()
    return end or datetime.min.replace(tzinfo=UTC)


def check_duties_go_on(farm: FarmProcess) -> None:
    before = lease_end(farm)
    eventually(lambda: lease_end(farm) > before, "the duties go on", within_s=120)


def reserve_phone(connection: Connection) -> None:
    now = datetime.now(UTC)
    host = {"host_id": HOST, "state": "active", "auto_admit": True, "credential_hash": "x", "created_at": now}
    connection.execute(hosts.insert().values(host))
    until = {"reserved_by": "kim", "reserved_until": now + timedelta(hours=1)}
    connection.execute(devices.insert().values({**DEVICE, **until, "device_id": PHONE}))


def is_reserved(farm: FarmProcess) -> bool:
    with farm.database.engine.connect() as connection:
        return connection.execute(sa.select(devices.c.reserved_by)).scalar_one() == "kim"


def health(farm: FarmProcess) -> httpx.Response:
    return httpx.get(f"{farm.url}/api/v1/health", timeout=_ANSWER_S)


def open_alarms(farm: FarmProcess) -> list[AlarmKind]:
    with farm.client() as client:
        return [alarm.kind for alarm in client.alarms()]


@pytest.mark.fault(50)
@pytest.mark.parametrize("step_s", [-HOUR_S, HOUR_S, YEAR_S])
def test_the_periodic_work_of_a_farm_goes_on_and_a_reservation_lasts_when_its_clock_is_set(
    tmp_path: Path, step_s: float
) -> None:
    clock = WallClock(tmp_path / "clock")
    with farm_on(tmp_path / "farm", clock) as farm:
        check_duties_go_on(farm)
        farm.database.write(reserve_phone)
        clock.set(step_s)
        eventually(lambda: open_alarms(farm) == [AlarmKind.CLOCK_STEPPED], "the alarm is raised")
        # One that is deaf until its clock is where it was does not answer in an hour.
        answer = health(farm)
        assert (answer.status_code, answer.json()["status"]) == (200, "ok")
        assert ("back" if step_s < 0 else "ahead") in answer.json()["clock"]
        check_duties_go_on(farm)
        assert abs(lease_end(farm) - datetime.now(UTC)) < timedelta(minutes=1)
        assert is_reserved(farm)
        clock.set(0)
        eventually(lambda: open_alarms(farm) == [], "the alarm is over")
        check_duties_go_on(farm)
        assert health(farm).json() == {"status": "ok"}


@pytest.mark.invariant("I11")
@pytest.mark.fault(50)
@pytest.mark.parametrize("ahead_s", [-HOUR_S, HOUR_S])
def test_of_two_processes_the_one_whose_clock_is_off_dates_nothing(
    postgres: PostgresServer, tmp_path: Path, ahead_s: float
) -> None:
    right, off = WallClock(tmp_path / "right"), WallClock(tmp_path / "off", ahead_s=ahead_s)
    with ExitStack() as stack:
        name = stack.enter_context(postgres.database())
        shared = {"database_url": postgres.url(name), "blobs": tmp_path / "blobs"}
        good = stack.enter_context(farm_on(tmp_path / "1", right, **shared))
        bad = stack.enter_context(farm_on(tmp_path / "2", off, **shared))
        assert health(good).status_code == 200
        assert health(bad).status_code == 503
        refused = httpx.post(f"{bad.url}/api/v1/tokens", json={"auto_admit": True}, timeout=_ANSWER_S)
        assert (refused.status_code, refused.json()["code"]) == (503, "farm.busy")
        # One that agreed with the database when it began stays right when its machine's clock is set.
        right.set(ahead_s)
        eventually(lambda: "clock" in health(good).json(), "it says so")
        check_duties_go_on(good)
        assert abs(lease_end(good) - datetime.now(UTC)) < timedelta(minutes=1)


def host_alarms(farm: FarmProcess) -> list[tuple[AlarmKind, str]]:
    with farm.client() as client:
        return [(alarm.kind, alarm.subject_id) for alarm in client.alarms()]


def clock_ahead_s(farm: FarmProcess) -> float | None:
    """As the farm knows it of its only host."""
    with farm.client() as client:
        return client.hosts()[0].clock_ahead_s


@pytest.mark.fault(49)
@pytest.mark.parametrize("ahead_s", [-86_400.0, 86_400.0])
def test_a_host_whose_clock_is_off_works_as_any_and_its_alarm_ends_with_the_difference(
    tmp_path: Path, ahead_s: float
) -> None:
    clock = WallClock(tmp_path / "clock", ahead_s=ahead_s)
    with running_farm(FarmProcess(tmp_path / "farm", environment=_SETTINGS)) as farm:
        for precision in ("float32", "int8-core"):
            farm.register_model(*stand_in_model(precision))
        farm.register_program(steady_program(0.05))
        with (
            running_phones(1, tmp_path / "phones") as phones,
            running_agent(
                AgentProcess(farm, tmp_path / "agent", phones, host="bench-1", environment=clock.environment)
            ) as agent,
        ):
            alarm = (AlarmKind.CLOCK_STEPPED, "bench-1")
            eventually(lambda: host_alarms(farm) == [alarm], "the alarm is raised")
            assert clock_ahead_s(farm) == pytest.approx(ahead_s, abs=30)
            farm.await_phones(phones)
            view = farm.await_matrix(farm.submit(matrix_spec(rounds=2)), within_s=120)
            assert view.jobs_by_outcome == {"succeeded": 4}
            # Set while it runs, and nothing is dated by that before it has lasted: the farm hears of no other
            # difference.
            clock.set(0)
            agent.check_alive()
            assert host_alarms(farm) == [alarm]
            agent.stop()
            agent.spawn()
            eventually(lambda: host_alarms(farm) == [], "the alarm is over")
            assert clock_ahead_s(farm) == pytest.approx(0, abs=30)
        check_invariants(farm.database_path)


def attempt_states(farm: FarmProcess) -> list[tuple[int, str]]:
    """The job and the state of each attempt of a matrix."""
    wanted = (
        sa.select(attempts.c.job_id, attempts.c.state)
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .where(jobs.c.matrix_id.is_not(None))
        .order_by(attempts.c.attempt_id)
    )
    with farm.database.engine.connect() as connection:
        return [(row.job_id, row.state) for row in connection.execute(wanted)]


def await_run(farm: FarmProcess, after: int) -> None:
    """Wait until more than so many runs have begun, and the last is measuring."""

    def is_measuring() -> bool:
        states = attempt_states(farm)
        return len(states) > after and states[-1][1] == "measuring"

    eventually(is_measuring, f"a run after {after} others", within_s=120)


@pytest.mark.fault(49)
@pytest.mark.timeout(600)
def test_a_clock_that_is_set_during_runs_and_a_pause_cost_an_agent_no_run(tmp_path: Path) -> None:
    """As a laptop that is suspended, whose clock NTP puts right when it wakes up."""
    clock = WallClock(tmp_path / "clock")
    with running_farm(FarmProcess(tmp_path / "farm", environment=_SETTINGS)) as farm:
        for precision in ("float32", "int8-core"):
            farm.register_model(*stand_in_model(precision))
        farm.register_program(steady_program(2.0))
        with (
            running_phones(1, tmp_path / "phones") as phones,
            running_agent(
                AgentProcess(farm, tmp_path / "agent", phones, host="bench-1", environment=clock.environment)
            ) as agent,
        ):
            farm.await_phones(phones)
            matrix_id = farm.submit(matrix_spec(rounds=3))
            for done, ahead_s in enumerate((DAY_S, -DAY_S, 0.0)):
                await_run(farm, done)
                clock.set(ahead_s)
            await_run(farm, 3)
            agent.send(signal.SIGSTOP)
            clock.set(HOUR_S)
            time.sleep(_PAUSE_S)
            agent.send(signal.SIGCONT)
            view = farm.await_matrix(matrix_id, within_s=200)
            # A clock that was set dates nothing before that has lasted: the farm hears of no difference.
            assert host_alarms(farm) == []
            agent.check_alive()
            assert view.jobs_by_outcome == {"succeeded": 6}
            states = attempt_states(farm)
            assert len(states) == len({job_id for job_id, _ in states}) == 6, "no run was repeated"
        check_invariants(farm.database_path)
