"""The event log over HTTP and on the command line: looked up, waited for, followed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from farm.cli.shell.main import main
from tests.support.farm.http_farm import HttpAgent, HttpFarm, http_farm
from tests.support.farm.service_fixture import phone

#: Longer than anything here should take.
_HELD_S = 20.0


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpFarm]:
    monkeypatch.setenv("FARM_USER", "anna")
    with http_farm(tmp_path / "data") as served:
        monkeypatch.setenv("FARM_URL", served.url)
        yield served


@pytest.fixture
def agent(farm: HttpFarm) -> HttpAgent:
    agent = farm.enroll("bench-1")
    agent.exchange(devices=(phone("phone-1"), phone("phone-2")))
    return agent


def get(farm: HttpFarm, **query: object) -> httpx.Response:
    return farm.http.get("/api/v1/events", params={key: str(value) for key, value in query.items()})


def cordon(farm: HttpFarm, device: str = "phone-1") -> None:
    assert farm.http.post(f"/api/v1/devices/{device}/cordon", json={"by": "anna"}).status_code == 200


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)


@pytest.mark.usefixtures("agent")
def test_who_waits_is_told_as_soon_as_it_happens(farm: HttpFarm) -> None:
    after = get(farm).json()["next"]
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(get, farm, after=after, wait_s=_HELD_S)
        began_s = time.monotonic()
        cordon(farm)
        page = waiting.result().json()
    assert time.monotonic() - began_s < _HELD_S
    assert [event["kind"] for event in page["events"]] == ["device_cordoned"]
    assert page["next"] >= page["events"][-1]["event_id"]


@pytest.mark.usefixtures("agent")
def test_who_waits_for_something_else_goes_on_waiting(farm: HttpFarm) -> None:
    after = get(farm).json()["next"]
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(get, farm, after=after, wait_s=_HELD_S, subject="device:phone-2")
        cordon(farm, "phone-1")
        cordon(farm, "phone-2")
        page = waiting.result().json()
    assert [event["subject_id"] for event in page["events"]] == ["phone-2"]


@pytest.mark.usefixtures("agent")
def test_a_wait_that_nothing_ends_is_answered_with_where_to_go_on(farm: HttpFarm) -> None:
    after = get(farm).json()["next"]
    page = get(farm, after=after, wait_s=0.05).json()
    assert page == {"events": [], "next": after}


@pytest.mark.parametrize(
    "query",
    [{"limit": 0}, {"limit": 100_000}, {"after": -1}, {"wait_s": 3600}, {"kind": "x"}, {"subject": "x:1"}],
    ids=str,
)
def test_what_cannot_be_asked_is_refused(farm: HttpFarm, query: dict[str, object]) -> None:
    answer = get(farm, **query)
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["code"]


@pytest.mark.usefixtures("agent")
def test_the_command_says_who_did_what_to_which_and_why(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    farm.http.post("/api/v1/devices/phone-1/cordon", json={"by": "anna", "reason": "swollen battery"})
    assert run("events", "--actor", "anna") == 0
    printed = capsys.readouterr()
    line = printed.out.splitlines()[-1]
    assert line.endswith("device phone-1 cordoned: active → cordoned (swollen battery)")
    assert line.split()[1] == "anna"


@pytest.mark.usefixtures("agent")
def test_events_as_json_are_one_document_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("events", "--json", "--limit", "3") == 0
    printed = capsys.readouterr()
    documents = [json.loads(line) for line in printed.out.splitlines()]
    assert len(documents) == 3
    assert "the newest 3" in printed.err
    assert documents[0]["event_id"] < documents[-1]["event_id"]


def test_a_kind_that_is_none_ends_with_a_hint(farm: HttpFarm, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("events", "--kind", "device_reserve") == 2
    assert "hint: did you mean `device_reserved`?" in capsys.readouterr().err


@pytest.mark.usefixtures("agent")
def test_following_prints_each_event_once_until_it_is_interrupted(farm: HttpFarm) -> None:
    command = [sys.executable, "-m", "farm.cli.shell.main", "events", "--follow", "--json", "--kind"]
    with subprocess.Popen(
        [*command, "device_cordoned"], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as follower:
        assert follower.stdout is not None
        cordon(farm, "phone-1")
        first = json.loads(follower.stdout.readline())
        cordon(farm, "phone-2")
        second = json.loads(follower.stdout.readline())
        follower.send_signal(signal.SIGINT)
        rest = follower.stdout.read()
        assert follower.wait(30) == 0
    assert [event["subject_id"] for event in (first, second)] == ["phone-1", "phone-2"]
    assert rest == ""
