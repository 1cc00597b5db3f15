"""An id that no column of a database can hold is answered like any wrong one, on both listeners."""

import json
import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import pytest
from fastapi.routing import APIRoute

from farm.web.app import PAGE_ROUTERS
from tests.security.attack.fuzzed_calls import CallSource
from tests.security.farm_with_tokens import farm_with_tokens
from tests.support.farm.http_farm import HttpFarm
from tests.support.session.tiers import quick_first

_HUGE = (2**63, -1, 2**64, 10**30, "1e3")
#: In queries and bodies; in a path, every parameter is an id or a name.
_ID = re.compile(r"(?:^|_)ids?$|^(?:after|before|matrix|device|host)$")
#: Of each body that is drawn, other optional parts are left out.
_BODIES = 2
Doors = tuple[HttpFarm, dict[str, str], dict[str, str]]


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with farm_with_tokens(tmp_path_factory.mktemp("farm")) as (farm, agents_url, tokens):
        yield farm, {"people": farm.url, "agents": agents_url}, tokens


Call = tuple[str, str, dict[str, str], bytes | None]


def described_calls(farm: HttpFarm, value: object) -> Iterator[Call]:
    """Yield method, path, query and body of calls, with the value in one place that takes an id or a number.

    Ids in other places are such that exist, so that these are not refused first.
    """
    description = farm.app.openapi()
    for path, calls in description["paths"].items():
        for method, call in calls.items():
            drawn = drawn_bodies(description, call, value)
            for body in drawn or [None]:
                if "{" in path:
                    yield method.upper(), with_ids(path, value), {}, encoded(body)
                for parameter in call.get("parameters", ()):
                    if parameter["in"] == "query" and is_number_or_id(parameter):
                        yield method.upper(), with_own(path), {parameter["name"]: str(value)}, encoded(body)
                if (changed := replaced(body, value)) != body:
                    yield method.upper(), with_own(path), {}, encoded(changed)


def is_number_or_id(parameter: Mapping[str, Any]) -> bool:
    return _ID.search(parameter["name"]) is not None or "integer" in json.dumps(parameter["schema"])


def with_ids(path: str, value: object) -> str:
    return re.sub(r"{[^}]+}", str(value), path)


def with_own(path: str) -> str:
    """Fill a path with what the farm has."""
    return with_ids(path.replace("{device}", "phone-1").replace("{host}", "bench-1"), 1)


def drawn_bodies(description: Mapping[str, Any], call: Mapping[str, Any], value: object) -> list[object]:
    """Return bodies as the description wants them."""
    content = call.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return []
    source = CallSource(description, Random(str(value)))
    return [source.value(content["schema"]) for _ in range(_BODIES)]


def encoded(body: object) -> bytes | None:
    return None if body is None else json.dumps(body).encode()


def replaced(body: object, value: object) -> object:
    if isinstance(body, list):
        return [replaced(part, value) for part in body]
    if isinstance(body, dict):
        return {
            key: value_of_id(part, value) if _ID.search(key) else replaced(part, value)
            for key, part in body.items()
        }
    return body


def value_of_id(part: object, value: object) -> object:
    return [value] if isinstance(part, list) else value


def page_paths() -> list[str]:
    """Return the pages with an id in their path, which the description leaves out."""
    paths = {route.path for router in PAGE_ROUTERS for route in router.routes if isinstance(route, APIRoute)}
    return sorted(path for path in paths if "{" in path)


def status(farm: HttpFarm, method: str, address: str, token: str, **sent: Any) -> int:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return farm.http.request(method, address, headers=headers, **sent).status_code


@pytest.mark.parametrize("entrance", ["people", "agents"])
@pytest.mark.parametrize("value", quick_first(_HUGE, 2))
def test_no_route_fails_at_an_id_that_no_column_holds(doors: Doors, entrance: str, value: object) -> None:
    farm, urls, tokens = doors
    answers = {}
    for method, path, query, body in described_calls(farm, value):
        is_for_agents = entrance == "agents" or path.startswith("/api/v1/agent/")
        token = tokens["agent" if is_for_agents else "admin"]
        answers[method, path, *query, body] = status(
            farm, method, f"{urls[entrance]}{path}", token, params=query, content=body
        )
    assert len(answers) > 80
    assert {call: answer for call, answer in answers.items() if answer >= 500} == {}
    assert 404 in answers.values()


@pytest.mark.parametrize("value", quick_first(_HUGE, 2))
def test_no_page_fails_at_an_id_that_no_column_holds(doors: Doors, value: object) -> None:
    farm, urls, tokens = doors
    paths = page_paths()
    assert len(paths) > 8
    answers = {
        path: status(farm, "GET", f"{urls['people']}{with_ids(path, value)}", tokens["admin"])
        for path in paths
    }
    assert 404 in answers.values()
    assert {path: answer for path, answer in answers.items() if answer >= 500} == {}
