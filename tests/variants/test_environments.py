"""Environments of runtimes: created on demand, whole or not at all, by one process at a time."""

import fcntl
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from farm.core.errors import Conflict, InvalidInput, NotFound, VariantInvalid
from farm.variants.environments.pins import PINS
from farm.variants.environments.runtime_environments import (
    environment_name,
    environment_of,
    list_environments,
    remove_environment,
)

RUNTIME = "onnxruntime"
NAME = environment_name(RUNTIME)
OFFLINE = """WARNING: Retrying: Failed to establish a new connection: [Errno 101] Network is unreachable
ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: none)
ERROR: No matching distribution found for torch==2.13.0
"""


class FakeCommands:
    """venv makes a folder, pip records what it installs; either may fail."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls: list[list[str]] = []
        #: By the number of the call, from 0.
        self.stderr_by_call: dict[int, str] = {}
        self.interrupted_call = -1

    def __call__(self, words: Sequence[str]) -> "CompletedProcess[str]":
        self.calls.append(list(words))
        call = len(self.calls) - 1
        if call == self.interrupted_call:
            raise KeyboardInterrupt
        if words[1:3] == ["-m", "venv"]:
            (Path(words[3]) / "bin").mkdir(parents=True)
            (Path(words[3]) / "bin" / "python").write_bytes(b"python")
        stderr = self.stderr_by_call.get(call, "")
        return CompletedProcess(words, 1 if stderr else 0, "", stderr)


@pytest.fixture
def commands(tmp_path: Path) -> FakeCommands:
    return FakeCommands(tmp_path)


def used(commands: FakeCommands, *, free: int = 10**12, say: Callable[[str], None] = lambda _: None) -> Path:
    with environment_of(RUNTIME, commands.root, say, run=commands, free_bytes=lambda _: free) as python:
        assert python.is_file()
        return python


def states(root: Path) -> dict[str, str]:
    return {each.name: each.state for each in list_environments(root)}


def test_an_environment_is_created_once_with_every_step_of_its_pins(commands: FakeCommands) -> None:
    said: list[str] = []
    first = used(commands, say=said.append)
    assert used(commands) == first == commands.root / NAME / "bin" / "python"
    assert len(commands.calls) == 1 + len(PINS[RUNTIME])
    assert commands.calls[1][-1].startswith("torch==2.13.0")
    assert said == [
        "creating its environment",
        "installing torch",
        "installing torchvision",
        "installing numpy, pillow, onnx, onnxruntime",
    ]
    assert states(commands.root) == {NAME: "ready"}


def test_an_interrupted_creation_is_done_again_from_the_beginning(commands: FakeCommands) -> None:
    commands.interrupted_call = 2
    with pytest.raises(KeyboardInterrupt):
        used(commands)
    assert states(commands.root) == {NAME: "incomplete"}
    left = commands.root / NAME / "half"
    left.touch()
    used(commands)
    assert len(commands.calls) == 3 + 1 + len(PINS[RUNTIME])
    assert not left.exists()
    assert states(commands.root) == {NAME: "ready"}


@pytest.mark.parametrize(
    ("call", "stderr", "message", "hint"),
    [
        (
            0,
            "The virtual environment was not created: ensurepip is not available\n",
            "ensurepip",
            "python3-venv",
        ),
        (1, OFFLINE, "No matching distribution found for torch==2.13.0", "reached no package index"),
        (1, OFFLINE.partition("\n")[2], "No matching distribution", "PIP_EXTRA_INDEX_URL"),
        (
            3,
            "ERROR: Could not install packages: [Errno 28] No space left on device\n",
            "Errno 28",
            "free some",
        ),
    ],
)
def test_what_fails_is_said_with_a_way_out_and_tried_again(
    commands: FakeCommands, call: int, stderr: str, message: str, hint: str
) -> None:
    commands.stderr_by_call[call] = stderr
    with pytest.raises(VariantInvalid, match="the environment of onnxruntime cannot be created") as caught:
        used(commands)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert states(commands.root).get(NAME) == "incomplete"
    used(commands)


def test_a_disk_without_room_is_named_before_anything_is_downloaded(commands: FakeCommands) -> None:
    with pytest.raises(VariantInvalid, match=r"needs 2\.0+ GB, and .* has 1\.0+ MB free") as caught:
        used(commands, free=10**6)
    assert "XDG_CACHE_HOME" in caught.value.hint
    assert commands.calls == []


def test_a_folder_that_cannot_be_written_is_named(commands: FakeCommands) -> None:
    commands.root /= "file"
    commands.root.write_bytes(b"")
    with pytest.raises(InvalidInput, match=r"cannot write .*file"):
        used(commands)


def test_who_finds_another_creating_it_waits_and_uses_what_the_other_made(commands: FakeCommands) -> None:
    waiting = threading.Event()
    said: list[str] = []

    def say(step: str) -> None:
        said.append(step)
        waiting.set()

    with (commands.root / f"{NAME}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = threading.Thread(target=lambda: used(commands, say=say))
        other.start()
        assert waiting.wait(60)
        commands([*["-", "-m", "venv"], str(commands.root / NAME)])
        (commands.root / NAME / "complete").touch()
    other.join(60)
    assert said == ["waiting for another build that has its environment"]
    assert len(commands.calls) == 1


def test_an_environment_is_removed_but_not_while_a_build_uses_it(commands: FakeCommands) -> None:
    with environment_of(RUNTIME, commands.root, lambda _: None, run=commands, free_bytes=lambda _: 10**12):
        with pytest.raises(Conflict, match="a build uses"):
            remove_environment(NAME, commands.root)
        # Builds of one runtime do not wait for each other.
        used(commands)
    remove_environment(NAME, commands.root)
    assert states(commands.root) == {}
    with pytest.raises(NotFound, match="no environment"):
        remove_environment(NAME, commands.root)


@pytest.mark.parametrize("name", ["..", "", f"{NAME}.lock", "nothing/else"])
def test_nothing_but_environments_is_removed(commands: FakeCommands, name: str) -> None:
    used(commands)
    with pytest.raises(NotFound):
        remove_environment(name, commands.root)
    assert states(commands.root) == {NAME: "ready"}


def test_an_environment_of_other_pins_is_listed_as_outdated_with_its_size(commands: FakeCommands) -> None:
    used(commands)
    (commands.root / NAME).rename(commands.root / "onnxruntime-00000000")
    [environment] = list_environments(commands.root)
    assert (environment.state, environment.size_bytes) == ("outdated", len(b"python"))
