"""Room, ports, permissions, keys, adb and the way to the farm: facts read, and what is said of them."""

import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from agents.adb.server import bundled_adb
from agents.doctor import diagnose, machine
from agents.doctor.machine import ProcessInfo, find_listener, process_text
from farm.core.operations.diagnostic import Diagnostic, Severity
from tests.support.farm.http_farm import HttpFarm, http_farm


def folder(**changes: object) -> machine.FolderProbe:
    facts = {"path": Path("/data"), "is_there": True, "is_writable": True, "is_private": True}
    return machine.FolderProbe(**{**facts, "free_bytes": 10**11, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, Severity.OK),
        ({"is_there": False}, Severity.OK),
        ({"free_bytes": 4 * 10**9}, Severity.WARNING),
        ({"free_bytes": 10**8}, Severity.PROBLEM),
        ({"is_writable": False}, Severity.PROBLEM),
        ({"is_writable": False, "is_there": False}, Severity.PROBLEM),
        ({"is_private": False}, Severity.PROBLEM),
    ],
)
def test_a_data_folder_needs_room_and_an_owner(changes: dict[str, object], level: Severity) -> None:
    (finding,) = machine.check_folder(folder(**changes), "FARM_DATA_DIR")
    assert finding.level is level
    assert is_mendable(finding)


def test_a_folder_that_is_not_made_yet_is_judged_by_where_it_would_be(tmp_path: Path) -> None:
    found = machine.probe_folder(tmp_path / "a" / "b")
    assert (found.is_there, found.is_writable, found.free_bytes > 0) == (False, True, True)


