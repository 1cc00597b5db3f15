"""Actions: seen by who may do them, asked first, done once, and refused to pages elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.operations.role import Role
from farm.database.transaction import bind_tx
from farm.services.access.tokens import issue_access_token
from farm.web.app import create_app_with_pages
from farm.wire.documents.access import AccessRequest
from tests.support.farm.http_farm import http_farm, served
from tests.support.farm.service_fixture import phone
from tests.web.conftest import fill, words_of

HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def browsers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Role, httpx.Client]]:
    """A signed-in browser for each role, of a farm with a queued matrix and an alarm of a regression."""
    folder: Path = tmp_path_factory.mktemp("farm")
    fill(folder)
    app = create_app_with_pages(FarmConfig(data_dir=folder, require_tokens=True), SystemClock())
    with served(app) as (url, _):
        context = app.state.context
        clients = {}
        for role in (Role.VIEWER, Role.SUBMITTER, Role.OPERATOR, Role.ADMIN):
            issue = bind_tx(issue_access_token, now=context.clock.now())
            made = context.database.write(issue, AccessRequest(name=f"a-{role}", role=role))
            client = httpx.Client(base_url=url, trust_env=False, headers=HTML, timeout=30)
            assert client.post("/login", data={"token": made.token}).status_code == 303
            clients[role] = client
        yield clients
        for client in clients.values():
            client.close()


#: The part of a page that is live has the buttons, which go with what is shown.
ACTIONS = (
    ("/matrices/3?part=progress", "/matrices/3/cancel", Role.SUBMITTER),
    ("/attempts/3?part=run", "/attempts/3/rerun", Role.SUBMITTER),
    ("/devices/virtual-1?part=detail", "/devices/virtual-1/cordon", Role.OPERATOR),
    ("/devices/virtual-1?part=detail", "/devices/virtual-1/check", Role.OPERATOR),
    ("/devices/virtual-1?part=detail", "/devices/virtual-1/reserve", Role.OPERATOR),
    ("/alarms", "/alarms/1/clear", Role.OPERATOR),
)
RANK = (Role.VIEWER, Role.SUBMITTER, Role.OPERATOR)


@pytest.mark.parametrize(("page", "action", "needed"), ACTIONS)
@pytest.mark.parametrize("role", RANK)
def test_buttons_are_for_those_who_may(
    browsers: dict[Role, httpx.Client], page: str, action: str, needed: Role, role: Role
) -> None:
    may = RANK.index(role) >= RANK.index(needed)
    assert (f'href="{action}"' in browsers[role].get(page).text) == may
    assert browsers[role].get(action).status_code == (200 if may else 403)
    if not may:
        assert browsers[role].post(action, data={"reason": "x"}).status_code == 403


def test_a_cancellation_says_what_it_will_do_and_does_it(browsers: dict[Role, httpx.Client]) -> None:
    browser = browsers[Role.SUBMITTER]
    words = words_of(browser.get("/matrices/3/cancel"))
    assert "20 queued jobs will never start." in words
    assert browser.get("/matrices/3").text.count("cancelled") == 0
    answer = browser.post("/matrices/3/cancel", data={"key": "k"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/matrices/3")
    page = browser.get("/matrices/3")
    words = words_of(page)
    assert "20 cancelled" in words
    # Nothing ran: no bar is full, no cell has a run, and there is nothing left to cancel.
    assert words.count("0/10") == 2
    assert "10/10" not in words
    assert words.count("5 cancelled") == 4
    assert "5 runs" not in words
    assert 'href="/matrices/3/cancel"' not in page.text
    listed = browser.get("/matrices", params={"name": "waits"}).text
    assert 'aria-label="0 of 20"' in listed


def test_a_rerun_that_is_sent_twice_is_one_matrix(browsers: dict[Role, httpx.Client]) -> None:
    browser = browsers[Role.SUBMITTER]
    assert "in 5 rounds measures it" in words_of(browser.get("/attempts/4/rerun"))
    places = {
        browser.post("/attempts/4/rerun", data={"key": "0123456789abcdef"}).headers["location"]
        for _ in range(2)
    }
    assert len(places) == 1
    assert browser.get(places.pop()).status_code == 200


def test_a_device_is_cordoned_with_a_reason(browsers: dict[Role, httpx.Client]) -> None:
    browser = browsers[Role.OPERATOR]
    answer = browser.post("/devices/virtual-2/cordon", data={"reason": "new cable"})
    assert answer.headers["location"] == "/devices/virtual-2"
    words = words_of(browser.get("/devices/virtual-2"))
    assert "new cable" in words
    assert "Uncordon" in words
    assert browser.post("/devices/virtual-2/uncordon").status_code == 303
    assert browser.post("/devices/virtual-2/explode").status_code == 404


def test_a_reason_that_was_typed_before_a_session_ended_is_in_the_form(
    browsers: dict[Role, httpx.Client],
) -> None:
    answer = browsers[Role.OPERATOR].get("/devices/virtual-1/cordon", params={"reason": 'a "new" cable'})
    assert 'name="reason" maxlength="500" value="a &#34;new&#34; cable"' in answer.text


def test_a_device_is_reserved_for_a_time_and_released(browsers: dict[Role, httpx.Client]) -> None:
    browser = browsers[Role.OPERATOR]
    assert "It is yours for this time" in words_of(browser.get("/devices/virtual-2/reserve"))
    assert browser.post("/devices/virtual-2/reserve", data={"for": "soon"}).status_code == 422
    assert browser.post("/devices/virtual-2/reserve", data={"for": "99d"}).status_code == 422
    form = {"for": "2h", "reason": "try a driver"}
    assert browser.post("/devices/virtual-2/reserve", data=form).status_code == 303
    page = browser.get("/devices/virtual-2")
    assert "reserved by a-operator" in words_of(page)
    assert 'href="/devices/virtual-2/release"' in page.text
    assert 'href="/devices/virtual-2/reserve"' not in page.text
    assert "The reservation of a-operator until" in words_of(browser.get("/devices/virtual-2/release"))
    assert browser.post("/devices/virtual-2/release").status_code == 303
    assert 'href="/devices/virtual-2/reserve"' in browser.get("/devices/virtual-2").text


def test_the_reservation_of_another_person_ends_only_as_it_was_asked_about(
    browsers: dict[Role, httpx.Client],
) -> None:
    other, browser = browsers[Role.ADMIN], browsers[Role.OPERATOR]
    assert other.post("/devices/virtual-2/reserve", data={"for": "1h"}).status_code == 303
    question = browser.get("/devices/virtual-2/release")
    assert "The reservation of a-admin until" in words_of(question)
    assert 'name="reserved_by" value="a-admin"' in question.text
    for stale in ({}, {"reserved_by": "someone"}):
        assert browser.post("/devices/virtual-2/release", data=stale).status_code == 409
    assert "reserved by a-admin" in words_of(browser.get("/devices/virtual-2"))
    assert browser.post("/devices/virtual-2/release", data={"reserved_by": "a-admin"}).status_code == 303
    assert "reserved by a-admin" not in words_of(browser.get("/devices/virtual-2")).split("Events")[0]


def test_a_farm_without_tokens_asks_for_the_name_that_a_device_is_reserved_in(tmp_path: Path) -> None:
    with http_farm(tmp_path) as farm:
        assert farm.enroll().exchange(devices=(phone("phone-1"),)).status_code == 200
        browser, reserve = farm.http, "/devices/phone-1/reserve"
        assert 'name="by"' in browser.get(reserve).text
        for nameless in ({"for": "2h"}, {"for": "2h", "by": "a b"}):
            answer = browser.post(reserve, data=nameless)
            assert answer.status_code == 422
            assert "a name has 1 to 64 characters without blanks" in words_of(answer)
        assert browser.post(reserve, data={"for": "2h", "by": "ann"}).status_code == 303
        assert browser.get("/api/v1/devices/phone-1").json()["reserved_by"] == "ann"
        # For `farm adb` of the same person, too.
        other = browser.get("/api/v1/devices/phone-1/adb", params={"by": "bob"})
        own = browser.get("/api/v1/devices/phone-1/adb", params={"by": "ann"})
        assert "reserved by ann" in other.text
        assert "reserved by" not in own.text
        release = "/devices/phone-1/release"
        assert browser.post(release, data={"by": "bob"}).status_code == 409
        assert browser.post(release, data={"by": "ann"}).status_code == 303
        assert browser.get("/api/v1/devices/phone-1").json()["reserved_by"] is None


def test_a_proven_name_is_not_asked_for(browsers: dict[Role, httpx.Client]) -> None:
    browser = browsers[Role.OPERATOR]
    assert 'name="by"' not in browser.get("/devices/virtual-2/reserve").text
    form = {"for": "2h", "by": "someone"}
    assert browser.post("/devices/virtual-2/reserve", data=form).status_code == 303
    assert "reserved by a-operator" in words_of(browser.get("/devices/virtual-2"))
    assert browser.post("/devices/virtual-2/release").status_code == 303


@pytest.mark.parametrize("long", ["15d", "999999999w", "1y"])
def test_a_time_that_is_too_long_is_refused_with_the_longest(
    browsers: dict[Role, httpx.Client], long: str
) -> None:
    answer = browsers[Role.OPERATOR].post("/devices/virtual-2/reserve", data={"for": long})
    assert answer.status_code == 422
    assert "the seconds of a reservation cannot be" in words_of(answer)
    assert "a reservation lasts from 1s to 14d" in words_of(answer)


def test_the_buttons_of_a_device_follow_what_others_do(browsers: dict[Role, httpx.Client]) -> None:
    browser = browsers[Role.OPERATOR]
    for action, offered in (("cordon", "uncordon"), ("uncordon", "cordon")):
        assert browsers[Role.ADMIN].post(f"/devices/virtual-1/{action}").status_code == 303
        detail = browser.get("/devices/virtual-1?part=detail").text
        assert f'href="/devices/virtual-1/{offered}"' in detail


def test_what_failed_is_measured_again_and_a_health_check_is_not(browsers: dict[Role, httpx.Client]) -> None:
    browser = browsers[Role.SUBMITTER]
    jobs = browser.get("/api/v1/jobs", params={"matrix_id": 2}).json()
    attempt_id = next(job["attempts"][-1] for job in jobs if job["outcome"] == "failed" and job["attempts"])
    assert browser.get(f"/api/v1/attempts/{attempt_id}").json()["reading"] is None
    rerun = f"/attempts/{attempt_id}/rerun"
    assert f'href="{rerun}"' in browser.get(f"/attempts/{attempt_id}").text
    assert rerun not in browsers[Role.VIEWER].get(f"/attempts/{attempt_id}").text
    assert "measures it" in words_of(browser.get(rerun))
    answer = browser.post(rerun, data={"key": "fedcba9876543210"})
    assert answer.status_code == 303
    assert f"rerun of attempt {attempt_id}" in words_of(browser.get(answer.headers["location"]))
    # Attempt 1 is the first check of a device.
    assert "Health check" in words_of(browser.get("/attempts/1"))
    assert "/attempts/1/rerun" not in browser.get("/attempts/1").text


def test_an_alarm_is_cleared_with_a_reason_only(browsers: dict[Role, httpx.Client]) -> None:
    browser = browsers[Role.OPERATOR]
    assert "mobilenet_v2 int8-core" in words_of(browser.get("/alarms/1/clear"))
    assert '<a href="/changes/1">change 1</a>' in browser.get("/alarms").text
    assert browser.post("/alarms/1/clear", data={"reason": ""}).status_code == 422
    assert browser.post("/alarms/1/clear", data={"reason": "a new cable"}).status_code == 303
    assert "No alarm is open." in words_of(browser.get("/alarms"))


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_elsewhere_does_nothing(browsers: dict[Role, httpx.Client], headers: dict[str, str]) -> None:
    browser = browsers[Role.OPERATOR]
    for path in ("/devices/virtual-1/cordon", "/logout", "/login"):
        assert browser.post(path, headers=headers).status_code == 403
    assert "Uncordon" not in words_of(browser.get("/devices/virtual-1"))
