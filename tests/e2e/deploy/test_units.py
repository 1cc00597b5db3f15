"""The commands of the units, run as systemd runs them: with their own environment, folders and stop."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.adb.server import find_own_server
from tests.e2e.deploy import system_calls
from tests.support.farm.processes import eventually, running_phones
from tests.support.farm.units import Service
from tests.support.faults.port_faults import held_port

pytestmark = pytest.mark.long

_FARM = Path(sys.executable).parent / "farm"


@contextmanager
def running(service: Service) -> Iterator[Service]:
    service.start()
    try:
        yield service
    finally:
        service.stop()


def filtered(name: str, root: Path) -> Service:
    """A unit whose processes may make the system calls that it names, and no others."""
    words = Service(name=name, root=root).settings()["SystemCallFilter"]
    return Service(name=name, root=root, launcher=(sys.executable, system_calls.__file__, *words, "--"))


def farm(service: Service, *words: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
    """A command as the user of a service, in its environment."""
    command = [str(_FARM), *words]
    return subprocess.run(
        command,
        env=service.environment(),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def views(service: Service, *words: str) -> Any:
    done = farm(service, *words, "--json")
    return json.loads(done.stdout) if done.returncode == 0 else None


def test_both_units_work_together_and_end_when_they_are_told_to(short_path: Path) -> None:
    of_farm, of_agent = (filtered(name, short_path) for name in ("benchfarm", "benchfarm-agent"))
    settings = short_path / "etc/benchfarm"
    settings.mkdir(parents=True)
    with (
        held_port() as port,
        held_port() as agents_port,
        running_phones(1, short_path / "phones") as (phone,),
    ):
        served_at = f"127.0.0.1:{agents_port}"
        (settings / "farm.env").write_text(f"# The farm.\nFARM_PORT={port}\nFARM_AGENTS_BIND={served_at}\n")
        agent_settings = {"ADB_CONNECT": phone.address, "ADB_USB": "0", "HOST": "bench-1"}
        lines = [f"FARM_AGENT_{name}={value}\n" for name, value in agent_settings.items()]
        (settings / "agent.env").write_text("".join(lines))
        with running(of_farm):
            eventually(
                lambda: views(of_farm, "host", "list") == [], f"the farm answers; {of_farm.log}", every_s=0.5
            )
            token = farm(of_farm, "token", "create", "--auto-admit").stdout.strip()
            folder = of_agent.environment()["FARM_AGENT_DATA_DIR"]
            words = ("agent", "join", f"http://{served_at}", "--data-dir", folder)
            assert farm(of_agent, *words, stdin=token).returncode == 0
            with running(of_agent):
                eventually(
                    lambda: [view["health"] for view in views(of_farm, "device", "list") or ()] == ["good"],
                    "the device passes its check",
                    within_s=120,
                    every_s=0.5,
                )
                assert find_own_server(Path(folder) / "adb") is not None
                assert of_agent.stop(), "within TimeoutStopSec"
                assert find_own_server(Path(folder) / "adb") is None, "it ends its adb server"
            assert of_farm.is_running()
            assert of_farm.stop(), "within TimeoutStopSec"
    data = short_path / "var/lib/benchfarm"
    assert (data / "farm").stat().st_mode & 0o777 == 0o700
    assert not (data / "farm" / "farm.sqlite3-wal").exists(), "the database is closed"
    assert {path.name for path in data.iterdir()} <= {"farm", "agent", ".android", ".config", ".cache"}


def test_a_call_that_a_unit_does_not_name_fails(tmp_path: Path) -> None:
    changes_its_root = (
        "import os\ntry:\n    os.chroot('/')\nexcept PermissionError as error:\n    print(error.errno)"
    )
    for name in ("benchfarm", "benchfarm-agent"):
        command = [*filtered(name, tmp_path).launcher, sys.executable, "-c", changes_its_root]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.stdout, done.stderr) == ("1\n", "")


def test_an_agent_that_has_not_joined_ends_with_the_code_that_is_not_restarted(tmp_path: Path) -> None:
    service = Service(name="benchfarm-agent", root=tmp_path)
    (tmp_path / "var/lib/benchfarm").mkdir(parents=True)
    command = service.settings()["ExecStart"][0].split()
    done = subprocess.run(
        command, env=service.environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert [str(done.returncode)] == service.settings()["RestartPreventExitStatus"], done.stderr
    assert "farm agent join" in done.stderr
