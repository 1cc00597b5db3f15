"""An operator at the command line: takes a phone, works on it with adb, gives it back. All of it is real."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.virtual.pool import VirtualDeviceHandle
from farm.core.devices.device import Health
from tests.support.fakes import matrix_spec, stand_in_model, steady_program, waiting_program
from tests.support.farm.processes import (
    AgentProcess,
    FarmProcess,
    eventually,
    running_agent,
    running_farm,
    running_phones,
)

pytestmark = pytest.mark.long


@dataclass(frozen=True)
class Lab:
    """A farm, an agent and a healthy phone; commands are run as processes, as anna."""

    farm: FarmProcess
    agent: AgentProcess
    phone: VirtualDeviceHandle

    def command(self, *words: str, stdin: str = "", **variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "farm.cli.shell.main", *words],
            env=self._environment(variables),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "farm.cli.shell.main", *words],
            env=self._environment({}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def adb(self, *words: str, stdin: str = "", **variables: str) -> "subprocess.CompletedProcess[str]":
        return self.command("adb", "bench-a", *words, stdin=stdin, **variables)

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        return {**os.environ, "FARM_URL": self.farm.url, "FARM_USER": "anna", **variables}


@contextmanager
def running_lab(folder: Path) -> Iterator[Lab]:
    with (
        running_phones(1, folder / "phones") as (phone,),
        running_farm(FarmProcess(folder / "farm")) as farm,
    ):
        agent = AgentProcess(farm, folder / "agent", [phone], host="bench-1")
        with running_agent(agent):
            farm.await_phones([phone])
            lab = Lab(farm, agent, phone)
            assert lab.command("device", "label", phone.serial, "bench-a").returncode == 0
            yield lab


@pytest.fixture(scope="module")
def one_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """For tests that give the phone back as they found it."""
    with running_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with running_lab(tmp_path) as lab:
        yield lab


def benchmark(farm: FarmProcess, program: bytes) -> int:
    """Queue two runs of the program."""
    farm.register_program(program)
    for precision in ("float32", "int8-core"):
        farm.register_model(*stand_in_model(precision))
    return farm.submit(matrix_spec(rounds=1, settings={"iter": 2}, baseline=None))


def test_a_person_takes_a_phone_works_on_it_and_gives_it_back(one_lab: Lab, tmp_path: Path) -> None:
    go = tmp_path / "go"
    matrix_id = benchmark(one_lab.farm, waiting_program(go))
    with one_lab.farm.client() as client:
        eventually(lambda: client.device("bench-a").job_id, "a run begins")
        with one_lab.start(
            "device", "reserve", "bench-a", "--for", "1h", "--reason", "a driver"
        ) as reserving:
            assert reserving.stderr is not None
            lines = iter(reserving.stderr.readline, "")
            assert any("waiting for job" in line for line in lines)
            go.touch()
            assert "It is reserved for you. Connect to it: farm adb bench-a shell" in "".join(lines)
        assert reserving.returncode == 0
        assert client.device("bench-a").blocked_by == ("reserved",)
    works_with_adb(one_lab, tmp_path)
    refuses_what_disturbs_others(one_lab)
    released = one_lab.command("device", "release", "bench-a")
    assert "it is checked first" in released.stderr
    one_lab.farm.await_matrix(matrix_id, within_s=120.0)
    with one_lab.farm.client() as client:
        view = client.device("bench-a")
        assert client.matrix(matrix_id).jobs_by_outcome == {"succeeded": 2}
        # Newest first: what was measured last came after the check that followed the hold.
        kinds = [attempt.kind for attempt in view.attempts]
        assert kinds.index("check") not in (0, len(kinds) - 1)
        assert view.health is Health.GOOD


def works_with_adb(lab: Lab, folder: Path) -> None:
    """Output, input, files and exit codes are adb's own, whatever else the environment says of phones."""
    said = lab.adb("shell", "getprop", "ro.serialno", ANDROID_SERIAL="another", ANDROID_ADB_SERVER_PORT="1")
    assert (said.stdout.strip(), said.returncode) == (lab.phone.serial, 0), said.stderr
    assert lab.adb("shell", "exit 7").returncode == 7
    assert lab.adb("shell", "-T", "cat", stdin="by the wire").stdout == "by the wire"
    (folder / "file").write_text("bytes")
    assert lab.adb("push", str(folder / "file"), f"{lab.phone.state}/data/pushed").returncode == 0
    assert (lab.phone.state / "data" / "pushed").read_text() == "bytes"