def test_a_folder_that_anybody_may_write_to_is_read_as_such(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert not machine.probe_folder(tmp_path).is_private


@pytest.mark.parametrize(
    ("limit", "level"), [(1024, Severity.WARNING), (4096, Severity.OK), (-1, Severity.OK)]
)
def test_many_phones_need_many_files(limit: int, level: Severity) -> None:
    assert machine.check_file_limit(limit).level is level


@pytest.mark.parametrize(
    ("mode", "levels"), [(0o600, [Severity.OK]), (0o640, [Severity.PROBLEM]), (None, [])]
)
def test_a_secret_is_its_owners_alone(tmp_path: Path, mode: int | None, levels: list[Severity]) -> None:
    path = tmp_path / "credential.json"
    if mode is not None:
        path.touch()
        path.chmod(mode)
    found = machine.check_private_file(path)
    assert [each.level for each in found] == levels


def test_who_listens_is_found_by_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        found = find_listener(port)
        assert found is not None
        assert (found.pid, "python" in found.command) == (os.getpid(), True)
    later = find_listener(port)
    assert later is None or later.pid != os.getpid()


def test_a_listener_of_another_user_is_there_without_a_name(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    row = "0: 0100007F:13AD 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 4711 1"
    (tmp_path / "net" / "tcp").write_text(f"  sl  local_address\n   {row}\n")
    found = find_listener(5037, tmp_path)
    assert found is not None
    assert process_text(found) == "a process of another user"


def test_the_adb_that_comes_along_runs() -> None:
    finding = machine.check_adb_version(bundled_adb())
    assert finding.message.startswith("Android Debug Bridge version 1.0.41")
    assert finding.level is Severity.OK


@pytest.mark.parametrize("program", ["#!/bin/sh\nexit 3\n", "no program\0", None])
def test_an_adb_that_does_not_run_is_a_problem(tmp_path: Path, program: str | None) -> None:
    binary = tmp_path / "adb"
    if program is not None:
        binary.write_text(program)
        binary.chmod(0o755)
    finding = machine.check_adb_version(binary)
    assert finding.level is Severity.PROBLEM
    assert is_mendable(finding)


def test_a_key_that_is_named_and_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    own, missing = tmp_path / "adbkey", tmp_path / "lab"
    assert [each.level for each in machine.check_keys(own, None)] == [Severity.WARNING]
    own.touch()
    levels = [each.level for each in machine.check_keys(own, missing)]
    assert levels == [Severity.OK, Severity.PROBLEM]


HOLDER = ProcessInfo(pid=7, command="adb -L tcp:5037 fork-server server")


def server(version: int | None = 41, **listing: str) -> machine.ServerProbe:
    return machine.ServerProbe(
        address="127.0.0.1:5037",
        version=version,
        state_by_serial=listing,
        process=HOLDER if version else None,
    )


def test_a_server_that_holds_phones_is_a_problem_and_named_with_its_process() -> None:
    finding = machine.check_default_server(server(R58M12ABC="device"), {})
    assert finding.level is Severity.PROBLEM
    assert "pid 7: adb -L tcp:5037" in finding.message
    assert "FARM_AGENT_ADB_SERVER=127.0.0.1:5037" in (finding.hint or "")


def test_a_server_that_holds_nothing_of_ours_is_fine() -> None:
    ours = {"R58M12ABC": "device"}
    assert machine.check_default_server(server(), {}).level is Severity.OK
    assert machine.check_default_server(server(None), {}).level is Severity.OK
    assert machine.check_default_server(server(R58M12ABC="offline"), ours).level is Severity.OK


@pytest.mark.parametrize(
    ("version", "level"), [(41, Severity.OK), (32, Severity.WARNING), (None, Severity.PROBLEM)]
)
def test_a_shared_server_answers_and_speaks_our_version(version: int | None, level: Severity) -> None:
    assert machine.check_external_server(server(version)).level is level


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[HttpFarm]:
    with http_farm(tmp_path / "farm") as farm:
        yield farm


def levels_by_subject(found: list[Diagnostic]) -> list[tuple[str, Severity]]:
    return [(each.subject, each.level) for each in found]


@pytest.mark.anyio
async def test_a_farm_that_answers_and_agrees_on_the_time_is_fine(farm: HttpFarm) -> None:
    # Whoever shows something on loopback has to be known by it, too.
    credential = farm.enroll().headers["Authorization"].removeprefix("Bearer ")
    found = diagnose.check_farm_connectivity(await diagnose.probe_farm(farm.url, SecretStr(credential)))
    assert levels_by_subject(found) == [("farm", Severity.OK), ("clock", Severity.OK)]


@pytest.mark.anyio
@pytest.mark.parametrize(("offset_s", "said"), [(120, "behind"), (-120, "ahead of")])
async def test_a_clock_that_is_off_is_a_warning(farm: HttpFarm, offset_s: int, said: str) -> None:
    def now() -> datetime:
        return datetime.now(UTC) + timedelta(seconds=offset_s)

    *_, clock = diagnose.check_farm_connectivity(await diagnose.probe_farm(farm.url, SecretStr("any"), now))
    assert (clock.subject, clock.level) == ("clock", Severity.WARNING)
    assert f"s {said} this one" in clock.message


@pytest.mark.anyio
async def test_no_one_at_the_address_is_a_problem() -> None:
    (finding,) = diagnose.check_farm_connectivity(
        await diagnose.probe_farm("http://127.0.0.1:9", SecretStr("any"))
    )
    assert finding.level is Severity.PROBLEM
    assert is_mendable(finding)


def test_a_credential_that_is_not_taken_is_a_problem() -> None:
    found = diagnose.check_farm_connectivity(
        diagnose.FarmProbe(url="http://farm", status=200, is_known=False)
    )
    assert levels_by_subject(found) == [("farm", Severity.OK), ("farm", Severity.PROBLEM)]


def test_something_else_at_the_address_is_a_problem() -> None:
    (finding,) = diagnose.check_farm_connectivity(diagnose.FarmProbe(url="http://farm", status=404))
    assert finding.level is Severity.PROBLEM


def is_mendable(finding: Diagnostic) -> bool:
    return finding.level is Severity.OK or bool(finding.hint)
