"""Matrices grow in the farm's process, over real HTTP: after a report, and after a process that died."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from structlog.testing import capture_logs
from structlog.typing import EventDict

from farm.api.agents import growth_worker
from farm.core.errors import FarmBusy
from farm.core.runs.evidence import Evidence
from farm.services.results.round_growth import grow_next
from farm.wire.agents.protocol import Assignment, ExchangeAnswer
from tests.api.routes.test_agents import healthy_phone
from tests.api.routes.test_all_routes import matrix_spec, register_variant
from tests.support.farm.http_farm import HttpAgent, HttpFarm, either_database, http_farm
from tests.support.farm.processes import eventually
from tests.support.farm.service_fixture import ended, phone, plan_of, report_body, torch_output

#: An exchange is held for so long; when further rounds are queued, it ends at once.
_HELD_S = 1.0
#: Three cells in five rounds; and more than all rounds of two matrices.
_FIRST_STARTS, _MOST_STARTS = 15, 60
#: By `warmup`: its times in microseconds, by turns. The first differs from the baseline in each
#: round, the second in none that can be known.
_TIMES_US = {0: (1000.0, 1000.0), 1: (2000.0, 2001.0), 2: (700.0, 1400.0)}
#: The baseline and what is not decided have all rounds; what is decided after five has those.
_JOBS = {"warmup=0": 8, "warmup=1": 5, "warmup=2": 8}


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    with either_database(request) as config:
        yield config


@pytest.fixture
def logged() -> Iterator[list[EventDict]]:
    with capture_logs() as entries:
        yield entries


class GrowingMatrix:
    """A matrix of three cells on one device, and an agent that runs it."""

    def __init__(self, farm: HttpFarm, agent: HttpAgent, devices: tuple[Any, ...]) -> None:
        self.farm, self.agent, self.devices = farm, agent, devices
        spec = matrix_spec(
            axes={**matrix_spec()["axes"], "warmup": [0, 1, 2]},
            baseline={"warmup": 0},
            rounds={"at_least": 5, "at_most": 8, "until": "decided"},
        )
        answer = farm.http.post("/api/v1/matrices", json={"spec": spec})
        assert answer.status_code == 201, answer.text
        self.matrix_id = answer.json()["matrix_id"]
        self.starts: Counter[int] = Counter()

    def run(self, is_over: Callable[[], bool]) -> None:
        """Run what there is to run, held while there is nothing, until something is so."""
        while not is_over():
            answer = self.agent.exchange(devices=self.devices, wait_s=_HELD_S)
            assert answer.status_code == 200, answer.text
            for assignment in ExchangeAnswer.model_validate_json(answer.content).assignments:
                path = f"/attempts/{assignment.attempt_id}/report"
                assert (
                    self.agent.post(path, content=report_body(self.evidence(assignment))).status_code == 200
                )
                self.devices = (phone("phone-1").model_copy(update={"cleaned_fence": assignment.fence}),)
            assert self.starts.total() <= _MOST_STARTS

    def run_first_rounds(self) -> None:
        """Run the rounds of the submission."""
        self.run(lambda: self.starts.total() == _FIRST_STARTS)

    def is_finished(self) -> bool:
        return self.state() == "finished"

    def evidence(self, assignment: Assignment) -> Evidence:
        plan = plan_of(assignment)
        warmup = int(plan.settings["warmup"])
        self.starts[warmup] += 1
        us = _TIMES_US[warmup][self.starts[warmup] % 2]
        return ended(assignment, torch_output([us] * int(plan.settings["iter"])))

    def jobs(self) -> dict[str, int]:
        query = sa.text(
            "SELECT c.label FROM jobs j JOIN cells c ON c.cell_id = j.cell_id WHERE j.matrix_id = :matrix"
        )

        def read(connection: Connection) -> dict[str, int]:
            return Counter(connection.execute(query, {"matrix": self.matrix_id}).scalars())

        return self.farm.context.database.read(read)

    def state(self) -> str:
        view: dict[str, Any] = self.farm.http.get(f"/api/v1/matrices/{self.matrix_id}").json()
        return str(view["state"])


def growing(farm: HttpFarm) -> GrowingMatrix:
    register_variant(farm)
    agent = farm.enroll()
    return GrowingMatrix(farm, agent, healthy_phone(agent))


def remind(farm: HttpFarm) -> None:
    """Do what the leader does every few seconds."""
    farm.loop.call_soon_threadsafe(farm.context.to_grow.set)


def test_an_agent_is_given_further_rounds_right_after_the_last_report(
    tmp_path: Path, database: dict[str, Any]
) -> None:
    with http_farm(tmp_path / "data", **database) as farm:
        matrix = growing(farm)
        # Nobody reminds the worker here: reports do, and the agent's held exchange ends with new jobs.
        matrix.run(matrix.is_finished)
        assert matrix.jobs() == _JOBS
        assert matrix.starts.total() == sum(_JOBS.values())


def test_what_a_process_left_when_it_died_is_done_by_the_next(
    tmp_path: Path, database: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with http_farm(tmp_path / "data", **database) as farm:
        matrix = growing(farm)
        with monkeypatch.context() as patch:
            patch.setattr(growth_worker, "grow_matrices", _never)
            matrix.run_first_rounds()
        assert matrix.state() == "running"
    with http_farm(tmp_path / "data", **database) as farm:
        matrix.farm = matrix.agent.farm = farm
        remind(farm)
        eventually(lambda: matrix.jobs() == _JOBS, "it grew")
        matrix.run(matrix.is_finished)
        assert matrix.jobs() == _JOBS
        assert matrix.starts.total() == sum(_JOBS.values())


def _failures(logged: list[EventDict]) -> list[EventDict]:
    return [entry for entry in logged if entry["event"] in ("growth_interrupted", "growth_failed")]


async def _never(*_: object) -> None:
    """Stand for a process that dies before its worker has its turn."""


@pytest.mark.parametrize("failure", [FarmBusy("the database is busy"), RuntimeError("a defect")])
def test_the_worker_goes_on_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: list[EventDict], failure: Exception
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise failure

    with http_farm(tmp_path / "data") as farm:
        matrix = growing(farm)
        with monkeypatch.context() as patch:
            patch.setattr(growth_worker, "grow_next", failing)
            matrix.run_first_rounds()
            eventually(lambda: _failures(logged), "it failed")
        remind(farm)
        matrix.run(matrix.is_finished)
        assert matrix.jobs() == _JOBS


def test_a_matrix_that_cannot_grow_delays_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: list[EventDict]
) -> None:
    with http_farm(tmp_path / "data") as farm:
        first = growing(farm)
        grow: Callable[..., None] = grow_next

        def grow_others(tx: Any, due: Any) -> None:
            if due.matrix_id == first.matrix_id:
                raise RuntimeError("a defect")
            grow(tx, due)

        monkeypatch.setattr(growth_worker, "grow_next", grow_others)
        second = GrowingMatrix(farm, first.agent, first.devices)
        second.run(second.is_finished)
        assert (first.state(), second.state()) == ("running", "finished")
        assert second.jobs() == _JOBS
        assert {entry["matrix_id"] for entry in _failures(logged)} == {first.matrix_id}
