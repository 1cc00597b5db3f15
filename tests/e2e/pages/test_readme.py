"""What the README tells people to type exists."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from farm.cli.shell.main import app, main

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


def test_matrix_files_that_are_named_are_there() -> None:
    named = {word for line in COMMANDS for word in words(line) if word.endswith(".yaml")}
    assert named
    assert all((ROOT / name).is_file() for name in named)


def test_the_matrix_that_is_shown_is_that_of_the_demo() -> None:
    (shown,) = (block for block in BLOCKS if block.startswith("name: demo"))
    assert yaml.safe_load(shown) == yaml.safe_load((ROOT / "examples/demo.yaml").read_text())