def refuses_what_disturbs_others(lab: Lab) -> None:
    before = lab.agent.adb_server_pid()
    for words in (("kill-server",), ("-s", "another", "shell"), ("disconnect",), ()):
        refused = lab.adb(*words)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith("error: farm adb refuses this: ")
    others = lab.adb("shell", "true", FARM_USER="bert")
    assert others.returncode == 2
    assert "is reserved by anna until" in others.stderr
    assert lab.agent.adb_server_pid() == before


def test_adb_without_a_hold_says_how_to_get_one(one_lab: Lab) -> None:
    refused = one_lab.adb("shell", "true")
    assert refused.returncode == 2
    assert refused.stderr == (
        "error: bench-a is not reserved by you, so the farm may use it at any time\n"
        "hint: reserve it first: farm device reserve bench-a --for 1h\n"
    )


def test_a_hold_ends_automatically_and_the_phone_is_checked(lab: Lab) -> None:
    assert lab.command("device", "reserve", "bench-a", "--for", "1s").returncode == 0
    with lab.farm.client() as client:
        eventually(lambda: client.device("bench-a").reserved_by is None, "the hold ends")
        eventually(lambda: client.device("bench-a").blocked_by == (), "the check is passed")
        assert [attempt.kind for attempt in client.device("bench-a").attempts] == ["check", "check"]


def test_adb_for_a_phone_of_another_machine_says_what_to_run_there(lab: Lab) -> None:
    assert lab.command("device", "reserve", "bench-a", "--for", "1h").returncode == 0
    lab.farm.database.write(
        lambda connection: connection.exec_driver_sql("UPDATE sessions SET boot_id = 'elsewhere'")
    )
    refused = lab.adb("shell", "echo 'two words'")
    assert refused.returncode == 5
    where = f"adb -L localfilesystem:{lab.agent.folder}/adb/socket -s {lab.phone.address} shell"
    assert f"hint: run it there, as the agent's user: ssh bench-1 '{where} " in refused.stderr


def test_the_cache_of_a_phone_is_freed_by_its_agent(one_lab: Lab) -> None:
    done = one_lab.command("device", "clean", "bench-a", "--json")
    assert done.returncode == 0, done.stderr
    # The payload of its check, and the check itself.
    assert json.loads(done.stdout)["freed_bytes"] > 1024 * 1024
    again = one_lab.command("device", "clean", "bench-a", "--json")
    assert json.loads(again.stdout)["freed_bytes"] == 0


def test_a_phone_shows_its_label_while_nothing_runs_on_it(one_lab: Lab) -> None:
    matrix_id = benchmark(one_lab.farm, steady_program(0.2))
    one_lab.farm.await_matrix(matrix_id, within_s=120.0)
    asked = one_lab.start("device", "identify", "bench-a")
    try:
        shown = one_lab.phone.state / "notifications" / "benchfarm"
        eventually(shown.exists, "the label is shown")
        assert shown.read_text() == "bench-a\n"
        with one_lab.farm.client() as client:
            assert client.device("bench-a").blocked_by == ("device_action",)
    finally:
        asked.kill()
        asked.communicate()


def test_a_device_action_for_a_phone_that_is_away_stays_asked_for_when_its_person_leaves(lab: Lab) -> None:
    lab.agent.stop()
    with lab.start("device", "identify", "bench-a") as asked, lab.farm.client() as client:
        assert asked.stderr is not None
        # From here on the command waits.
        assert asked.stderr.readline() == "bench-a: waiting for its agent to identify it\n"
        asked.send_signal(signal.SIGINT)
        _, said = asked.communicate(timeout=30)
        assert asked.returncode == 130
        assert "is open until" in said
        assert client.device("bench-a").device_actions[0].finished_at is None
