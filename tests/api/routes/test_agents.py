"""What agents call, over real HTTP: credentials, sessions, held exchanges, reports."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from farm.core.errors import Blame
from farm.core.operations.event import AccessEvent
from farm.database.tables import events
from farm.database.transaction import bind_tx
from farm.services.access.enrollment import create_join_token
from farm.wire.agents.protocol import Assignment, ExchangeAnswer
from tests.api.routes.test_all_routes import matrix_spec, refused, register_variant
from tests.support.farm.http_farm import HttpAgent, HttpFarm, http_farm
from tests.support.farm.service_fixture import good_evidence, phone, report_body

#: The longest that an exchange may be held; and less, for what happens at once on a busy machine.
_HELD_S = 30.0
_AT_ONCE_S = 25.0


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[HttpFarm]:
    with http_farm(tmp_path / "data") as served:
        yield served


@pytest.fixture
def agent(farm: HttpFarm) -> HttpAgent:
    return farm.enroll()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def check_of(agent: HttpAgent) -> Assignment:
    """The check that a new phone is given."""
    answer = agent.exchange(devices=(phone("phone-1"),))
    (assignment,) = ExchangeAnswer.model_validate_json(answer.content).assignments
    return assignment


def healthy_phone(agent: HttpAgent) -> tuple[Any, ...]:
    check = check_of(agent)
    agent.post(f"/attempts/{check.attempt_id}/report", content=report_body(good_evidence(check)))
    return (phone("phone-1").model_copy(update={"cleaned_fence": check.fence}),)


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer"}, {"Authorization": "Bearer x"}])
@pytest.mark.parametrize("path", ["/sessions", "/sessions/1/exchange", "/attempts/1/report"])
@pytest.mark.invariant("I19")
def test_a_call_without_a_good_credential_is_refused(
    farm: HttpFarm, path: str, headers: dict[str, str]
) -> None:
    body = {"boot_id": "b", "agent_version": "a"} if path == "/sessions" else {"seq": 1}
    answer = farm.http.post(f"/api/v1/agent{path}", json=body, headers=headers)
    refused(answer, 401, "auth.invalid")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_another_kind_of_authorization_is_refused(farm: HttpFarm, agent: HttpAgent) -> None:
    agent.headers["Authorization"] = agent.headers["Authorization"].replace("Bearer", "Basic")
    refused(agent.exchange(), 401, "auth.invalid")


def test_a_join_token_works_once(farm: HttpFarm) -> None:
    token = farm.context.database.write(
        bind_tx(create_join_token, now=farm.context.clock.now()), auto_admit=True
    )
    body = {"host": "bench-1", "join_token": token}
    assert farm.http.post("/api/v1/agent/enroll", json=body).status_code == 200
    again = [{**body, "host": "bench-2"}, body, {**body, "join_token": "guess"}]
    for each in again:
        refused(farm.http.post("/api/v1/agent/enroll", json=each), 401, "auth.invalid")


@pytest.mark.parametrize("host", ["", "a/b", "a b", "a\n", "x" * 129])
def test_a_host_with_a_name_that_is_none_is_refused(farm: HttpFarm, host: str) -> None:
    answer = farm.http.post("/api/v1/agent/enroll", json={"host": host, "join_token": "t"})
    refused(answer, 422, "input.invalid")


def test_an_agent_of_another_wire_version_is_refused_with_the_versions_served(
    farm: HttpFarm, agent: HttpAgent
) -> None:
    opening = {"wire_version": 99, "boot_id": "b", "agent_version": "a"}
    problem = refused(agent.post("/sessions", json=opening), 422, "wire.version")
    assert "99" in problem["detail"]
    assert "serves 1" in problem["detail"]
    enrollment = {"wire_version": 0, "host": "bench-2", "join_token": "t"}
    refused(farm.http.post("/api/v1/agent/enroll", json=enrollment), 422, "wire.version")


@pytest.mark.parametrize("path", ["/enroll", "/sessions"])
def test_the_version_is_what_is_refused_whatever_else_an_agent_of_another_release_says(
    agent: HttpAgent, path: str
) -> None:
    refused(agent.post(path, json={"wire_version": 2, "unheard_of": [1]}), 422, "wire.version")
    # Of the same version, what nobody knows is a mistake.
    refused(agent.post(path, json={"wire_version": 1, "unheard_of": [1]}), 422, "input.invalid")


@pytest.mark.invariant("I19")
def test_a_session_of_another_host_is_refused_and_the_log_tells_of_it_once(
    farm: HttpFarm, agent: HttpAgent, threads: ThreadPoolExecutor
) -> None:
    held = threads.submit(agent.exchange, wait_s=_HELD_S)
    wait_until_held(farm, held)
    other = farm.enroll("bench-2")
    other.session_id = agent.session_id
    for _ in range(3):
        refused(other.exchange(devices=(phone("phone-1"),)), 403, "auth.forbidden")
    # Nothing of the other host's happened: no phone, no beat, and not even the end of a held call.
    assert farm.http.get("/api/v1/devices").json() == []
    assert not held.done()
    farm.stop_holding()
    assert held.result(timeout=_AT_ONCE_S).status_code == 200
    assert refusals_told(farm) == [("agent:bench-2", "bench-2")]


def refusals_told(farm: HttpFarm) -> list[tuple[str, str]]:
    told = sa.select(events.c.actor, events.c.subject_id).where(events.c.kind == AccessEvent.ACCESS_REFUSED)
    with farm.context.database.engine.connect() as connection:
        return [(actor, subject_id) for actor, subject_id in connection.execute(told)]


def test_a_session_that_never_was_is_over(agent: HttpAgent) -> None:
    agent.session_id += 1000
    refused(agent.exchange(), 409, "session.fenced", Blame.HOST)


@pytest.mark.invariant("I3")
@pytest.mark.fault(26)
def test_an_older_session_is_fenced_by_a_newer_one(agent: HttpAgent) -> None:
    older = agent.session_id
    agent.session_id = agent.post("/sessions", json={"boot_id": "b", "agent_version": "a"}).json()[
        "session_id"
    ]
    assert agent.exchange().status_code == 200
    agent.session_id = older
    refused(agent.exchange(), 409, "session.fenced", Blame.HOST)


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"seq": 0}', b'{"seq": 9007199254740993}', b'{"seq": 1, "more": 1}']
)
def test_an_exchange_that_is_none_is_refused(agent: HttpAgent, body: bytes) -> None:
    answer = agent.post(f"/sessions/{agent.session_id}/exchange", content=body)
    refused(answer, answer.status_code, "input.invalid")


def test_an_exchange_is_held_as_long_as_it_says_while_there_is_nothing(agent: HttpAgent) -> None:
    began = time.monotonic()
    assert agent.exchange(wait_s=0.3).json()["assignments"] == []
    assert 0.3 <= time.monotonic() - began < _AT_ONCE_S


def test_a_held_exchange_is_answered_when_a_matrix_comes(
    farm: HttpFarm, agent: HttpAgent, threads: ThreadPoolExecutor
) -> None:
    register_variant(farm)
    devices = healthy_phone(agent)
    agent.exchange(devices=devices)
    held = threads.submit(agent.exchange, devices=devices, wait_s=_HELD_S)
    began = time.monotonic()
    wait_until_held(farm, held)
    assert farm.http.post("/api/v1/matrices", json={"spec": matrix_spec()}).status_code == 201
    answer = held.result()
    assert time.monotonic() - began < _AT_ONCE_S
    assert [assignment["plan"]["harness"] for assignment in answer.json()["assignments"]] == [
        "speed_benchmark_torch"
    ]


def test_a_held_exchange_is_answered_when_the_farm_stops(
    farm: HttpFarm, agent: HttpAgent, threads: ThreadPoolExecutor
) -> None:
    held = threads.submit(agent.exchange, wait_s=_HELD_S)
    wait_until_held(farm, held)
    began = time.monotonic()
    farm.stop_holding()
    assert held.result().status_code == 200
    assert time.monotonic() - began < _AT_ONCE_S


def test_a_held_exchange_is_refused_when_a_newer_session_opens(
    farm: HttpFarm, agent: HttpAgent, threads: ThreadPoolExecutor
) -> None:
    held = threads.submit(agent.exchange, wait_s=_HELD_S)
    wait_until_held(farm, held)
    agent.post("/sessions", json={"boot_id": "b", "agent_version": "a"})
    refused(held.result(), 409, "session.fenced", Blame.HOST)


def test_a_held_exchange_ends_when_its_session_calls_again(
    farm: HttpFarm, agent: HttpAgent, threads: ThreadPoolExecutor
) -> None:
    first = threads.submit(agent.exchange, wait_s=_HELD_S)
    wait_until_held(farm, first)
    second = threads.submit(agent.exchange, wait_s=_HELD_S)
    assert first.result(timeout=_AT_ONCE_S).status_code == 200
    wait_until_held(farm, second)
    assert not second.done()
    farm.stop_holding()
    assert second.result().status_code == 200


def wait_until_held(farm: HttpFarm, held: Future[httpx.Response]) -> None:
    """Until the farm has applied the exchange and waits for something to happen."""
    while not farm.context.held_exchanges.count and not held.done():
        time.sleep(0.005)


@pytest.mark.invariant("I4")
@pytest.mark.fault(33)
def test_the_same_report_again_gets_the_same_answer(agent: HttpAgent) -> None:
    check = check_of(agent)
    body = report_body(good_evidence(check))
    answers = [agent.post(f"/attempts/{check.attempt_id}/report", content=body) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert answers[0].json()["counted"]


def test_another_report_of_a_settled_attempt_is_a_conflict(agent: HttpAgent) -> None:
    check = check_of(agent)
    path = f"/attempts/{check.attempt_id}/report"
    agent.post(path, content=report_body(good_evidence(check)))
    refused(agent.post(path, content=report_body(good_evidence(check)) + b" "), 409, "report.conflict")


@pytest.mark.invariant("I19")
def test_a_report_of_another_hosts_attempt_is_refused_and_changes_nothing(
    farm: HttpFarm, agent: HttpAgent
) -> None:
    check = check_of(agent)
    body = report_body(good_evidence(check))
    other = farm.enroll("bench-2")
    refused(other.post(f"/attempts/{check.attempt_id}/report", content=body), 403, "auth.forbidden")
    assert refusals_told(farm) == [("agent:bench-2", "bench-2")]
    assert agent.post(f"/attempts/{check.attempt_id}/report", content=body).json()["counted"]


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff", b"[" * 10_000])
def test_a_report_that_is_none_is_refused_and_the_attempt_stays(agent: HttpAgent, body: bytes) -> None:
    check = check_of(agent)
    path = f"/attempts/{check.attempt_id}/report"
    refused(agent.post(path, content=body), 422, "input.invalid")
    assert agent.post(path, content=report_body(good_evidence(check))).json()["counted"]


def test_a_report_of_an_attempt_that_is_none_is_not_found(agent: HttpAgent) -> None:
    refused(agent.post("/attempts/99/report", content=b"{}"), 404, "not_found")
    refused(agent.post(f"/attempts/{10**30}/report", content=b"{}"), 422, "input.invalid")
