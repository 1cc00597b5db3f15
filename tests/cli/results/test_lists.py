"""Every command that lists has the options of lists, or `docs/history.md` says why it does not need one."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from farm.cli.shell.main import app

PAGE = Path(__file__).parents[3] / "docs" / "history.md"
OPTIONS = ("--since", "--name", "--mine", "--limit")
#: Lists whose help begins with another word.
OTHERS = {"events", "history show", "speedups"}


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    yield " ".join(path), command
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield from commands(child, (*path, name))


def is_list(path: str, command: Any) -> bool:
    text = getattr(command.callback, "__doc__", None) or ""
    return path in OTHERS or text.startswith("List ")


LISTS = {path: command for path, command in commands(typer.main.get_command(app)) if is_list(path, command)}
ROW = re.compile(r"^\| `farm (?P<path>[a-z ]+)` \| (?P<has>(?:(?:yes|no) \| ){4})(?P<reason>.*?) ?\|$", re.M)
ROWS = {row["path"]: row for row in ROW.finditer(PAGE.read_text())}


def test_all_lists_and_nothing_else_are_in_the_table() -> None:
    assert set(ROWS) == set(LISTS)
    assert {"matrix list", "variant list", "import list", "alarms", "regressions"} < set(LISTS)


@pytest.mark.parametrize("path", LISTS)
def test_a_list_has_all_options_or_a_reason(path: str) -> None:
    known = {word for parameter in LISTS[path].params for word in parameter.opts}
    has = {option: option in known for option in OPTIONS}
    row = ROWS[path]
    said = [word == "yes" for word in re.findall("yes|no", row["has"])]
    assert said == [*has.values()]
    assert all(has.values()) == (row["reason"] in ("", "-"))
