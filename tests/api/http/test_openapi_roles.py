"""Every call that the OpenAPI description tells of, by people of every role: refused or answered."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from farm.api.app import ROUTERS
from farm.api.http.openapi import roles_by_route
from farm.core.operations.role import ROLES_BY_RANK, Role, is_permitted
from farm.database.transaction import bind_tx
from farm.services.access.tokens import issue_access_token
from farm.wire.documents.access import AccessRequest
from tests.api.http.test_openapi import check
from tests.api.routes.test_all_routes import matrix_spec, register_variant
from tests.support.farm.http_farm import HttpFarm, either_database, http_farm
from tests.support.farm.service_fixture import phone
from tests.support.invariants.invariants import check_engine

# A worker that runs none of these tests does not load it.
if TYPE_CHECKING:
    import schemathesis
    from schemathesis.schemas import BaseSchema

CALLS = sorted(
    (method, path) for method, path in roles_by_route(ROUTERS) if not path.startswith("/api/v1/agent/")
)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def farm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    """With a phone, a variant and a matrix, so that numbers may mean something."""
    folder = tmp_path_factory.mktemp("farm")
    with either_database(request) as database, http_farm(folder, **database) as served:
        register_variant(served)
        served.enroll().exchange(devices=(phone("phone-1"),))
        served.http.post("/api/v1/matrices", json={"spec": matrix_spec()}).raise_for_status()
        yield served
        check_engine(served.context.database.engine)


@pytest.fixture(scope="module")
def bearer_by_role(farm: HttpFarm) -> dict[Role, str]:
    def bearer(role: Role) -> str:
        database, now = farm.context.database, farm.context.clock.now()
        request = AccessRequest(name=f"the-{role}", role=role)
        issued = database.write(bind_tx(issue_access_token, now=now, actor="user:root"), request)
        return f"Bearer {issued.token}"

    return {role: bearer(role) for role in ROLES_BY_RANK}


@pytest.fixture(scope="module")
def schema(farm: HttpFarm) -> "BaseSchema":
    import schemathesis

    return schemathesis.openapi.from_dict(farm.app.openapi())


@pytest.mark.parametrize(("method", "path"), CALLS, ids=lambda part: str(part).removeprefix("/api/v1"))
def test_a_call_by_any_role_is_answered_or_refused_as_its_role_says(
    farm: HttpFarm, bearer_by_role: dict[Role, str], schema: "BaseSchema", method: str, path: str
) -> None:
    needed = roles_by_route(ROUTERS)[method, path]

    @settings(
        max_examples=2,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(schema[path][method].as_strategy())
    def answered(case: "schemathesis.Case") -> None:
        if isinstance(case.query, dict) and "wait_s" in case.query:
            case.query["wait_s"] = 0
        for role, bearer in bearer_by_role.items():
            answer = case.call(base_url=farm.url, headers={"Authorization": bearer})
            check(case, answer)
            if not all(is_permitted(role, each) for each in needed):
                assert answer.status_code in (403, 422), f"{role}: {answer.status_code}"

    answered()


def test_every_route_is_described_and_so_tried(farm: HttpFarm) -> None:
    described = {
        (method.upper(), path) for path, calls in farm.app.openapi()["paths"].items() for method in calls
    }
    assert described == set(roles_by_route(ROUTERS))
