"""`farm agent join` and `status`: what is asked, kept and said, against a farm's listener for agents."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.daemon import main as run_agent
from agents.host.config import SAVED_SETTINGS_FILE, SavedSettings, agent_config, find_saved_settings
from agents.host.data_dir import host_lock
from agents.link.enrollment import find_credential
from agents.virtual.pool import find_device
from farm.cli.shell.main import main
from farm.database.transaction import bind_tx
from farm.services.access.enrollment import create_join_token
from tests.support.farm.http_farm import HttpAgent, HttpFarm, http_farm
from tests.support.farm.processes import eventually


@pytest.fixture(autouse=True)
def _no_settings_of_the_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("FARM_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[HttpFarm]:
    with http_farm(tmp_path / "farm") as farm:
        yield farm


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "agent"


def new_token(farm: HttpFarm) -> str:
    return farm.context.database.write(
        bind_tx(create_join_token, now=farm.context.clock.now()), auto_admit=False
    )


def agent(*words: str) -> int:
    """The exit code of `farm agent`."""
    with pytest.raises(SystemExit) as left:
        main(["agent", *words])
    return int(left.value.code or 0)


def join(farm: HttpFarm, folder: Path, *words: str) -> int:
    token = folder.with_suffix(".token")
    token.write_text(new_token(farm))
    token.chmod(0o600)
    return agent("join", farm.url, "--token-file", str(token), "--data-dir", str(folder), *words)


def test_joining_keeps_farm_and_credential_for_the_owner_alone(
    farm: HttpFarm, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert join(farm, folder, "--host", "lab-2") == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert f"farm agent run --data-dir {folder}" in said.err
    config = agent_config(data_dir=folder)
    assert (config.farm_url, config.host) == (farm.url, "lab-2")
    assert {path.stat().st_mode & 0o777 for path in folder.glob("*.json")} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


def test_an_address_without_encryption_is_refused_until_it_is_allowed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("join", "http://192.0.2.1:8471", "--data-dir", str(folder))
    monkeypatch.setattr("sys.stdin", io.StringIO("bfj_token"))
    assert agent(*words) == 2
    assert "http://192.0.2.1:8471 is not encrypted" in capsys.readouterr().err
    assert find_credential(folder) is None


def test_what_was_allowed_at_joining_is_kept(farm: HttpFarm, folder: Path) -> None:
    assert join(farm, folder) == 0
    assert not agent_config(data_dir=folder).plain_http
    assert join(farm, folder, "--plain-http") == 0
    assert agent_config(data_dir=folder).plain_http


def test_a_token_comes_by_standard_input(
    farm: HttpFarm, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{new_token(farm)}\n"))
    assert agent("join", farm.url, "--data-dir", str(folder)) == 0
    assert find_credential(folder) is not None


def test_a_name_that_no_host_can_have_is_said_in_words(
    farm: HttpFarm, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert join(farm, folder, "--host", "lab 2") == 2
    assert "FARM_AGENT_HOST=lab 2: blanks, `/` and control characters" in capsys.readouterr().err


def test_who_has_no_good_token_does_not_learn_which_hosts_there_are(farm: HttpFarm) -> None:
    token = new_token(farm)
    enrolled = farm.http.post("/api/v1/agent/enroll", json={"host": "lab-2", "join_token": token})
    HttpAgent(farm, enrolled.json()["credential"]).exchange()
    guess = farm.http.post("/api/v1/agent/enroll", json={"host": "lab-2", "join_token": "guessed"})
    assert guess.status_code == 401
    taken = new_token(farm)
    clone = farm.http.post("/api/v1/agent/enroll", json={"host": "lab-2", "join_token": taken})
    assert "an agent called lab-2 is at work" in clone.json()["detail"]
    other = farm.http.post("/api/v1/agent/enroll", json={"host": "lab-3", "join_token": taken})
    assert other.status_code == 200, "a refusal leaves the token good"


def test_a_token_is_no_argument(farm: HttpFarm, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token = new_token(farm)
    for words in ([farm.url, token], [token]):
        assert agent("join", *words, "--data-dir", str(folder)) == 2
        said = capsys.readouterr().err
        assert "hint: farm agent join URL --token-file FILE" in said
        assert token not in said
    assert not folder.exists()


def test_no_secret_looks_like_an_option(farm: HttpFarm) -> None:
    assert {new_token(farm)[:4] for _ in range(200)} == {"bfj_"}


def test_no_token_at_all_is_said_with_where_to_get_one(
    farm: HttpFarm, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert agent("join", farm.url, "--data-dir", str(folder)) == 2
    assert "farm token create" in capsys.readouterr().err


def test_a_token_file_that_others_can_read_is_remarked_on(
    farm: HttpFarm, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = folder.with_suffix(".token")
    token.write_text(new_token(farm))
    token.chmod(0o644)
    assert agent("join", farm.url, "--token-file", str(token), "--data-dir", str(folder)) == 0
    assert "other users can read" in capsys.readouterr().err


def test_joining_again_says_what_it_replaces_and_puts_unreported_work_aside(
    farm: HttpFarm, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    join(farm, folder, "--host", "lab-2")
    (folder / "spool" / "7.json").write_text("evidence")
    before = find_credential(folder)
    capsys.readouterr()
    assert join(farm, folder, "--host", "lab-3") == 0
    said = capsys.readouterr().err
    assert f"It was lab-2 of the farm at {farm.url}" in said
    assert "will not be reported: 1" in said
    assert (folder / "spool" / "refused" / "7.json").read_text() == "evidence"
    assert find_credential(folder) != before


def test_a_token_that_was_used_changes_nothing(
    farm: HttpFarm, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    join(farm, folder, "--host", "lab-2")
    before = find_credential(folder), find_saved_settings(folder)
    token = folder.with_suffix(".token")
    words = ["--token-file", str(token), "--data-dir", str(folder)]
    assert agent("join", farm.url, "--host", "lab-3", *words) == 2
    assert "farm token create" in capsys.readouterr().err
    assert (find_credential(folder), find_saved_settings(folder)) == before


def test_an_agent_that_runs_is_not_joined_under_its_feet(farm: HttpFarm, folder: Path) -> None:
    folder.mkdir()
    with host_lock(folder):
        assert join(farm, folder) == 5


def test_a_farm_that_cannot_be_reached_is_named_with_what_to_look_at(
    farm: HttpFarm, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = folder.with_suffix(".token")
    token.write_text("any")
    assert agent("join", "http://127.0.0.1:9", "--token-file", str(token), "--data-dir", str(folder)) == 10
    said = capsys.readouterr().err
    assert "http://127.0.0.1:9" in said
    assert "--agents-on" in said


@pytest.mark.parametrize("address", ["http://ann:hunter2@farm.lab", "ann:hunter2@farm.lab"])
def test_an_address_with_a_password_is_repeated_by_no_command(
    folder: Path, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent("join", address, "--data-dir", str(folder)) == 2
    monkeypatch.setenv("FARM_AGENT_FARM_URL", address)
    for command in ("run", "status"):
        assert agent(command, "--data-dir", str(folder)) == 2
    with pytest.raises(SystemExit):
        run_agent(["--data-dir", str(folder)])
    said = "".join(capsys.readouterr())
    assert said.count("the address of a farm has no name and no password") == 4
    assert "hunter2" not in said


def test_an_address_with_a_password_that_was_saved_is_not_repeated_either(
    farm: HttpFarm, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    join(farm, folder, "--host", "lab-2")
    saved = SavedSettings(farm_url="http://ann:hunter2@farm.lab", host="lab-2")
    (folder / SAVED_SETTINGS_FILE).write_text(saved.model_dump_json())
    assert agent("run", "--data-dir", str(folder)) == 2
    assert join(farm, folder, "--host", "lab-3") == 0
    said = "".join(capsys.readouterr())
    assert "It was lab-2 of the farm at another address before." in said
    assert "hunter2" not in said


def test_status_tells_of_the_agent_from_its_folder(
    farm: HttpFarm, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    join(farm, folder, "--host", "lab-2")
    (folder / "spool" / "7.json").write_text("evidence")
    (folder / "attempts" / "8.json").write_text('{"attempt_id": 8, "device_id": "p", "phase": "measuring"}')
    (folder / "attempts" / "9.json").write_text("{half")
    capsys.readouterr()
    with host_lock(folder):
        assert agent("status", "--data-dir", str(folder), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "host": "lab-2",
        "farm_url": farm.url,
        "data_dir": str(folder),
        "has_joined": True,
        "pid": os.getpid(),
        "adb_server": None,
        "attempts": [{"attempt_id": 8, "device_id": "p", "phase": "measuring"}],
        "waiting_reports": 1,
    }
    assert agent("status", "--data-dir", str(folder)) == 0
    assert "does not run" in capsys.readouterr().out


def test_status_of_an_agent_that_never_was_makes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent("status", "--data-dir", str(folder)) == 0
    assert "not joined" in capsys.readouterr().out
    assert not folder.exists()


def test_the_environment_stands_before_what_joining_kept(
    farm: HttpFarm, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    join(farm, folder, "--host", "lab-2")
    monkeypatch.setenv("FARM_AGENT_FARM_URL", "https://farm.lab")
    monkeypatch.setenv("FARM_AGENT_DATA_DIR", str(folder))
    config = agent_config()
    assert (config.farm_url, config.host) == ("https://farm.lab", "lab-2")
    assert agent_config(farm_url="http://given").farm_url == "http://given"


def test_an_agent_that_never_joined_says_how_to(folder: Path) -> None:
    run = [sys.executable, "-m", "farm.cli.shell.main", "agent", "run", "--data-dir", str(folder)]
    environment = {**os.environ, "FARM_AGENT_ADB_USB": "0"}
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "farm agent join URL" in done.stderr
    assert not folder.exists(), "a folder would look like an agent that was set up"


@pytest.mark.long
def test_an_agent_brings_its_own_virtual_devices_and_ends_them(farm: HttpFarm, folder: Path) -> None:
    assert join(farm, folder, "--host", "lab-2") == 0
    command = [sys.executable, "-m", "farm.cli.shell.main", "agent", "run", "--data-dir", str(folder)]
    command += ["--virtual", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            eventually(lambda: len(online(farm)) == 2, "both devices are online")
            assert {device["host"] for device in online(farm)} == {"lab-2"}
            assert all(device["virtual"] for device in online(farm))
            second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert "already" in second.stderr or "runs" in second.stderr
            assert second.returncode != 0
            states = [state for state in (folder / "virtual").iterdir() if state.is_dir()]
            assert all(find_device(state) for state in states), "a refused agent ends no device of another"
        finally:
            process.terminate()
            _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert len(states) == 2
    assert not any(find_device(state) for state in states)


def online(farm: HttpFarm) -> list[dict[str, object]]:
    devices = farm.http.get("/api/v1/devices").json()
    return [device for device in devices if device["presence"] == "online"]


@pytest.mark.parametrize("words", [["join", "http://127.0.0.1:9", "--host", "lab-2"], ["run"]])
def test_a_folder_that_cannot_be_made_is_said_with_whose_it_should_be(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FARM_AGENT_JOIN_TOKEN", "any")
    monkeypatch.setenv("FARM_AGENT_DATA_DIR", str(tmp_path / "file" / "agent"))
    assert agent(*words) == 2
    said = capsys.readouterr().err
    assert f"{tmp_path}/file/agent cannot be used: Not a directory" in said
    assert "hint: do this as the user that the agent runs as" in said


@pytest.mark.parametrize("name", ["credential.json", "settings.json"])
def test_what_joining_kept_and_this_user_cannot_read_is_not_taken_for_missing(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # A folder in its place cannot be read as a file by root either, who may run this.
    (folder / name).mkdir(parents=True)
    assert agent("status", "--data-dir", str(folder)) == 2
    assert f"{folder} cannot be used" in capsys.readouterr().err
