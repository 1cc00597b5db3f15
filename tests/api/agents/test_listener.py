"""The listener for agents on other machines: only what agents call, and nobody without a credential."""

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from farm.api.app import create_agents_app, create_app
from farm.api.context import Context
from farm.api.http.authentication import MAX_ENROLLMENT_BYTES
from farm.api.http.server import bind_socket, serve, url_of
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.base.ids import digest_of
from farm.database.tables import events
from farm.database.transaction import bind_tx
from farm.services.access.enrollment import create_join_token
from farm.store.files.artifacts import put_artifact
from farm.wire.agents.protocol import Exchange, ExchangeAnswer
from tests.support.database.migrated_database import put_migrated
from tests.support.farm.service_fixture import phone

pytestmark = pytest.mark.anyio

CONTENT = b"what a plan names"
DIGEST = digest_of(CONTENT)
#: Every kind of route that people have.
OF_PEOPLE = [
    ("GET", "/api/v1/farm"),
    ("GET", "/api/v1/devices"),
    ("POST", "/api/v1/tokens"),
    ("GET", "/api/v1/tokens"),
    ("POST", "/api/v1/matrices"),
    ("PUT", f"/api/v1/blobs/{DIGEST}"),
    ("GET", "/openapi.json"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Farm:
    """A farm with both listeners."""

    context: Context
    people: httpx.AsyncClient
    agents: httpx.AsyncClient

    async def enroll(self, host: str = "bench-1", headers: Mapping[str, str] | None = None) -> httpx.Response:
        token = self.context.database.write(
            bind_tx(create_join_token, now=self.context.clock.now()), auto_admit=True
        )
        body = {"host": host, "join_token": token}
        return await self.agents.post("/api/v1/agent/enroll", json=body, headers=headers)

    async def credential(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {(await self.enroll()).json()['credential']}"}


@pytest.fixture
async def farm(tmp_path: Path) -> AsyncIterator[Farm]:
    put_migrated(tmp_path / "farm.sqlite3")
    app = create_app(FarmConfig(data_dir=tmp_path), SystemClock())
    with _listener() as for_people, _listener() as for_agents:
        async with serve(app, for_people):
            context: Context = app.state.context
            async with (
                serve(create_agents_app(context), for_agents, lifespan=False),
                httpx.AsyncClient(base_url=url_of(for_people), trust_env=False) as people,
                httpx.AsyncClient(base_url=url_of(for_agents), trust_env=False) as agents,
            ):
                context.blobs.put([CONTENT], DIGEST)
                context.database.write(bind_tx(put_artifact, now=context.clock.now()), DIGEST, len(CONTENT))
                yield Farm(context=context, people=people, agents=agents)


def _listener() -> AbstractContextManager[socket.socket]:
    return bind_socket("127.0.0.1", 0, hint="none")


async def test_an_agent_does_all_its_work_there(farm: Farm) -> None:
    headers = await farm.credential()
    opening = {"boot_id": "boot", "agent_version": "test"}
    session = await farm.agents.post("/api/v1/agent/sessions", json=opening, headers=headers)
    said = Exchange(seq=1, devices=(phone("phone-1"),)).model_dump_json()
    path = f"/api/v1/agent/sessions/{session.json()['session_id']}/exchange"
    answer = await farm.agents.post(
        path, content=said, headers={**headers, "Content-Type": "application/json"}
    )
    (assignment,) = ExchangeAnswer.model_validate_json(answer.content).assignments
    assert assignment.plan is not None
    for file in assignment.plan.files:
        blob = await farm.agents.get(f"/api/v1/blobs/{file.digest}", headers=headers)
        assert digest_of(blob.content) == file.digest


@pytest.mark.invariant("I19")
async def test_an_agent_gets_no_file_of_work_that_is_not_its_own(farm: Farm) -> None:
    headers = await farm.credential()
    for listener in (farm.agents, farm.people):
        refused = await listener.get(f"/api/v1/blobs/{DIGEST}", headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "auth.forbidden")
        assert (await listener.head(f"/api/v1/blobs/{DIGEST}", headers=headers)).status_code == 403
    assert (await farm.people.get(f"/api/v1/blobs/{DIGEST}")).content == CONTENT


@pytest.mark.parametrize(("method", "path"), OF_PEOPLE)
async def test_nothing_of_peoples_is_served_to_anybody(farm: Farm, method: str, path: str) -> None:
    headers = await farm.credential()
    refused = await farm.agents.request(method, path)
    assert refused.status_code == 401
    assert "people's commands go to the address that `farm up` says" in refused.json()["hint"]
    with_credential = await farm.agents.request(method, path, headers=headers)
    assert with_credential.status_code in (404, 405)


@pytest.mark.parametrize("credential", [None, "Bearer wrong", "Bearer", "Basic d3Jvbmc6d3Jvbmc="])
async def test_without_a_hosts_credential_not_even_a_file_is_read(farm: Farm, credential: str | None) -> None:
    headers = {} if credential is None else {"Authorization": credential}
    for method in ("GET", "HEAD"):
        answer = await farm.agents.request(method, f"/api/v1/blobs/{DIGEST}", headers=headers)
        assert answer.status_code == 401
    session = await farm.agents.post("/api/v1/agent/sessions", json={}, headers=headers)
    assert session.status_code == 401
    assert session.json()["code"] == "auth.invalid"


async def test_health_is_said_to_anybody(farm: Farm) -> None:
    assert (await farm.agents.get("/api/v1/health")).json() == {"status": "ok"}


async def test_a_name_that_is_no_loopback_one_is_answered_too(farm: Farm) -> None:
    answer = await farm.agents.get("/api/v1/health", headers={"Host": "farm.lab:8471"})
    assert answer.status_code == 200
    assert (await farm.people.get("/api/v1/health", headers={"Host": "farm.lab"})).status_code == 421


async def test_a_join_token_lets_one_host_in_once(farm: Farm) -> None:
    token = (await farm.people.post("/api/v1/tokens", json={"auto_admit": True})).json()["token"]
    body = {"host": "bench-1", "join_token": token}
    assert (await farm.agents.post("/api/v1/agent/enroll", json=body)).status_code == 200
    again = await farm.agents.post("/api/v1/agent/enroll", json={**body, "host": "bench-2"})
    assert again.status_code == 401
    assert "farm token create" in again.json()["hint"]


async def test_a_stranger_can_send_no_more_than_an_enrolment(farm: Farm) -> None:
    path, body = "/api/v1/agent/enroll", b"x" * (MAX_ENROLLMENT_BYTES + 1)

    async def in_chunks() -> AsyncIterator[bytes]:
        yield body

    assert (await farm.agents.post(path, content=body)).status_code == 413
    assert (await farm.agents.post(path, content=in_chunks())).status_code == 413


async def test_a_stranger_can_send_nothing_with_the_question_how_the_farm_is(farm: Farm) -> None:
    async def in_chunks() -> AsyncIterator[bytes]:
        yield b"x"

    for content in (b"x", in_chunks()):
        assert (await farm.agents.request("GET", "/api/v1/health", content=content)).status_code == 413
    assert (await farm.agents.request("GET", "/api/v1/health", content=b"")).status_code == 200


@pytest.mark.invariant("I19")
async def test_strangers_are_told_of_once_and_without_what_they_showed(farm: Farm) -> None:
    enrollment = {"host": "bench-1", "join_token": "bfj_guessed"}
    for _ in range(3):
        assert (await farm.agents.post("/api/v1/agent/enroll", json=enrollment)).status_code == 401
        for headers in ({}, {"Authorization": "Bearer bfh_guessed"}):
            for listener in (farm.agents, farm.people):
                refused = await listener.post("/api/v1/agent/sessions", json={}, headers=headers)
                assert refused.status_code == 401
    ((actor, cause),) = told(farm.context)
    assert actor == "anonymous:agent"
    assert "guessed" not in cause


@pytest.mark.parametrize("kind", ["credential", "join token"])
async def test_a_stranger_of_either_kind_is_told_of(farm: Farm, kind: str) -> None:
    path = "/api/v1/agent/enroll" if kind == "join token" else "/api/v1/agent/sessions"
    shown = {"Authorization": "Bearer bfh_guessed"}
    body = {"host": "bench-1", "join_token": "bfj_guessed"}
    assert (await farm.agents.post(path, json=body, headers=shown)).status_code == 401
    ((_, cause),) = told(farm.context)
    assert kind in cause


async def test_an_agent_that_joins_again_with_a_credential_of_before_is_no_stranger(farm: Farm) -> None:
    assert (await farm.enroll(headers={"Authorization": "Bearer bfh_of_before"})).status_code == 200
    assert told(farm.context) == []


def told(context: Context) -> list[tuple[str, str]]:
    query = sa.select(events.c.actor, events.c.cause).where(events.c.kind == "access_refused")
    return context.database.read(
        lambda connection: [(row.actor, row.cause) for row in connection.execute(query)]
    )


async def test_strangers_keep_no_writer_waiting(farm: Farm) -> None:
    body = {"host": "bench-1", "join_token": "bfj_guessed"}
    # The log is told of the first one in a minute, and of no other.
    assert (await farm.agents.post("/api/v1/agent/enroll", json=body)).status_code == 401
    said = statements(farm.context)
    assert (await farm.agents.post("/api/v1/agent/enroll", json=body)).status_code == 401
    assert said
    assert not [each for each in said if each.startswith(("BEGIN IMMEDIATE", "INSERT", "UPDATE"))]


async def test_who_calls_is_looked_up_once(farm: Farm) -> None:
    credential = await farm.credential()
    said = statements(farm.context)
    answer = await farm.agents.post("/api/v1/agent/sessions", json={}, headers=credential)
    assert answer.status_code == 422
    assert len([each for each in said if each.startswith("SELECT")]) == 1


def statements(context: Context) -> list[str]:
    """What the database is told from now on."""
    said: list[str] = []

    @sa.event.listens_for(context.database.engine, "before_cursor_execute")
    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        said.append(statement)

    return said


async def test_a_name_whose_agent_is_at_work_is_not_given_away(farm: Farm) -> None:
    headers = await farm.credential()
    opening = {"boot_id": "boot", "agent_version": "test"}
    await farm.agents.post("/api/v1/agent/sessions", json=opening, headers=headers)
    refused = await farm.enroll()
    assert refused.status_code == 409
    assert "--host NAME" in refused.json()["hint"]
    assert (await farm.enroll("bench-2")).status_code == 200
    assert (await farm.agents.post("/api/v1/agent/sessions", json=opening, headers=headers)).is_success


async def test_an_agent_that_shows_its_credential_may_join_again_at_once(farm: Farm) -> None:
    headers = await farm.credential()
    opening = {"boot_id": "boot", "agent_version": "test"}
    await farm.agents.post("/api/v1/agent/sessions", json=opening, headers=headers)
    assert (await farm.enroll(headers=headers)).status_code == 200
