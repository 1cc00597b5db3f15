"""Join tokens from the command line to the farm's database, which keeps their hashes only."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from farm.cli.shell.main import main
from farm.database.tables import events, join_tokens
from tests.support.farm.http_farm import HttpFarm, http_farm


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpFarm]:
    with http_farm(tmp_path / "farm", agents_bind="10.0.0.7:8471") as farm:
        monkeypatch.setenv("FARM_URL", farm.url)
        yield farm


def token_command(*words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["token", *words])
    return int(left.value.code or 0)


def enroll(farm: HttpFarm, token: str, host: str = "bench-1") -> int:
    body = {"host": host, "join_token": token}
    return farm.http.post("/api/v1/agent/enroll", json=body).status_code


def test_the_token_is_all_that_is_printed(farm: HttpFarm, capsys: pytest.CaptureFixture[str]) -> None:
    assert token_command("create") == 0
    said = capsys.readouterr()
    assert enroll(farm, said.out.removesuffix("\n")) == 200
    assert "farm agent join http://10.0.0.7:8471 --token-file FILE --plain-http " in said.err
    assert said.out.strip() not in said.err


def test_a_file_of_ones_own_can_take_it(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "token"
    assert token_command("create", "--out", str(file), "--auto-admit") == 0
    assert capsys.readouterr().out == ""
    assert file.stat().st_mode & 0o777 == 0o600
    assert enroll(farm, file.read_text().strip()) == 200


def test_a_file_that_is_there_already_is_kept_and_no_token_is_made(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "token"
    file.write_text("mine")
    assert token_command("create", "--out", str(file)) == 2
    assert "hint: " in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert farm.http.get("/api/v1/tokens").json() == []


@pytest.mark.parametrize("span", ["59s", "31d", "1", "soon", "-1h"])
def test_a_span_that_cannot_be_leaves_no_file_behind(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str], span: str
) -> None:
    assert token_command("create", f"--valid={span}", "--out", str(tmp_path / "token")) == 2
    assert "hint: " in capsys.readouterr().err
    assert not (tmp_path / "token").exists()


def test_a_farm_that_refuses_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARM_URL", "http://127.0.0.1:9")
    assert token_command("create", "--out", str(tmp_path / "token")) == 10
    assert not (tmp_path / "token").exists()


def test_the_listing_says_who_joined_and_never_a_token(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    token_command("create", "--json")
    made = json.loads(capsys.readouterr().out)
    enroll(farm, made["token"], "lab-2")
    assert token_command("list", "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["state"], listed["used_by"]) == ("used", "lab-2")
    assert made["token"] not in json.dumps(listed)
    with farm.context.database.engine.connect() as connection:
        rows = connection.execute(sa.select(join_tokens)).all()
    assert made["token"] not in repr(rows)


def test_a_revoked_token_lets_no_one_in(farm: HttpFarm, capsys: pytest.CaptureFixture[str]) -> None:
    token_command("create", "--json")
    made = json.loads(capsys.readouterr().out)
    assert token_command("revoke", made["token_id"]) == 0
    assert enroll(farm, made["token"]) == 401
    assert token_command("revoke", made["token_id"]) == 2
    assert token_command("revoke", "unknown") == 2


def test_each_step_of_a_token_is_an_event(
    farm: HttpFarm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARM_USER", "ann")
    for _ in range(2):
        token_command("create", "--json")
    used, revoked = json.loads("[" + capsys.readouterr().out.replace("}\n{", "},{") + "]")
    enroll(farm, used["token"])
    token_command("revoke", revoked["token_id"])
    wanted = sa.select(events.c.kind, events.c.actor, events.c.subject_id).where(
        events.c.subject == "join_token"
    )
    with farm.context.database.engine.connect() as connection:
        told = [tuple(row) for row in connection.execute(wanted.order_by(events.c.event_id))]
    assert told == [
        ("join_token_created", "user:ann", used["token_id"]),
        ("join_token_created", "user:ann", revoked["token_id"]),
        ("join_token_used", "agent:bench-1", used["token_id"]),
        ("join_token_revoked", "user:ann", revoked["token_id"]),
    ]


def test_a_token_for_a_host_is_no_other_hosts(farm: HttpFarm, capsys: pytest.CaptureFixture[str]) -> None:
    assert token_command("create", "--host", "lab-2") == 0
    token = capsys.readouterr().out.strip()
    assert enroll(farm, token, "lab-3") == 401
    assert token_command("list") == 0
    assert "lab-2" in capsys.readouterr().out
    assert enroll(farm, token, "lab-2") == 200
    assert token_command("create", "--role", "viewer", "--name", "ann", "--host", "lab-2") == 2
    assert "for join tokens" in capsys.readouterr().err
