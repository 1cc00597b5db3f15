"""`farm job why` and `farm matrix why` against the farm's own API."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.cli.shell.main import main
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.farm.service_fixture import FarmRig, phone


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpFarm]:
    """A farm with a matrix for a healthy phone that somebody cordoned."""
    monkeypatch.setenv("FARM_USER", "anna")
    rig = FarmRig(tmp_path / "data")
    rig.variant("float32")
    rig.variant("int8-core")
    host = rig.host()
    host.phones["phone-1"] = phone("phone-1")
    host.earn_health()
    rig.submit(rounds=2)
    rig.close()
    with http_farm(tmp_path / "data") as served:
        monkeypatch.setenv("FARM_URL", served.url)
        answer = served.http.post(
            "/api/v1/devices/phone-1/cordon", json={"by": "anna", "reason": "swollen battery"}
        )
        assert answer.status_code == 200
        yield served


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)


@pytest.mark.usefixtures("farm")
def test_a_job_says_what_is_in_its_way_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("matrix", "jobs", "1", "--json") == 0
    first = min(job["job_id"] for job in json.loads(capsys.readouterr().out))
    assert run("job", "why", str(first)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"job {first} on phone-1 waits")
    cordoned = next(number for number, line in enumerate(lines) if "cordoned by anna" in line)
    assert lines[cordoned].endswith(": swollen battery")
    assert lines[cordoned + 1] == "  hint: farm device uncordon phone-1"


@pytest.mark.usefixtures("farm")
def test_a_matrix_says_it_for_all_its_jobs_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("matrix", "why", "1") == 0
    assert "4 jobs wait for phone-1: " in capsys.readouterr().out
    assert run("matrix", "why", "1", "--json") == 0
    (device,) = json.loads(capsys.readouterr().out)["devices"]
    assert "cordoned" in [reason["code"] for reason in device["reasons"]]


@pytest.mark.usefixtures("farm")
def test_a_matrix_that_stands_still_leads_to_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("matrix", "show", "1") == 0
    assert "farm matrix why 1" in capsys.readouterr().err


@pytest.mark.usefixtures("farm")
def test_what_is_not_there_is_said_with_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("job", "why", "99"), ("matrix", "why", "99")):
        assert run(*words) == 2
        assert "\nhint: " in capsys.readouterr().err
