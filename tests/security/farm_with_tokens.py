"""A farm with tokens of every role, some rows and no limit of calls, on both of its listeners."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from pydantic import TypeAdapter

from farm.api.app import create_agents_app
from farm.clock import SystemClock
from farm.core.base.ids import digest_of
from farm.core.models.variant import Manifest
from farm.core.operations.role import ROLES_BY_RANK, Role
from farm.database.transaction import bind_tx
from farm.services.access.tokens import issue_access_token
from farm.wire.agents.protocol import Exchange
from farm.wire.documents.access import AccessRequest
from tests.api.routes.test_all_routes import matrix_spec, register_variant
from tests.security.attack.attackers import TokenFarm
from tests.support import fakes
from tests.support.database.migrated_database import put_migrated
from tests.support.farm.http_farm import HttpFarm, http_farm, served
from tests.support.farm.processes import FarmProcess, running_farm
from tests.support.farm.service_fixture import phone

_UP = (sys.executable, "-m", "farm.cli.shell.main", "up", "--no-agent", "--agents-on", "127.0.0.1:0")
#: The calls that a test makes are not what is limited here.
_CALLS_PER_MINUTE = 10**9


@contextmanager
def farm_with_tokens(folder: Path) -> Iterator[tuple[HttpFarm, str, dict[str, str]]]:
    """A farm in this process; the address for agents; a token of each kind."""
    with http_farm(folder, require_tokens=True, calls_per_minute=_CALLS_PER_MINUTE) as farm:
        tokens = {str(role): farm.access_token(role, f"the-{role}") for role in ROLES_BY_RANK}
        agent = farm.enroll()
        agent.exchange(devices=(phone("phone-1"),))
        farm.http.headers["Authorization"] = f"Bearer {tokens[Role.ADMIN]}"
        register_variant(farm).raise_for_status()
        farm.http.post("/api/v1/matrices", json={"spec": matrix_spec()}).raise_for_status()
        tokens[Role.AGENT] = agent.headers["Authorization"].removeprefix("Bearer ")
        with served(create_agents_app(farm.context), lifespan="off") as (agents_url, _):
            yield farm, agents_url, tokens


@contextmanager
def farm_process_with_tokens(folder: Path) -> Iterator[TokenFarm]:
    """A farm as a process of its own, on SQLite, with a variant, a matrix and two hosts."""
    limits = {"FARM_REQUIRE_TOKENS": "1", "FARM_CALLS_PER_MINUTE": str(_CALLS_PER_MINUTE)}
    farm = FarmProcess(folder / "farm", command=_UP, environment=limits)
    put_migrated(farm.database_path)
    tokens, others = (
        {str(role): _token(farm, role, f"{which}-{role}") for role in ROLES_BY_RANK}
        for which in ("the", "other")
    )
    with running_farm(farm), httpx.Client(base_url=farm.url, trust_env=False, timeout=60) as http:
        http.headers["Authorization"] = f"Bearer {tokens[Role.ADMIN]}"
        tokens[Role.AGENT] = _enroll(http, farm.join_token(), "bench-1")
        others[Role.AGENT] = _enroll(http, farm.join_token(), "other-host")
        _submit_something(http)
        yield TokenFarm(
            url=farm.url,
            agents_url=_answer(http.get("/api/v1/farm"))["agents_url"],
            description=_answer(http.get("/openapi.json")),
            tokens=tokens,
            tokens_of_others=others,
        )


def _token(farm: FarmProcess, role: Role, name: str) -> str:
    request = AccessRequest(name=name, role=role)
    write = bind_tx(issue_access_token, now=SystemClock().now(), actor="user:root")
    return farm.database.write(write, request).token


def _enroll(http: httpx.Client, join_token: str, host: str) -> str:
    """Return the credential of a new host; it has a session and a device."""
    enrollment = {"host": host, "join_token": join_token}
    credential: str = _answer(http.post("/api/v1/agent/enroll", json=enrollment))["credential"]
    headers = {"Authorization": f"Bearer {credential}", "Content-Type": "application/json"}
    opening = {"boot_id": "boot", "agent_version": "test"}
    session = _answer(http.post("/api/v1/agent/sessions", json=opening, headers=headers))["session_id"]
    said = Exchange(seq=1, devices=(phone(f"phone-of-{host}"),)).model_dump_json()
    _answer(http.post(f"/api/v1/agent/sessions/{session}/exchange", content=said, headers=headers))
    return credential


def _submit_something(http: httpx.Client) -> None:
    for precision in ("float32", "int8-core"):
        manifest, content = fakes.stand_in_model(precision)
        http.put(f"/api/v1/blobs/{digest_of(content)}", content=content).raise_for_status()
        document = {"manifest": TypeAdapter(Manifest).dump_python(manifest, mode="json")}
        _answer(http.post("/api/v1/variants", json=document))
    _answer(http.post("/api/v1/matrices", json={"spec": fakes.matrix_spec()}))


def _answer(response: httpx.Response) -> Any:
    assert response.is_success, response.text
    return response.json()
