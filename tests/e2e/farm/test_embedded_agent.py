"""The embedded agent of `farm up --virtual` talks HTTP like any other."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from farm.api.routes import agents as agent_routes
from farm.core.base.ids import MatrixId
from farm.wire.documents.devices import OperatorRequest
from tests.support.fakes import matrix_spec, stand_in_model, waiting_program
from tests.support.farm.processes import FarmProcess, eventually, running_farm_with_agent
from tests.support.invariants.invariants import check_invariants

_FARM = (sys.executable, str(Path(__file__).with_name("request_logging_farm.py")))
_UP = (sys.executable, "-m", "farm.cli.shell.main", "up", "--virtual", "1")
_BLOB = "GET /api/v1/blobs/{digest}"
#: For reports that wait for their turn together, which those of one phone never do.
_SEVERAL = "/api/v1/agent/attempts/reports"
_ATTEMPTS = "SELECT count(*) FROM attempts JOIN jobs USING (job_id)"


@pytest.mark.long
def test_the_embedded_agent_uses_every_route_of_the_agent_protocol(tmp_path: Path) -> None:
    with running_farm_with_agent(FarmProcess(tmp_path / "farm", command=_FARM)) as farm:
        with farm.client() as client:
            eventually(lambda: [device.health for device in client.devices()] == ["good"], "it is checked")
        counts = _requests(farm)
    protocol = {_BLOB, *(f"POST {route.path}" for route in _routes())}
    assert set(counts) == protocol
    once = ["enroll", "sessions", "attempts/{attempt_id}/report"]
    assert [counts[f"POST /api/v1/agent/{path}"] for path in once] == [1, 1, 1]
    # Of a check: its program and its payload.
    assert counts[_BLOB] == 2
    assert counts["POST /api/v1/agent/sessions/{session_id}/exchange"] >= 3


@pytest.mark.long
def test_a_join_token_is_made_only_for_an_agent_that_the_farm_does_not_know(tmp_path: Path) -> None:
    farm = FarmProcess(tmp_path / "farm", command=_UP)
    with running_farm_with_agent(farm):
        _await_agent(farm, sessions=1)
        assert _tokens(farm) == 1
        farm.stop()
        farm.start()
        _await_agent(farm, sessions=2)
        assert _tokens(farm) == 1
        farm.stop()
        # A database made anew, and an agent that was enrolled with the old one.
        farm.database.close()
        for path in (*farm.folder.glob("farm.sqlite3*"), farm.folder / "blobs" / "database-epoch"):
            path.unlink()
        farm.start()
        _await_agent(farm, sessions=1)
        assert _tokens(farm) == 1


@pytest.mark.long
def test_a_farm_whose_embedded_host_is_retired_goes_on_and_its_next_start_joins_again(tmp_path: Path) -> None:
    farm = FarmProcess(tmp_path / "farm", command=_UP)
    with running_farm_with_agent(farm):
        _await_agent(farm, sessions=1)
        with farm.client() as client:
            client.change_host(client.hosts()[0].host_id, "retire", OperatorRequest(by="op", reason="moved"))
            eventually(
                lambda: "embedded_agent_ended" in farm.log.read_text(), "its agent has ended", within_s=180
            )
            assert client.hosts()
        farm.stop()
        farm.start()
        _await_agent(farm, sessions=2)


@pytest.mark.fault(24, 36)
def test_a_farm_that_is_stopped_in_a_run_says_where_it_goes_on_and_takes_it_over_after_its_restart(
    tmp_path: Path,
) -> None:
    farm, go = FarmProcess(tmp_path / "farm", command=_UP), tmp_path / "go"
    with running_farm_with_agent(farm):
        matrix_id = _in_a_run(farm, go)
        farm.stop()
        assert "1 run continues on virtual-" in farm.tail()
        farm.start()
        go.touch()
        assert farm.await_matrix(matrix_id, within_s=120).jobs_by_outcome == {"succeeded": 1}
        assert _count(farm, f"{_ATTEMPTS} WHERE kind <> 'check'") == 1


@pytest.mark.long
@pytest.mark.invariant("I8")
@pytest.mark.fault(24)
def test_farm_and_agent_killed_at_once_in_a_run_take_it_over_after_their_restart(tmp_path: Path) -> None:
    farm, go = FarmProcess(tmp_path / "farm", command=_UP), tmp_path / "go"
    with running_farm_with_agent(farm):
        matrix_id = _in_a_run(farm, go)
        farm.kill()
        farm.start()
        go.touch()
        assert farm.await_matrix(matrix_id, within_s=120).jobs_by_outcome == {"succeeded": 1}
        assert _count(farm, f"{_ATTEMPTS} WHERE kind <> 'check'") == 1
        check_invariants(farm.database_path)


def _in_a_run(farm: FarmProcess, go: Path) -> MatrixId:
    """Start a matrix of one job, which ends when the file is there; return it when the phone runs it."""
    with farm.client() as client:
        eventually(lambda: [device.health for device in client.devices()] == ["good"], "it is checked")
    for precision in ("float32", "int8-core"):
        farm.register_model(*stand_in_model(precision))
    farm.register_program(waiting_program(go))
    matrix_id = farm.submit(matrix_spec(rounds=1, exclude=[{"precision": "int8-core"}]))
    measuring = f"{_ATTEMPTS} WHERE attempts.state = 'measuring' AND kind = 'benchmark'"
    eventually(lambda: _count(farm, measuring), "the run has started")
    return matrix_id


def _await_agent(farm: FarmProcess, *, sessions: int) -> None:
    """Returns when the agent of this life is at work, and its token gone."""
    token = farm.folder / "agent" / "join-token"
    eventually(
        lambda: _count(farm, "SELECT count(*) FROM sessions WHERE exchange_seq > 0") == sessions,
        "the agent exchanges",
    )
    eventually(lambda: not token.exists(), "the token is removed")


def _tokens(farm: FarmProcess) -> int:
    return _count(farm, "SELECT count(*) FROM join_tokens")


def _count(farm: FarmProcess, query: str) -> int:
    return int(farm.database.read(lambda connection: connection.exec_driver_sql(query).scalar_one()))


def _requests(farm: FarmProcess) -> Counter[str]:
    """How often each route was called, by method and path; the test's own calls are left out."""
    templates = [_BLOB, *(f"POST {route.path}" for route in _routes())]
    pattern_by_template = {each: re.compile(re.sub(r"\{\w+\}", "[^/]+", each)) for each in templates}
    lines = (farm.folder / "requests.txt").read_text().splitlines()
    return Counter(
        next((name for name, pattern in pattern_by_template.items() if pattern.fullmatch(line)), line)
        for line in lines
        if line != "GET /api/v1/devices"
    )


def _routes() -> list[APIRoute]:
    routes = [route for route in agent_routes.router.routes if isinstance(route, APIRoute)]
    return [route for route in routes if route.path != _SEVERAL]
