"""Several reports in one call: each is answered as if it had come by itself."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from farm.core.base.ids import AttemptId
from farm.wire.agents.protocol import Assignment, ExchangeAnswer
from farm.wire.agents.report_batch import MAX_REPORTS, pack_reports
from tests.api.routes.test_all_routes import refused
from tests.support.farm.http_farm import HttpAgent, HttpFarm, http_farm
from tests.support.farm.service_fixture import good_evidence, phone, report_body

_PATH = "/attempts/reports"


@pytest.fixture
def farm(tmp_path: Any) -> Iterator[HttpFarm]:
    with http_farm(tmp_path) as farm:
        yield farm


@pytest.fixture
def agent(farm: HttpFarm) -> HttpAgent:
    return farm.enroll()


def checks_of(agent: HttpAgent, *phones: str) -> list[Assignment]:
    """The checks of new phones."""
    answer = agent.exchange(devices=tuple(phone(each) for each in phones))
    return list(ExchangeAnswer.model_validate_json(answer.content).assignments)


def good(check: Assignment) -> tuple[AttemptId, bytes]:
    return check.attempt_id, report_body(good_evidence(check))


def outcomes(answer: httpx.Response) -> list[tuple[bool, str | None]]:
    """For each report whether it counted, and what was wrong with it."""
    assert answer.status_code == 200, answer.text
    return [
        (bool(each["answer"] and each["answer"]["counted"]), each["problem"] and each["problem"]["code"])
        for each in answer.json()["reports"]
    ]


@pytest.mark.invariant("I4", "I12")
@pytest.mark.fault(33)
def test_reports_in_one_call_are_settled_and_told_the_same_when_they_come_again(agent: HttpAgent) -> None:
    reports = [good(check) for check in checks_of(agent, "a", "b", "c")]
    first = agent.post(_PATH, content=pack_reports(reports))
    assert outcomes(first) == [(True, None)] * 3
    assert agent.post(_PATH, content=pack_reports(reports)).json() == first.json()
    (attempt_id, body), *_ = reports
    alone = agent.post(f"/attempts/{attempt_id}/report", content=body)
    assert alone.json() == first.json()["reports"][0]["answer"]


@pytest.mark.invariant("I12", "I19")
def test_what_is_wrong_with_one_report_is_said_of_that_one(farm: HttpFarm, agent: HttpAgent) -> None:
    one, two, three = (good(check) for check in checks_of(agent, "a", "b", "c"))
    (theirs,) = (good(check) for check in checks_of(farm.enroll("bench-2"), "d"))
    agent.post(f"/attempts/{one[0]}/report", content=one[1])
    reports = [(one[0], one[1] + b" "), two, (AttemptId(99), b"{}"), theirs, (three[0], b"{}")]
    assert outcomes(agent.post(_PATH, content=pack_reports(reports))) == [
        (False, "report.conflict"),
        (True, None),
        (False, "not_found"),
        (False, "auth.forbidden"),
        (False, "input.invalid"),
    ]
    assert outcomes(agent.post(_PATH, content=pack_reports([three]))) == [(True, None)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n",
        b"[]\n",
        b'{"reports":[]}\n',
        b'{"reports":[{"attempt_id":1,"size_bytes":5}]}\n{}',
        b'{"reports":[{"attempt_id":-1,"size_bytes":2}]}\n{}',
        pack_reports([(AttemptId(number), b"") for number in range(MAX_REPORTS)]).replace(
            b'{"attempt_id":0', b'{"attempt_id":99,"size_bytes":0},{"attempt_id":0'
        ),
    ],
)
def test_a_body_that_is_not_made_like_that_is_refused_and_settles_nothing(
    agent: HttpAgent, body: bytes
) -> None:
    (check,) = checks_of(agent, "a")
    refused(agent.post(_PATH, content=body), 422, "input.invalid")
    assert outcomes(agent.post(_PATH, content=pack_reports([good(check)]))) == [(True, None)]
