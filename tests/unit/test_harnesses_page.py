"""docs/harnesses.md says what the code does."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from farm.cli.main import app
from farm.core.bundle_check import MAX_BUNDLE_BYTES, MAX_FILES, MAX_PATH_BYTES, RUN_FILES
from farm.harness.registry import harness_names

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "harnesses.md").read_text()
COMMANDS = re.findall(r"^    farm (harness .+)$", PAGE, re.MULTILINE)


def test_the_limits_are_those_of_the_code() -> None:
    assert f"at most {MAX_FILES} files and {MAX_BUNDLE_BYTES // 1024**3} GiB" in PAGE
    assert f"at most {MAX_PATH_BYTES} bytes" in " ".join(PAGE.split())


def test_the_names_that_are_taken_are_all_told() -> None:
    told = re.search(r"refused: ((?:`[\w.]+`[,.]? ?)+)", " ".join(PAGE.split()))
    assert told is not None
    assert set(re.findall(r"`([\w.]+)`", told[1])) == RUN_FILES


def test_adapters_of_the_farms_own_are_named() -> None:
    for name in harness_names():
        assert f"`{name}`" in PAGE


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_on_the_page_is_one(line: str) -> None:
    words = shlex.split(line.partition(" -- ")[0])
    command: Any = typer.main.get_command(app)
    for word in words[:2]:
        command = command.commands[word]
    known = {name for option in command.params for name in option.opts}
    assert {word for word in words if word.startswith("--")} <= known
