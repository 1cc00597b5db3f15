"""Every call that the OpenAPI description tells of, with what it allows and with what it does not.

Schemathesis makes the requests, the same ones in every run. Whatever they are, nothing fails but by a problem
document.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from farm.api.app import ROUTERS, create_agents_app
from farm.api.http.openapi import roles_by_route
from farm.wire.base import Problem
from tests.api.routes.test_all_routes import matrix_spec, register_variant
from tests.support.farm.http_farm import HttpAgent, HttpFarm, either_database, http_farm, served
from tests.support.farm.service_fixture import phone
from tests.support.invariants.invariants import check_engine
from tests.support.session.example_count import examples

# A worker that runs none of these tests does not load it.
if TYPE_CHECKING:
    import schemathesis
    from schemathesis.schemas import BaseSchema

#: Requests as described, and others: the values of Schemathesis's GenerationMode.
MODES = "positive", "negative"
#: Of each kind: requests as described, and requests that are not.
EXAMPLES = examples(1, 8)


def cases(calls: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Both kinds of each call, but where nothing can be wrong about asking."""
    harmless = "/api/v1/health", "/api/v1/sign-in/device"
    return [
        (method, path, mode)
        for method, path in sorted(calls)
        for mode in MODES
        if path not in harmless or mode != "negative"
    ]


def is_for_agents(call: tuple[str, str]) -> bool:
    """Whether the listener for agents has it, too."""
    method, path = call
    return path.startswith(("/api/v1/agent/", "/api/v1/health")) or (method == "GET" and "/blobs/" in path)


ALL = cases(roles_by_route(ROUTERS))
FOR_AGENTS = cases(filter(is_for_agents, roles_by_route(ROUTERS)))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def farm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    """A farm with a phone, a variant and a matrix, so that numbers may mean something."""
    folder = tmp_path_factory.mktemp("farm")
    with either_database(request) as database, http_farm(folder, **database) as served:
        register_variant(served)
        served.enroll("bench-1").exchange(devices=(phone("phone-1"),))
        served.http.post("/api/v1/matrices", json={"spec": matrix_spec()}).raise_for_status()
        yield served
        check_engine(served.context.database.engine)


@pytest.fixture(scope="module")
def agent(farm: HttpFarm) -> HttpAgent:
    """Another host than the phone's."""
    return farm.enroll("bench-2")


@pytest.fixture(scope="module")
def schema(farm: HttpFarm) -> "BaseSchema":
    import schemathesis

    return schemathesis.openapi.from_dict(farm.app.openapi())


@pytest.fixture(scope="module")
def agents_url(farm: HttpFarm) -> Iterator[str]:
    """Where agents of other machines call."""
    with served(create_agents_app(farm.context), lifespan="off") as (url, _):
        yield url


def name(part: object) -> str:
    return str(part).removeprefix("/api/v1")


@pytest.mark.parametrize(("method", "path", "mode"), ALL, ids=name)
def test_a_call_is_answered_as_described_or_refused_with_a_problem_document(
    farm: HttpFarm, agent: HttpAgent, schema: "BaseSchema", method: str, path: str, mode: str
) -> None:
    shown = agent.headers["Authorization"] if path.startswith("/api/v1/agent/") else None
    try_out(strategy_of(schema, method, path, mode), farm.url, shown)


@pytest.mark.parametrize(("method", "path", "mode"), FOR_AGENTS, ids=name)
def test_so_it_is_where_agents_call(
    agents_url: str, agent: HttpAgent, schema: "BaseSchema", method: str, path: str, mode: str
) -> None:
    strategy = strategy_of(schema, method, path, mode)
    try_out(strategy, agents_url, agent.headers["Authorization"])


def strategy_of(
    schema: "BaseSchema", method: str, path: str, mode: str
) -> "SearchStrategy[schemathesis.Case]":
    from schemathesis.generation import GenerationMode

    return schema[path][method].as_strategy(generation_mode=GenerationMode(mode))


def try_out(strategy: "SearchStrategy[schemathesis.Case]", url: str, shown: str | None) -> None:
    """Send some of what can be sent, the same in every run."""

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def answered(case: "schemathesis.Case") -> None:
        check(case, case.call(base_url=url, headers=as_sent(case, shown)))

    answered()


def as_sent(case: "schemathesis.Case", shown: str | None) -> dict[str, str | None]:
    """The credential is right, which other tests' are not; and nobody is kept waiting."""
    for part in (case.body, case.query):
        if isinstance(part, dict) and isinstance(part.get("wait_s"), int | float):
            part["wait_s"] = min(part["wait_s"], 0)
    return {"Authorization": shown}


def check(case: "schemathesis.Case", answer: "schemathesis.Response") -> None:
    """An answer that the description allows; a refusal says why and what to do."""
    assert answer.status_code < 500, f"{answer.status_code} {answer.text[:500]}\n{case.as_curl_command()}"
    if answer.status_code < 400:
        from schemathesis.specs.openapi.checks import response_schema_conformance

        case.validate_response(answer, checks=[response_schema_conformance])
    elif case.method != "HEAD":
        assert answer.headers["content-type"] == ["application/problem+json"]
        problem = Problem.model_validate_json(answer.content)
        assert problem.status == answer.status_code
        assert problem.code
        assert problem.hint
