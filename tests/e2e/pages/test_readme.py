"""What the README tells people to type exists."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from farm.cli.shell.main import app, main
from farm.variants.model_zoo import recipes_of
from tests.e2e.pages.console_page import Step, console
from tests.support.models.built_variants import built
from tests.support.session.shared_folder import shared_folder

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```\w*\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
TYPED = [line.partition(" #")[0].strip() for block in BLOCKS for line in block.splitlines()]
COMMANDS = [line for line in TYPED if line.startswith("farm ")]
INLINE = re.findall(r"`((?:farm|make) [^`]*)`", README)
MAKE = [line for line in [*TYPED, *INLINE] if line.startswith("make ")]


def words(line: str) -> list[str]:
    return shlex.split(line)[1:]


def test_there_are_commands_to_try() -> None:
    assert {"farm up --virtual 2", "farm speedups"} <= set(COMMANDS)
    assert "make demo" in MAKE


@pytest.mark.parametrize("line", [*COMMANDS, *(line for line in INLINE if line.startswith("farm "))])
def test_every_farm_command_is_one_with_the_options_and_arguments_it_is_given(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command: Any = get_command(app)
    given = words(line)
    path: list[str] = []
    while given and given[0] in getattr(command, "commands", {}):
        path.append(given[0])
        command = command.commands[given.pop(0)]
    with pytest.raises(SystemExit) as left:
        main([*path, "--help"])
    assert not left.value.code
    assert " ".join(["Usage: farm", *path]) in capsys.readouterr().out
    # Parses the rest as the command would, without running it.
    command.make_context("farm", given)


@pytest.mark.parametrize("line", MAKE)
def test_every_make_target_exists(line: str) -> None:
    (target, *_) = words(line)
    assert re.search(rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", README))))
def test_every_file_that_is_linked_is_there(path: str) -> None:
    assert (ROOT / path).exists()


def copy_variants(folder: Path, factory: pytest.TempPathFactory, worker_id: str) -> None:
    """Put the files there that the README builds: other tests of this run build them, too."""
    recipes = recipes_of(["float32", "int8-core"], ["torchscript", "lite"])
    folder.mkdir(parents=True)
    for variant in built(recipes, shared_folder(factory, worker_id, "variants")):
        for path in (variant.path, Path(f"{variant.path}.json")):
            shutil.copy(path, folder)


# Runs the demo's matrix.
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_two_terminals_can_be_typed_after_an_installation(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    copy_variants(tmp_path / "farm-data" / "variants", tmp_path_factory, worker_id)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    # A new terminal finds only what the system has: each block activates the environment.
    path = os.pathsep.join(
        folder for folder in os.environ["PATH"].split(os.pathsep) if not (Path(folder) / "farm").exists()
    )
    first, second = re.findall(r"^```\n(\. .*?)^```", README, re.MULTILINE | re.DOTALL)
    environment = {"FARM_PORT": "0", "PATH": path, "COLUMNS": "80"}
    with console(tmp_path, environment=environment, command_s=1500.0) as terminals:
        terminals.play(
            Step(command=f"bash -ec '{first}' &", expected="Starting ...\nThe farm listens at ...\n...")
        )
        # A reader is slower than a test: by then the devices are there, and `farm run` finds them.
        there = """[ "$(farm device list --json | grep -c '"device_model": "')" = 2 ]"""
        wait = f". .venv/bin/activate; until {there}; do sleep 1; done"
        terminals.play(Step(command=wait, expected=""))
        # The name of a processor may take a second line of the table.
        terminals.play(Step(command=f"set -ex\n{second}", expected="...\nvirtual-...-# ... free ...\n..."))


def test_the_second_paragraph_names_platforms_and_license() -> None:
    second = README.split("\n\n")[2]
    assert second == "Android devices; clients on Linux and macOS. License: [Apache-2.0](LICENSE)."


def test_matrix_files_that_are_named_are_there() -> None:
    named = {word for line in COMMANDS for word in words(line) if word.endswith(".yaml")}
    assert named
    assert all((ROOT / name).is_file() for name in named)


def test_the_matrix_that_is_shown_is_that_of_the_demo() -> None:
    (shown,) = (block for block in BLOCKS if block.startswith("name: demo"))
    assert yaml.safe_load(shown) == yaml.safe_load((ROOT / "examples/demo.yaml").read_text())
