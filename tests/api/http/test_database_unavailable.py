"""While PostgreSQL is away every route says so, in words and with a time to try again; then all goes on."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest

from farm.core.errors import Blame
from farm.wire.agents.protocol import Assignment, ExchangeAnswer
from tests.api.routes.test_agents import check_of
from tests.api.routes.test_all_routes import matrix_spec, refused
from tests.support.database.postgres import PostgresServer
from tests.support.farm.http_farm import HttpAgent, HttpFarm, http_farm
from tests.support.farm.processes import eventually
from tests.support.farm.service_fixture import good_evidence, phone, report_body
from tests.support.invariants.invariants import check_engine

_WITHOUT_DATABASE = ("/api/v1/farm", "/api/v1/caller")


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    with postgres.database("migrated") as name:
        yield name


@pytest.fixture
def farm(postgres: PostgresServer, database: str, tmp_path: Path) -> Iterator[HttpFarm]:
    with http_farm(tmp_path / "data", database_url=postgres.url(database)) as served:
        yield served
        check_engine(served.context.database.engine)


@contextmanager
def away(postgres: PostgresServer, database: str) -> Iterator[None]:
    """A database that ends every connection and takes no other."""
    postgres.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
    end = f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{database}'"
    postgres.execute(end)
    try:
        yield
    finally:
        postgres.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")


def says_later(answer: httpx.Response) -> None:
    refused(answer, 503, "farm.busy", Blame.FARM)
    assert int(answer.headers["retry-after"]) >= 1


def every_get(farm: HttpFarm) -> list[str]:
    """Each route that only looks, with something in the place of names; files need no database."""
    paths: dict[str, dict[str, object]] = farm.http.get("/openapi.json").json()["paths"]
    names = ("matrix_id", "job_id", "cell_id", "attempt_id", "device_action_id", "standing_id", "change_id")
    found = [path for path, verbs in paths.items() if "get" in verbs and "/blobs/" not in path]
    for name in names:
        found = [path.replace(f"{{{name}}}", "1") for path in found]
    return [path.replace("{device}", "phone-1") for path in found if path not in _WITHOUT_DATABASE]


@pytest.mark.fault(36, 40)
@pytest.mark.invariant("I17")
def test_every_route_says_try_again_while_the_database_is_away(
    postgres: PostgresServer, database: str, farm: HttpFarm
) -> None:
    agent = farm.enroll()
    check = check_of(agent)
    body = report_body(good_evidence(check))
    with away(postgres, database):
        for path in every_get(farm):
            by = "all" if path.endswith("/groups") else "ann"
            query: dict[str, int | str] = {"matrix_id": 1, "by": by, "after": 0, "selector": "phone-1"}
            answer = farm.http.get(path, params=query)
            assert answer.status_code == 503, (path, answer.text)
            says_later(answer)
        says_later(farm.http.post("/api/v1/matrices", json={"spec": matrix_spec()}))
        says_later(farm.http.post("/api/v1/devices/phone-1/cordon", json={"by": "ann"}))
        says_later(agent.exchange(devices=(phone("phone-1"),)))
        says_later(agent.post(f"/attempts/{check.attempt_id}/report", content=body))
    answer = agent.post(f"/attempts/{check.attempt_id}/report", content=body)
    assert answer.json()["counted"]


@pytest.mark.invariant("I4", "I17")
@pytest.mark.fault(33, 35)
def test_an_agent_that_keeps_trying_while_backends_are_ended_is_recorded_once(
    postgres: PostgresServer, database: str, farm: HttpFarm
) -> None:
    agent = farm.enroll()
    end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
    for name in ("phone-1", "phone-2", "phone-3"):
        postgres.execute(end)
        check = eventually(partial(check_for, agent, name), f"{name} gets its check")
        postgres.execute(end)
        settle = partial(settled, agent, check.attempt_id, report_body(good_evidence(check)))
        assert eventually(settle, "its report is settled") == settle()


def check_for(agent: HttpAgent, name: str) -> Assignment | None:
    """The check of a phone that nobody saw before, once the farm answers."""
    answer = agent.exchange(devices=(phone(name),))
    if answer.status_code == 503:
        return None
    found = ExchangeAnswer.model_validate_json(answer.content).assignments
    return next(each for each in found if each.device_id == name)


def settled(agent: HttpAgent, attempt_id: int, body: bytes) -> dict[str, object] | None:
    answer = agent.post(f"/attempts/{attempt_id}/report", content=body)
    found: dict[str, object] = answer.json()
    return found if answer.status_code == 200 else None
