"""Which agent is meant by a command that names none."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from farm.cli.shell.address import DEFAULT_URL
from farm.cli.shell.settings import embedded_agent_dir, local_agent_config


@pytest.fixture(autouse=True)
def _nobodys_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("FARM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """As a running farm has it."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_without_an_agent_of_its_own_a_machine_has_the_one_within_its_farm(tmp_path: Path) -> None:
    assert local_agent_config(None).data_dir.is_relative_to(tmp_path / "home")
    embedded_agent_dir().mkdir(parents=True)
    assert local_agent_config(None).data_dir == tmp_path / "farm-data" / "agent"


def test_the_agent_within_a_farm_is_not_said_to_call_another_farm(tmp_path: Path) -> None:
    folder = embedded_agent_dir()
    folder.mkdir(parents=True)
    (tmp_path / "farm-data" / "farm.json").write_text('{"url": "http://127.0.0.1:9", "pid": 1}')
    (tmp_path / "farm-data" / "farm.lock").touch()
    assert local_agent_config(folder).farm_url == DEFAULT_URL
    with _locked(tmp_path / "farm-data" / "farm.lock"):
        for named in (None, folder, Path("farm-data/agent")):
            assert local_agent_config(named).farm_url == "http://127.0.0.1:9"
            assert local_agent_config(named).data_dir == folder


def test_an_agent_of_its_own_and_one_that_is_named_come_before_the_one_within_a_farm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded_agent_dir().mkdir(parents=True)
    assert local_agent_config(tmp_path / "lab").data_dir == tmp_path / "lab"
    (tmp_path / "own").mkdir()
    monkeypatch.setenv("FARM_AGENT_DATA_DIR", str(tmp_path / "own"))
    assert local_agent_config(None).data_dir == tmp_path / "own"
    monkeypatch.setenv("FARM_AGENT_DATA_DIR", str(tmp_path / "mistyped"))
    assert local_agent_config(None).data_dir == tmp_path / "mistyped"
