"""Agents with nothing to say, over real HTTP: noted together, and heard when there is something."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from farm.core.errors import Blame
from farm.database.tables import sessions
from tests.api.routes.test_agents import healthy_phone
from tests.api.routes.test_all_routes import matrix_spec, refused, register_variant
from tests.support.farm.http_farm import HttpAgent, HttpFarm, http_farm
from tests.support.farm.processes import eventually

#: What is held longer than any test waits; and what a test waits for what happens at once.
_HELD_S, _AT_ONCE_S = 30.0, 25.0
#: Held for a moment, and long enough to be worth noting together.
_MOMENT_S = 0.6


@pytest.fixture(params=[False, True], ids=["loopback", "tokens"])
def farm(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HttpFarm]:
    with http_farm(tmp_path / "data", require_tokens=request.param) as served:
        yield served


@pytest.fixture
def threads(farm: HttpFarm) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool
        farm.stop_holding()


def idle(agent: HttpAgent, **said: object) -> None:
    """Have an agent say once what it then says again, and be told nothing."""
    answer = agent.exchange(wait_s=_MOMENT_S, **said)
    assert answer.status_code == 200, answer.text


def applied(farm: HttpFarm) -> dict[int, int]:
    """The last exchange of each session that was applied."""
    query = sa.select(sessions.c.session_id, sessions.c.exchange_seq)
    with farm.context.database.engine.connect() as connection:
        return {row.session_id: row.exchange_seq for row in connection.execute(query)}


def held(agent: HttpAgent, threads: ThreadPoolExecutor, **said: object) -> Future[httpx.Response]:
    """An exchange that was applied, and is held because there is nothing to say."""
    call = threads.submit(agent.exchange, wait_s=_HELD_S, **said)
    eventually(lambda: applied(agent.farm)[agent.session_id] == agent.seq or call.done(), "it is applied")
    assert not call.done()
    return call


def commits(farm: HttpFarm) -> list[object]:
    """Grows by one with each transaction that is committed."""
    found: list[object] = []
    sa.event.listen(farm.context.database.engine, "commit", found.append)
    return found


def test_calls_of_idle_agents_share_a_transaction(farm: HttpFarm, threads: ThreadPoolExecutor) -> None:
    agents = [farm.enroll(f"bench-{number}") for number in range(8)]
    for call in [threads.submit(idle, agent) for agent in agents]:
        call.result()
    noted = commits(farm)
    answers = list(threads.map(lambda agent: agent.exchange(wait_s=_MOMENT_S), agents))
    assert {answer.status_code for answer in answers} == {200}
    assert [answer.json()["seq"] for answer in answers] == [2] * 8
    assert set(applied(farm).values()) == {2}
    assert len(noted) < len(agents)


def test_an_idle_agent_that_is_held_hears_of_a_matrix(farm: HttpFarm, threads: ThreadPoolExecutor) -> None:
    if farm.context.config.needs_tokens:
        pytest.skip("people need a token there, and what they do is the same")
    register_variant(farm)
    agent = farm.enroll()
    devices = tuple(each.model_copy(update={"facts": None}) for each in healthy_phone(agent))
    for _ in range(2):
        idle(agent, devices=devices)
    call = held(agent, threads, devices=devices)
    assert farm.http.post("/api/v1/matrices", json={"spec": matrix_spec()}).status_code == 201
    (assignment,) = call.result(_AT_ONCE_S).json()["assignments"]
    assert assignment["plan"]["harness"] == "speed_benchmark_torch"


@pytest.mark.invariant("I3")
@pytest.mark.fault(26)
def test_an_idle_agent_that_is_held_is_refused_when_another_session_opens(
    farm: HttpFarm, threads: ThreadPoolExecutor
) -> None:
    agent = farm.enroll()
    idle(agent)
    call = held(agent, threads)
    agent.post("/sessions", json={"boot_id": "b", "agent_version": "a"})
    refused(call.result(_AT_ONCE_S), 409, "session.fenced", Blame.HOST)
    refused(agent.exchange(wait_s=_MOMENT_S), 409, "session.fenced", Blame.HOST)


@pytest.mark.invariant("I19")
def test_a_credential_that_was_taken_away_opens_nothing_though_its_last_call_said_the_same(
    farm: HttpFarm,
) -> None:
    agent = farm.enroll()
    for _ in range(2):
        idle(agent)

    def take_away(connection: sa.Connection) -> None:
        connection.execute(sa.text("UPDATE hosts SET credential_hash = 'of another'"))

    farm.context.database.write(take_away)
    before = applied(farm)
    refused(agent.exchange(wait_s=_MOMENT_S), 401, "auth.invalid")
    assert applied(farm) == before


@pytest.mark.invariant("I19")
def test_an_idle_agent_notes_nothing_of_another_hosts_session(farm: HttpFarm) -> None:
    agent, other = farm.enroll("bench-1"), farm.enroll("bench-2")
    for each in (agent, other):
        idle(each)
    before = applied(farm)
    other.session_id, other.seq = agent.session_id, 100
    refused(other.exchange(wait_s=_MOMENT_S), 403, "auth.forbidden")
    assert applied(farm) == before


@pytest.mark.parametrize("body", [b"", b"{", b'{"seq": 0}', b'{"seq": 2, "more": 1}', b"[" * 10_000])
def test_what_an_idle_agent_says_wrongly_is_refused_as_by_everybody(farm: HttpFarm, body: bytes) -> None:
    agent = farm.enroll()
    idle(agent)
    answer = agent.post(f"/sessions/{agent.session_id}/exchange", content=body)
    refused(answer, answer.status_code, "input.invalid")
    assert answer.status_code < 500
