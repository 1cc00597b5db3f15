"""Two farm processes on one PostgreSQL; one is killed in the middle of a matrix: nothing lost, or doubled."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from agents.virtual.pool import VirtualDeviceHandle
from farm.core.runs.measurement import Outcome
from farm.database.tables import leader_leases, measurements
from tests.support.database.postgres import PostgresServer
from tests.support.fakes import STARTS, matrix_spec, stand_in_model, steady_program
from tests.support.farm.processes import (
    AgentProcess,
    FarmProcess,
    eventually,
    running_agent,
    running_farm,
    running_phones,
)
from tests.support.faults.tcp_forwarder import forwarding
from tests.support.invariants.invariants import check_engine

ROUNDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """Two farm processes, and an agent that calls whichever of them takes its calls."""

    first: FarmProcess
    second: FarmProcess
    agent: AgentProcess
    phones: list[VirtualDeviceHandle]


@pytest.fixture
def lab(postgres: PostgresServer, tmp_path: Path) -> Iterator[Lab]:
    with ExitStack() as stack:
        # Empty: both find that they have to migrate it.
        name = stack.enter_context(postgres.database())
        first, second = (
            FarmProcess(tmp_path / name_of, database_url=postgres.url(name), blobs=tmp_path / "blobs")
            for name_of in ("first", "second")
        )
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(stack.enter_context, [running_farm(first), running_farm(second)]))
        phones = stack.enter_context(running_phones(2, tmp_path / "phones"))
        first.register_program(steady_program(0.05))
        for precision in ("float32", "int8-core"):
            first.register_model(*stand_in_model(precision))
        balancer = stack.enter_context(forwarding(first.port, second.port))
        agent = AgentProcess(first, tmp_path / "agent", phones, host="bench-1")
        agent.command = [balancer.url if word == first.url else word for word in agent.command]
        stack.enter_context(running_agent(agent))
        second.await_phones(phones)
        yield Lab(first=first, second=second, agent=agent, phones=phones)
        check_engine(second.database.engine)


def finished(farm: FarmProcess) -> int:
    wanted = sa.select(sa.func.count()).select_from(measurements)
    with farm.database.engine.connect() as connection:
        return connection.execute(wanted).scalar_one()


def holder(farm: FarmProcess) -> str:
    with farm.database.engine.connect() as connection:
        return str(connection.execute(sa.select(leader_leases.c.holder)).scalar_one())


def starts(lab: Lab) -> list[tuple[str, str]]:
    """Every start of the program, by phone and fencing token."""
    noted = [(phone.serial, phone.state.glob(STARTS)) for phone in lab.phones]
    return [
        (serial, token) for serial, paths in noted for path in paths for token in path.read_text().split()
    ]


@pytest.mark.timeout(240)
@pytest.mark.invariant("I1", "I2", "I4", "I10")
@pytest.mark.fault(35)
def test_a_matrix_outlives_the_farm_process_that_its_agent_called(lab: Lab) -> None:
    matrix_id = lab.first.submit(matrix_spec(rounds=ROUNDS))
    eventually(lambda: finished(lab.second) >= 4, "some of it is done", within_s=120)
    lab.first.kill()
    done = finished(lab.second)
    view = lab.second.await_matrix(matrix_id, within_s=120)
    assert done < view.jobs, "it was in the middle"
    with lab.second.client() as client:
        outcomes = Counter(job.outcome for job in client.jobs(matrix_id))
    assert outcomes == {Outcome.SUCCEEDED: 2 * 2 * ROUNDS}
    assert finished(lab.second) == 2 * 2 * ROUNDS
    assert max(Counter(starts(lab)).values()) == 1, "no attempt was started twice"
    eventually(lambda: f":{lab.second.pid}:" in holder(lab.second), "the one that is left has the duties")
