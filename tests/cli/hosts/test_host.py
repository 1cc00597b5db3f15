"""`farm host list` and `farm host` against the farm's own API: what they change, say and refuse."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from farm.cli.shell.main import main
from farm.wire.agents.protocol import ExchangeAnswer
from tests.support.farm.http_farm import HttpAgent, HttpFarm, http_farm
from tests.support.farm.service_fixture import good_evidence, phone, report_body


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpFarm]:
    monkeypatch.setenv("FARM_USER", "anna")
    with http_farm(tmp_path / "data") as served:
        monkeypatch.setenv("FARM_URL", served.url)
        yield served


@pytest.fixture
def agent(farm: HttpFarm) -> HttpAgent:
    """A host with a phone that is at its enrolment check."""
    return farm.enroll()


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command that must work says on stderr."""
    code = run(*words)
    printed = capsys.readouterr()
    assert (code, printed.out) == (0, ""), printed.err
    return printed.err


def fields(line: str) -> list[str]:
    """The cells of a row of a table."""
    return re.split(r" {2,}", line.strip())


def begun(agent: HttpAgent) -> ExchangeAnswer:
    answer = agent.exchange(devices=(phone("phone-1"),))
    return ExchangeAnswer.model_validate_json(answer.content)


def test_hosts_are_listed_with_their_agents_phones_and_runs(
    farm: HttpFarm, agent: HttpAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(agent)
    assert run("hosts", "--json") == 0
    (view,) = json.loads(capsys.readouterr().out)
    assert (view["host_id"], view["state"], view["session"]) == ("bench-1", "active", "live")
    assert (view["agent_version"], view["devices_by_state"], len(view["runs"])) == ("test", {"busy": 1}, 1)
    assert run("host", "list") == 0
    heads, host = map(fields, capsys.readouterr().out.splitlines()[:2])
    listed = dict(zip(heads, host, strict=True))
    assert (listed["host"], listed["runs"], listed["devices"]) == ("bench-1", "1", "1 busy")
    assert run("host", "show", "bench-1") == 0
    shown = capsys.readouterr().out
    assert "on phone-1, claimed" in shown
    assert run("host", "show", "bench-1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["devices"][0]["device_id"] == "phone-1"


@pytest.mark.fault(49)
@pytest.mark.parametrize(
    ("ahead_s", "column", "sheet"), [(3600.0, "+1 h 0 min", "ahead of"), (-0.25, "-250 ms", "behind")]
)
def test_the_clock_of_a_host_is_shown_beside_the_farms(
    farm: HttpFarm,
    agent: HttpAgent,
    capsys: pytest.CaptureFixture[str],
    ahead_s: float,
    column: str,
    sheet: str,
) -> None:
    assert run("host", "show", "bench-1") == 0
    assert "not compared with the farm's yet" in capsys.readouterr().out
    difference = {"ahead_s": ahead_s, "uncertainty_s": 0.002}
    assert agent.post("/clock", json={"difference": difference}).status_code == 200
    assert run("host", "list") == 0
    heads, host, *notes = capsys.readouterr().out.splitlines()
    assert dict(zip(fields(heads), fields(host), strict=True))["clock"] == column
    assert any("its clock is" in note for note in notes) is (ahead_s > 60)
    assert run("host", "show", "bench-1") == 0
    assert f"{sheet} the farm's (± 2.00 ms), compared" in capsys.readouterr().out


@pytest.mark.parametrize(
    "difference",
    [
        {"ahead_s": 1e12, "uncertainty_s": 0},
        {"ahead_s": 0, "uncertainty_s": -1},
        {"ahead_s": 0, "uncertainty_s": 61},
        {"ahead_s": "NaN", "uncertainty_s": 0},
        {"ahead_s": 0},
        {"ahead_s": 0, "uncertainty_s": 0, "more": 1},
    ],
)
def test_a_difference_that_no_clock_has_is_refused(agent: HttpAgent, difference: dict[str, object]) -> None:
    assert agent.post("/clock", json={"difference": difference}).status_code == 422


@pytest.mark.fault(30)
def test_draining_says_what_still_runs_and_waits_for_it(
    farm: HttpFarm, agent: HttpAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    (check,) = begun(agent).assignments

    def finish() -> None:
        while farm.http.get("/api/v1/hosts").json()[0]["state"] != "draining":
            pass
        agent.post(f"/attempts/{check.attempt_id}/report", content=report_body(good_evidence(check)))
        clean = phone("phone-1").model_copy(update={"cleaned_fence": check.fence})
        agent.exchange(devices=(clean,))

    Thread(target=finish).start()
    words = said(capsys, "host", "drain", "bench-1", "--reason", "a new hub", "--wait").splitlines()
    assert words[0] == "bench-1 is draining now; 1 of its runs go on to their ends."
    assert words[1] == f"job {check.job_id} runs on phone-1 (claimed)"
    assert words[-1] == "bench-1 is idle."
    assert run("hosts") == 0
    assert "bench-1: draining: a new hub" in capsys.readouterr().out
    assert said(capsys, "host", "drain", "bench-1").startswith("Nothing changed: ")
    assert said(capsys, "host", "activate", "bench-1") == "bench-1 is active now.\n"


def test_a_limit_is_set_and_taken_away(
    farm: HttpFarm, agent: HttpAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, "host", "limit", "bench-1", "--runs", "2") == "bench-1 may have 2 runs at once.\n"
    assert said(capsys, "host", "limit", "bench-1", "--runs", "1") == "bench-1 may have 1 run at once.\n"
    assert run("host", "limit", "bench-1") == 2
    assert "hint: " in capsys.readouterr().err
    assert "any number of runs" in said(capsys, "host", "limit", "bench-1", "--none")


@pytest.mark.invariant("I19")
@pytest.mark.fault(52)
def test_a_retired_hosts_credential_is_refused_from_then_on(
    farm: HttpFarm, agent: HttpAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    (check,) = begun(agent).assignments
    assert run("host", "retire", "bench-1") == 2
    planned = capsys.readouterr().err
    assert planned.startswith("bench-1 has 1 device: phone-1.\njob ")
    assert "--yes skips the confirmation" in planned
    assert agent.exchange(devices=(phone("phone-1"),)).status_code == 200
    assert "1 of its runs were lost" in said(capsys, "host", "retire", "bench-1", "--yes")
    assert agent.exchange(devices=(phone("phone-1"),)).status_code == 401
    late = agent.post(f"/attempts/{check.attempt_id}/report", content=report_body(good_evidence(check)))
    assert late.status_code == 401
    assert farm.http.get("/api/v1/hosts").json()[0]["session"] == "closed"


def test_a_host_that_is_not_there_is_refused_with_those_that_are(
    farm: HttpFarm, agent: HttpAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("host", "show", "bench-7") == 2
    assert "known here: bench-1" in capsys.readouterr().err


def test_a_check_is_asked_for_and_a_word_needs_a_reason(
    farm: HttpFarm, agent: HttpAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(agent)
    assert "queued already" in said(capsys, "device", "check", "phone-1")
    assert run("device", "release", "phone-1", "--assert-clean") == 2
    assert "hint: add --reason" in capsys.readouterr().err
    assert run("device", "release", "phone-1", "--assert-clean", "--reason", "reset") == 2
    assert "job" in capsys.readouterr().err
