"""What a farm needs of its machine, and the command that says so."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agents.adb.server import AdbServer
from agents.doctor.diagnose import diagnose_agent
from agents.doctor.machine import ProcessInfo
from agents.host.config import agent_config
from farm.cli.admin.machine_checks import (
    check_database,
    check_ports,
    check_schema,
    diagnose_torch,
    import_process,
)
from farm.cli.shell.main import main
from farm.config import FarmConfig
from farm.core.operations.diagnostic import Severity
from farm.database.migrate import SchemaState
from tests.support.agents.adb_fixtures import operators_server
from tests.support.database.postgres import PostgresServer
from tests.support.farm.service_fixture import FarmRig


@pytest.fixture(autouse=True)
def _no_settings_of_the_operators(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("FARM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FARM_DATA_DIR", str(tmp_path / "farm-data"))
    monkeypatch.setenv("FARM_AGENT_DATA_DIR", str(tmp_path / "agent"))


def doctor(*words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["doctor", *words])
    return int(left.value.code or 0)


def set_revision(path: Path, revision: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))


def test_a_database_of_this_release_is_fine(farm: FarmRig) -> None:
    assert check_database(FarmConfig(data_dir=farm.path.parent)).level is Severity.OK


def test_a_database_that_is_not_there_yet_is_fine_and_stays_away(tmp_path: Path) -> None:
    assert check_database(FarmConfig(data_dir=tmp_path / "none")).level is Severity.OK
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("revision", ["0001", "9999"])
def test_a_schema_that_this_release_does_not_read_is_a_problem(tmp_path: Path, revision: str) -> None:
    rig = FarmRig(tmp_path)
    rig.close()
    set_revision(rig.path, revision)
    finding = check_database(FarmConfig(data_dir=rig.path.parent))
    assert finding.level is Severity.PROBLEM
    assert revision in finding.message


def test_an_older_schema_that_this_release_migrates_is_a_warning() -> None:
    state = SchemaState(revision="0101", newest="0102", is_known=True)
    finding = check_schema("farm.sqlite3", state)
    assert finding.level is Severity.WARNING
    assert "0101" in finding.message


def test_a_file_that_is_no_database_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "farm.sqlite3").write_bytes(b"no database at all, and long enough to be looked at" * 9)
    assert check_database(FarmConfig(data_dir=tmp_path)).level is Severity.PROBLEM


def test_a_postgresql_is_looked_at_without_being_changed(postgres: PostgresServer) -> None:
    with postgres.database("migrated") as name, postgres.database() as empty:
        ours, new, none = (FarmConfig(database_url=postgres.url(each)) for each in (name, empty, "none"))
        found = check_database(ours)
        assert found.level is Severity.OK
        assert f"/{name} opens" in found.message
        assert "none yet" in check_database(new).message
        assert "none yet" in check_database(new).message
        missing = check_database(none)
        assert missing.level is Severity.PROBLEM
        assert "createdb none" in (missing.hint or "")


def test_a_port_that_another_program_has_is_named_with_it() -> None:
    config = FarmConfig(port=8470, agents_bind="0.0.0.0:8471")
    taken = {8470: None, 8471: ProcessInfo(pid=7, command="other --server")}
    (finding,) = check_ports(config, None, taken)
    assert finding.level is Severity.PROBLEM
    assert "port 8471 is used by pid 7: other --server" in finding.message
    assert [each.level for each in check_ports(config, "http://127.0.0.1:8470", taken)] == [Severity.OK]
    assert [each.level for each in check_ports(config, None, {8470: None, 8471: None})] == [Severity.OK]


def test_torch_is_asked_of_another_process_which_says_why_it_does_not_import() -> None:
    with import_process("json") as well:
        assert diagnose_torch(well).level is Severity.OK
    with import_process("no_such_module") as broken:
        found = diagnose_torch(broken)
    assert found.level is Severity.WARNING
    assert "no_such_module" in found.message


def test_an_import_that_takes_too_long_is_ended_and_said_to_have() -> None:
    with import_process("json; __import__('signal').pause()") as stuck:
        found = diagnose_torch(stuck, deadline_s=0.05)
    assert stuck.returncode is not None
    assert found.level is Severity.WARNING
    assert "had not ended after 0.05 s" in found.message
    assert "less busy" in (found.hint or "")


def test_a_fresh_machine_has_warnings_at_most_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARM_PORT", "0")
    monkeypatch.setenv("FARM_AGENT_ADB_USB", "0")
    assert doctor("--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert {each["part"] for each in told} == {"farm", "agent"}
    assert list(tmp_path.iterdir()) == []


def test_a_problem_is_the_exit_code_of_whom_to_blame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARM_AGENT_ADB_KEY", str(tmp_path / "none"))
    monkeypatch.setenv("FARM_AGENT_ADB_USB", "0")
    assert doctor("--agent") == 5
    said = " ".join(capsys.readouterr().out.split())
    assert "hint: set or unset FARM_AGENT_ADB_KEY" in said


@pytest.mark.anyio
async def test_a_shared_server_is_asked_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with operators_server(tmp_path) as server:
        monkeypatch.setenv("FARM_AGENT_ADB_SERVER", f"127.0.0.1:{server.port}")
        found = await diagnose_agent(agent_config())
        assert await server.answers()
    (finding,) = [each for each in found if each.subject == "adb server"]
    assert finding.level is Severity.OK
    # Phones are shown the keys of whoever started it.
    assert "keys" not in {each.subject for each in found}


@pytest.mark.anyio
async def test_a_server_without_usb_shows_a_key_of_its_own(tmp_path: Path) -> None:
    async with AdbServer(tmp_path / "agent" / "adb", usb=False):
        found = await diagnose_agent(agent_config(adb_usb=False))
    (key,) = [each for each in found if each.subject == "keys"]
    assert key.level is Severity.OK
    assert str(tmp_path / "agent") in key.message
