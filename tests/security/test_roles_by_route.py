"""Each call of the description, on both listeners, by everyone: let in or refused as its roles say."""

import re
from collections.abc import Iterator

import pytest

from tests.security.farm_with_tokens import farm_with_tokens
from tests.support.farm.http_farm import HttpFarm

_ENTRANCES = ("people", "agents")
_NOBODY = (None, "bfu_guessed", "bfh_guessed")
Doors = tuple[HttpFarm, dict[str, str], dict[str, str]]


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with farm_with_tokens(tmp_path_factory.mktemp("farm")) as (farm, agents_url, tokens):
        yield farm, {"people": farm.url, "agents": agents_url}, tokens


def roles_by_call(farm: HttpFarm) -> dict[tuple[str, str], list[str] | None]:
    """The least roles of each call, as the description says; None where no one is asked."""
    return {
        (method.upper(), path): call.get("x-roles")
        for path, calls in farm.app.openapi()["paths"].items()
        for method, call in calls.items()
    }


def status(farm: HttpFarm, url: str, call: tuple[str, str], token: str | None) -> int:
    method, path = call
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    address = f"{url}{re.sub(r'{[^}]+}', '1', path)}"
    del farm.http.headers["Authorization"]
    try:
        # What it sends makes no sense, so that nothing is done.
        return farm.http.request(method, address, headers=headers, content=b"{").status_code
    finally:
        farm.http.headers["Authorization"] = "none"


@pytest.mark.parametrize("entrance", _ENTRANCES)
@pytest.mark.invariant("I19")
def test_who_shows_no_valid_token_is_let_into_no_call_that_has_a_role(doors: Doors, entrance: str) -> None:
    farm, urls, _ = doors
    for call, roles in roles_by_call(farm).items():
        for token in _NOBODY:
            if roles is not None and call != ("POST", "/api/v1/agent/enroll"):
                assert status(farm, urls[entrance], call, token) in (401, 404), (call, token)


@pytest.mark.parametrize("role", ["viewer", "submitter", "operator", "admin", "agent"])
@pytest.mark.invariant("I19")
def test_a_role_is_let_into_its_calls_and_no_others(doors: Doors, role: str) -> None:
    farm, urls, tokens = doors
    ranks = ("viewer", "submitter", "operator", "admin")
    for call, roles in roles_by_call(farm).items():
        if roles is None:
            continue
        may = role in roles or (role in ranks and any(rank in roles for rank in ranks[: ranks.index(role)]))
        answered = status(farm, urls["people"], call, tokens[role])
        assert (answered in (401, 403)) is not may, (call, answered)


@pytest.mark.parametrize("role", ["viewer", "submitter", "operator", "admin"])
@pytest.mark.invariant("I19")
def test_the_listener_of_agents_lets_in_no_person_whatever_they_may_do_elsewhere(
    doors: Doors, role: str
) -> None:
    farm, urls, tokens = doors
    for call, roles in roles_by_call(farm).items():
        if roles is not None:
            assert status(farm, urls["agents"], call, tokens[role]) in (401, 404), call
