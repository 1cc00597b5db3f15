"""`farm device` and `farm adb` against the farm's own API: what they change, say and refuse."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import httpx
import pytest

from farm.cli.shell.main import main
from farm.database.transaction import bind_tx
from farm.services.access.enrollment import create_join_token
from farm.wire.documents.devices import (
    LabelRequest,
    OperatorRequest,
    ReleaseRequest,
    ReservationRequest,
    TagRequest,
)
from farm.wire.documents.hosts import LimitRequest
from farm.wire.request_errors import RULE_BY_FIELD
from tests.support.farm.http_farm import HttpAgent, HttpFarm, http_farm
from tests.support.farm.service_fixture import phone


class NewHost(HttpFarm):
    """A farm whose hosts do not admit their phones by themselves."""

    def enroll(self, host: str = "bench-1") -> HttpAgent:
        token = self.context.database.write(
            bind_tx(create_join_token, now=self.context.clock.now()), auto_admit=False
        )
        answer = self.http.post("/api/v1/agent/enroll", json={"host": host, "join_token": token})
        return HttpAgent(self, answer.json()["credential"])


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NewHost]:
    monkeypatch.setenv("FARM_USER", "anna")
    with http_farm(tmp_path / "data") as served:
        monkeypatch.setenv("FARM_URL", served.url)
        farm = NewHost(url=served.url, app=served.app, http=served.http, loop=served.loop)
        farm.enroll("bench-1").exchange(devices=(phone("phone-1"), phone("phone-2")))
        farm.enroll("bench-2").exchange(devices=(phone("other"),))
        yield farm


def run(*words: str) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command that must work says on stderr; stdout stays empty."""
    code = run(*words)
    printed = capsys.readouterr()
    assert (code, printed.out) == (0, ""), printed.err
    return printed.err


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command says that is the user's fault."""
    assert run(*words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "\nhint: " in printed.err
    return printed.err


def shown(capsys: pytest.CaptureFixture[str], name: str) -> dict[str, object]:
    assert run("device", "show", name, "--json") == 0
    view: dict[str, object] = json.loads(capsys.readouterr().out)
    return view


def test_new_phones_of_one_host_are_admitted_together(
    farm: NewHost, capsys: pytest.CaptureFixture[str]
) -> None:
    admitted = said(capsys, "device", "admit", "--all", "--host", "bench-1")
    assert admitted == "phone-1 is active now.\nphone-2 is active now.\n"
    assert shown(capsys, "other")["admin"] == "pending"
    again = said(capsys, "device", "admit", "--all", "--host", "bench-1")
    assert again == "No device of bench-1 awaits admission.\n"
    assert said(capsys, "device", "admit", "other") == "other is active now.\n"
    assert said(capsys, "device", "admit", "other") == "Nothing changed: other is active already.\n"


def test_admitting_all_never_brings_a_retired_phone_back(
    farm: NewHost, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "device", "retire", "phone-1", "--yes")
    said(capsys, "device", "admit", "--all")
    assert shown(capsys, "phone-1")["admin"] == "retired"


def test_a_label_stands_for_the_phone_in_every_command(
    farm: NewHost, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "device", "label", "phone-1", "bench 7.a")
    assert shown(capsys, "bench 7.a")["device_id"] == "phone-1"
    tagged = said(capsys, "device", "tag", "bench 7.a", "rooted", "camera")
    assert tagged == "bench 7.a has the tags camera, rooted now.\n"
    said(capsys, "device", "tag", "bench 7.a", "--remove", "camera", "--remove", "never-there")
    assert shown(capsys, "phone-1")["tags"] == ["rooted"]
    said(capsys, "device", "label", "bench 7.a", "--clear")
    assert "no device `bench 7.a`" in refused(capsys, "device", "show", "bench 7.a")


def test_what_cannot_be_typed_as_meant_is_refused_before_anything_is_sent(
    farm: NewHost, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = refused(capsys, "device", "label", "phone-1", "a/b")
    assert refusal.startswith("error: a label cannot be 'a/b'\nhint: labels are up to 64 letters")
    refusal = refused(capsys, "device", "tag", "phone-1", "good", "a b")
    assert refusal.startswith("error: a tag cannot be 'a b'\nhint: tags are up to 64 letters")
    refusal = refused(capsys, "device", "uncordon", "phone-1", "--reason", "")
    assert refusal == "error: a reason cannot be ''\nhint: a reason has 1 to 500 characters\n"
    assert "give a name, or --clear" in refused(capsys, "device", "label", "phone-1")
    assert "name a tag" in refused(capsys, "device", "tag", "phone-1")
    assert "error: a: either added or removed" in refused(
        capsys, "device", "tag", "phone-1", "a", "--remove", "a"
    )
    assert "name devices, or use --all" in refused(capsys, "device", "admit")
    assert "not a duration" in refused(capsys, "device", "reserve", "phone-1", "--for", "long")
    assert "a reservation lasts from 1s to 14d" in refused(
        capsys, "device", "reserve", "phone-1", "--for", "99d"
    )
    assert "the name of a phone is empty" in refused(capsys, "device", "show", "")
    assert "nothing is said" in refused(capsys, "adb", "phone-1")
    assert "kill-server: it concerns the adb server" in refused(capsys, "adb", "phone-1", "kill-server")


def test_a_name_that_the_farm_cannot_keep_is_refused_with_where_it_comes_from(
    farm: NewHost, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARM_USER", "anna b")
    refusal = refused(capsys, "device", "release", "phone-1")
    assert refusal.startswith("error: your name (FARM_USER) cannot be 'anna b'\nhint: a name has 1 to 64")


def test_every_field_of_a_request_has_a_rule_in_words() -> None:
    kinds = (OperatorRequest, LabelRequest, TagRequest, ReservationRequest, ReleaseRequest, LimitRequest)
    assert {name for kind in kinds for name in kind.model_fields} - {"force", "assert_clean"} == set(
        RULE_BY_FIELD
    )


def test_a_phone_is_cordoned_with_a_reason_that_the_list_shows(
    farm: NewHost, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "device", "admit", "phone-1")
    said(capsys, "device", "cordon", "phone-1", "--reason", "the battery swells")
    assert run("devices") == 0
    listed = capsys.readouterr().out
    assert "phone-1: cordoned: the battery swells" in listed
    assert "phone-2: farm device admit phone-2" in listed
    # Without words for how long ago something was: those change while one looks.
    assert run("devices", "--json") == 0
    document = capsys.readouterr().out
    assert run("device", "list", "--json") == 0
    assert capsys.readouterr().out == document
    said(capsys, "device", "uncordon", "phone-1")
    assert shown(capsys, "phone-1")["admin"] == "active"


def test_retiring_shows_its_plan_and_asks_where_someone_can_answer(
    farm: NewHost, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = refused(capsys, "device", "retire", "phone-1")
    assert asked.startswith(
        "phone-1 on bench-1: 0 queued jobs will be cancelled.\nerror: confirmation needs a terminal"
    )
    assert shown(capsys, "phone-1")["admin"] == "pending"
    assert "phone-1 is retired now" in said(capsys, "device", "retire", "phone-1", "--yes")


def test_a_phone_is_held_for_a_person_and_released_by_that_person(
    farm: NewHost, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = said(capsys, "device", "reserve", "phone-1", "--for", "2h")
    assert held.startswith("phone-1 is reserved by anna until ")
    assert held.endswith("It is reserved for you. Connect to it: farm adb phone-1 shell\n")
    monkeypatch.setenv("FARM_USER", "bert")
    taken = refused(capsys, "device", "reserve", "phone-1", "--for", "1h")
    assert "phone-1 is reserved by anna until" in taken
    assert "hint: ask anna, or take it: farm device release phone-1 --force" in taken
    assert "is reserved by anna" in refused(capsys, "adb", "phone-1", "shell")
    assert "back in the pool" in said(capsys, "device", "release", "phone-1", "--force")
    assert said(capsys, "device", "release", "phone-1") == "Nothing changed: no one holds phone-1.\n"


def test_a_level_is_accepted_with_a_reason_once_there_is_one(
    farm: NewHost, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no reference run yet" in refused(
        capsys, "device", "rebaseline", "phone-1", "--reason", "new battery"
    )
    assert "a reason has 1 to 500" in refused(capsys, "device", "rebaseline", "phone-1", "--reason", "")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("phone-1/rebaseline", {"by": "anna"}, 422),
        ("phone-1/rebaseline", {"by": "anna", "reason": "new battery"}, 409),
        ("nobody/admit", {"by": "anna"}, 404),
        ("phone/admit", {"by": "anna"}, 422),
        ("phone-1/admit", {}, 422),
        ("phone-1/admit", {"by": "two words"}, 422),
        ("phone-1/uncordon", {"by": "anna"}, 409),
        ("phone-1/reserve", {"by": "anna", "for_s": 0}, 422),
        ("phone-1/dance", {"by": "anna"}, 404),
    ],
)
def test_what_cannot_be_done_is_a_problem_document(
    farm: NewHost, path: str, body: dict[str, object], status: int
) -> None:
    answer = farm.http.post(f"/api/v1/devices/{path}", json=body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["hint"]


def test_a_held_exchange_is_answered_as_soon_as_a_device_action_is_asked_for(farm: NewHost) -> None:
    agent = farm.enroll("bench-3")
    said = {"devices": (phone("phone-3"),)}
    agent.exchange(**said)
    asking = Timer(0.2, lambda: ask(farm.url))
    asking.start()
    answer = agent.exchange(wait_s=20.0, **said).json()
    asking.join()
    assert [device_action["kind"] for device_action in answer["device_actions"]] == ["identify"]


def ask(url: str) -> None:
    """Somebody else asks for an errand."""
    with httpx.Client(base_url=url, trust_env=False) as other:
        assert other.post("/api/v1/devices/phone-3/identify", json={"by": "anna"}).status_code == 202
