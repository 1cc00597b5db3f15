"""A farm that asks for tokens, from the first command to the last, as processes."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from farm.cli.shell.main import main
from tests.support.farm.processes import FarmProcess, Process, eventually

FARM = [sys.executable, "-m", "farm.cli.shell.main"]


def farm_command(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("FARM_")},
        "XDG_CONFIG_HOME": str(folder / "config"),
        **variables,
    }
    return subprocess.run(
        [*FARM, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1"])
@pytest.mark.invariant("I19")
def test_no_one_else_is_served_before_an_admin_has_a_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["up", "--port", "0", "--no-agent", "--bind", address, "--data", str(tmp_path / "farm")])
    assert left.value.code == 2
    error, hint = capsys.readouterr().err.splitlines()[-2:]
    assert "needs an access token" in error
    assert "farm token create --role admin --name NAME --out FILE" in hint


@pytest.mark.long
@pytest.mark.parametrize("is_there_already", [False, True])
def test_no_other_user_can_read_what_a_farm_and_its_agent_write(
    tmp_path: Path, is_there_already: bool
) -> None:
    folder = tmp_path / "lab"
    if is_there_already:
        folder.mkdir(mode=0o755)
    up = f"umask 000; exec {shlex.join([*FARM, 'up', '--port', '0', '--data', str(folder)])}"
    farm = Process(["/bin/sh", "-c", up], tmp_path / "log")
    farm.spawn()
    try:
        eventually(lambda: (folder / "agent" / "credential.json").exists(), "the agent has enrolled")
        target = tmp_path / "backup"
        made = farm_command(tmp_path, "admin", "backup", str(target), "--data", str(folder))
        assert made.returncode == 0, made.stderr
        written = [folder, *folder.rglob("*"), target, *target.rglob("*")]
        assert {path.name for path in written} >= {"farm.sqlite3", "farm.json", "blobs", "manifest.json"}
        modes = {path: path.lstat().st_mode for path in written if not path.is_symlink()}
        assert [path for path, mode in modes.items() if mode & 0o077] == []
    finally:
        farm.stop()


@pytest.mark.long
@pytest.mark.invariant("I19")
def test_a_team_gets_its_tokens_and_uses_them(tmp_path: Path) -> None:
    farm = FarmProcess(tmp_path / "lab", environment={"FARM_REQUIRE_TOKENS": "1"})
    made = farm_command(
        tmp_path, "token", "create", "--role", "admin", "--name", "root", "--data", "lab", "--out", "admin"
    )
    assert made.returncode == 0, made.stderr
    assert "No farm runs" in made.stderr
    farm.start()
    try:
        where = {"FARM_DATA_DIR": "lab"}
        refused = farm_command(tmp_path, "devices", **where)
        assert refused.returncode == 2
        assert "hint: " in refused.stderr
        login = farm_command(tmp_path, "login", farm.url, "--token-file", "admin")
        assert login.returncode == 0, login.stderr
        # Now the farm runs, and is asked itself.
        made = farm_command(
            tmp_path, "token", "create", "--role", "viewer", "--name", "vera", "--out", "viewer", **where
        )
        assert made.returncode == 0, made.stderr
        said = farm_command(tmp_path, "whoami", "--json", FARM_TOKEN_FILE="viewer", FARM_URL=farm.url)
        assert json.loads(said.stdout) == {
            "url": farm.url, "name": "vera", "role": "viewer", "is_authenticated": True,
        }  # fmt: skip
    finally:
        farm.stop()
