"""`farm admin`: settings, migrations, backups, on the command line."""

import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agents.host.config import AgentConfig
from farm.cli.admin.setting_sources import COMMAND_VARIABLES, setting_meanings, unknown_variables
from farm.cli.shell.main import main
from farm.config import FarmConfig
from farm.core.errors import SessionFenced
from farm.daemon import data_folder_lock
from tests.support.database.postgres import PostgresServer
from tests.support.farm.service_fixture import FarmRig


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FARM_AGENT_DATA_DIR", str(tmp_path / "agent"))
    monkeypatch.setenv("FARM_USER", "ann")


def ran(*words: str) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as left:
        main(["admin", *words])
    assert left.value.code is None or isinstance(left.value.code, int)
    return left.value.code or 0


class Terminal(io.StringIO):
    """What a person types."""

    def isatty(self) -> bool:
        return True


def document(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def data(farm: FarmRig) -> str:
    """The data folder of a farm with a variant, which may be at work."""
    farm.variant()
    return str(farm.path.parent)


def revision(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def set_revision(path: Path, to: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (to,))
        connection.commit()


def test_every_setting_has_a_meaning_and_is_shown_with_where_it_came_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("FARM_PORT", "9000")
    monkeypatch.setenv("FARM_AGENT_JOIN_TOKEN", "bfj_do-not-tell")
    monkeypatch.setenv("FARM_DATABASE_URL", "postgresql://farm:do-not-tell@db/farm")
    assert ran("config", "--data", str(tmp_path), "--json") == 0
    said = capsys.readouterr().out
    assert "do-not-tell" not in said
    by_name = {each["name"]: each for part in ("farm", "agent") for each in json.loads(said)[part]}
    assert len(by_name) == len(FarmConfig.model_fields) + len(AgentConfig.model_fields)
    assert all(each["meaning"] for each in by_name.values())
    sources = {name: by_name[name]["source"] for name in ("FARM_PORT", "FARM_DATA_DIR", "FARM_REAP_EVERY_S")}
    assert list(sources.values()) == ["environment", "command line", "default"]
    assert by_name["FARM_PORT"]["value"] == "9000"
    assert by_name["FARM_AGENT_JOIN_TOKEN"]["value"] == "(secret)"
    assert by_name["FARM_DATABASE_URL"]["value"].endswith("@db/farm")


def test_a_meaning_of_several_lines_is_one_and_a_setting_without_one_shares_that_above() -> None:
    found = setting_meanings(FarmConfig)
    assert (
        found["evidence_limit_bytes"]
        == "Limit beyond which raw output is deleted, oldest first; None: no limit."
    )
    assert found["bind"] != found["blobs_path"]
    agents = setting_meanings(AgentConfig)
    assert agents["join_token_file"] == agents["join_token"]


def test_a_variable_that_no_one_reads_is_remarked_on_with_what_was_probably_meant(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARM_BLOB_LIMIT_BYTES", "1")
    assert ran("config") == 0
    assert "FARM_BLOB_LIMIT_BYTES is set but has no effect: did you mean FARM_BLOBS_LIMIT_BYTES?" in (
        capsys.readouterr().err
    )
    read = {*COMMAND_VARIABLES, "FARM_BIND", "farm_agent_host", "HOME"}
    assert unknown_variables(dict.fromkeys(read, "x")) == []


def test_migrate_says_what_there_is_and_brings_it_up_to_date(
    data: str, farm: FarmRig, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = revision(farm.path)
    assert ran("migrate", "--check", "--json", "--data", data) == 0
    assert document(capsys) == {"before": newest, "revision": newest, "newest": newest}
    assert ran("migrate", "--data", data) == 0


def test_a_database_of_an_older_release_is_migrated_when_told_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "old"
    data.mkdir()
    sqlite3.connect(data / "farm.sqlite3").close()
    assert ran("migrate", "--check", "--data", str(data)) == 1
    assert ran("migrate", "--data", str(data)) == 0
    assert "migrated from schema none" in capsys.readouterr().err
    assert ran("migrate", "--check", "--data", str(data)) == 0


def test_a_database_of_a_newer_release_is_refused_by_every_command(
    data: str, farm: FarmRig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = revision(farm.path)
    set_revision(farm.path, "9999")
    try:
        assert ran("migrate", "--check", "--data", data) == 1
        for words in (["migrate"], ["backup", str(tmp_path / "backups")]):
            assert ran(*words, "--data", data) == 6
            assert "hint: run the release that created it" in capsys.readouterr().err
        with pytest.raises(SystemExit) as left:
            main(["up", "--data", data, "--port", "0", "--no-agent"])
        assert left.value.code == 6
        assert "newer release (9999)" in capsys.readouterr().err
        assert revision(farm.path) == "9999"
    finally:
        set_revision(farm.path, newest)


def test_a_backup_is_made_shown_and_restored(
    data: str, farm: FarmRig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backups, new = str(tmp_path / "backups"), str(tmp_path / "new")
    assert ran("backup", backups, "--data", data, "--json") == 0
    made = document(capsys)
    assert made["with_artifacts"]
    assert ran("restore", backups, "--yes", "--data", new, "--json") == 0
    restored = document(capsys)
    assert restored["rows"] == sum(made["rows"].values())
    assert restored["artifacts"] == made["artifacts"] > 0
    events = "SELECT actor FROM events WHERE kind = 'database_epoch_begun'"
    with closing(sqlite3.connect(tmp_path / "new" / "farm.sqlite3")) as connection:
        assert connection.execute(events).fetchall() == [("user:ann",)]
    # Once more: there is a database now.
    assert ran("restore", backups, "--yes", "--data", new) == 2
    assert "hint: move it away first" in capsys.readouterr().err


def test_a_backup_is_verified_when_told_to_and_a_damaged_artifact_is_named(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backups = str(tmp_path / "backups")
    assert ran("backup", backups, "--data", data) == 0
    assert ran("backup", backups, "--verify") == 0
    assert "is intact" in capsys.readouterr().err
    damaged = next((tmp_path / "backups" / "artifacts").glob("??/*"))
    content = damaged.read_bytes()
    damaged.unlink()
    damaged.write_bytes(b"x" + content[1:])
    assert ran("backup", backups, "--verify") != 0
    said = capsys.readouterr().err
    assert f"1 artifact damaged or missing: {damaged}" in said
    assert "hint: remove the damaged files" in said


def test_a_restore_shows_what_it_would_do_and_does_nothing_without_a_yes(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    backups, new = str(tmp_path / "backups"), tmp_path / "new"
    ran("backup", backups, "--data", data)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert ran("restore", backups, "--data", str(new)) == 2
    assert "--yes skips the confirmation" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert ran("restore", backups, "--data", str(new)) == 1
    assert f"database   {new / 'farm.sqlite3'}: empty; receives all rows" in capsys.readouterr().err
    assert not new.exists()


def test_a_farm_moves_to_postgresql_by_a_backup_and_a_restore(
    data: str,
    tmp_path: Path,
    postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    backups, new = str(tmp_path / "backups"), str(tmp_path / "new")
    ran("backup", backups, "--data", data)
    with postgres.database() as name:
        monkeypatch.setenv("FARM_DATABASE_URL", postgres.url(name))
        assert ran("restore", backups, "--yes", "--data", new) == 0
        capsys.readouterr()
        assert ran("migrate", "--check", "--data", new) == 0
        assert ran("backup", str(tmp_path / "second"), "--data", new, "--json") == 0
        made = document(capsys)
    assert made["source"] == "postgresql"
    assert made["rows"]["variants"] == 1


def test_where_there_is_no_farm_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["migrate"], ["backup", str(tmp_path / "backups")]):
        assert ran(*words, "--data", str(tmp_path / "none")) == 2
        assert "there is no farm in" in capsys.readouterr().err
    assert ran("restore", str(tmp_path / "none"), "--yes") == 2
    assert "is no backup" in capsys.readouterr().err


@pytest.mark.fault(44)
def test_a_database_that_was_put_back_by_other_means_begins_an_epoch_when_told_to(
    data: str, farm: FarmRig, capsys: pytest.CaptureFixture[str]
) -> None:
    host = farm.host()
    assert ran("epoch", "--begin", " ", "--data", data) == 2
    assert ran("epoch", "--begin", "restored by the provider", "--data", data, "--json") == 0
    first, second = document(capsys)
    assert (first["cause"], second["cause"]) == ("created", "restored by the provider")
    assert host.database_epoch == first["epoch"]
    with pytest.raises(SessionFenced, match="restored by the provider"):
        host.exchange()
    assert host.restart().database_epoch == second["epoch"]
    assert ran("epoch", "--data", data) == 0
    assert "restored by the provider" in capsys.readouterr().out


def test_no_epoch_begins_while_a_farm_is_at_work(
    data: str, farm: FarmRig, capsys: pytest.CaptureFixture[str]
) -> None:
    before = farm.rows("SELECT epoch FROM database_epochs")
    with data_folder_lock(Path(data)):
        assert ran("epoch", "--begin", "restored by the provider", "--data", data) == 2
    assert "a farm already runs" in capsys.readouterr().err
    assert farm.rows("SELECT epoch FROM database_epochs") == before
