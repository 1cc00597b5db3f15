"""The commands that pages name: each is one of the command line, with options that it has."""

import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from typer.main import get_command

import farm.web
from farm.cli.shell.main import app
from farm.web.pages import files, history, matrices, operations, speedups
from tests.web.conftest import PageFarm

_TEMPLATES = Path(farm.web.__file__).parent / "templates"
#: Pages with their filters, each with a value; some go only without others.
_FILTERED: tuple[tuple[str, dict[str, str]], ...] = (
    ("/alarms", {"cleared": "true", "since": "30d"}),
    ("/changes", {"model": "mobilenet_v2", "device": "virtual-1", "since": "30d", "all": "true"}),
    ("/changes", {"cause": "noise", "state": "invalid"}),
    ("/changes", {"name": "two precisions", "mine": "true"}),
    ("/devices", {"find": "virtual 1", "state": "free"}),
    ("/events", {"subject": "matrix:1", "actor": "farm", "kind": "matrix_submitted", "since": "30d"}),
    (
        "/history",
        {
            "model": "mobilenet_v2",
            "device": "virtual-1",
            "harness": "speed_benchmark_torch",
            "variant": "int8",
            "since": "30d",
        },
    ),
    ("/history", {"name": "two precisions", "mine": "true"}),
    ("/imports", {"name": "json", "since": "30d", "mine": "true"}),
    ("/matrices", {"name": "two precisions", "since": "30d", "mine": "true"}),
    ("/speedups", {"matrix": "1", "model": "mobilenet_v2", "device": "virtual-1", "pivot": "true"}),
    ("/speedups", {"model": "mobilenet_v2", "device": "virtual-1", "since": "30d", "pivot": "true"}),
    ("/speedups", {"model": "mobilenet_v2", "at": "2026-01-01"}),
    ("/speedups", {"matrix": "1", "baseline": "int8-core", "candidate": "float32"}),
    ("/speedups", {"name": "two precisions", "mine": "true"}),
    ("/speedups", {"by": "device", "candidate": "int8", "baseline": "float32", "since": "30d"}),
    ("/variants", {"name": "int8", "since": "30d", "mine": "true", "all": "true"}),
    (
        "/imports/results",
        {
            "import_id": "2",
            "model": "mobilenet_v2",
            "device": "virtual-1",
            "tool": "Qualcomm AI Hub",
            "metric": "first_load_time",
            "withdrawn": "true",
        },
    ),
)

#: Pages of more than one row, with their filters.
_FURTHER: tuple[tuple[str, dict[str, str]], ...] = (
    ("/changes", {"model": "mobilenet_v2", "since": "2020-01-01", "all": "true"}),
    ("/changes", {"cause": "file", "state": "new"}),
    (
        "/events",
        {"subject": "matrix:1", "actor": "user", "kind": "matrix_submitted", "since": "2020-01-01"},
    ),
    (
        "/history",
        {
            "model": "mobilenet_v2",
            "harness": "speed_benchmark_torch",
            "variant": "int8",
            "since": "2020-01-01",
        },
    ),
    ("/history", {"device": "virtual-1"}),
    ("/history", {"name": "two precisions"}),
    ("/imports", {"since": "2020-01-01"}),
    ("/matrices", {"name": "two precisions", "since": "2020-01-01"}),
    ("/speedups", {"matrix": "1", "model": "mobilenet_v2", "pivot": "true"}),
    ("/speedups", {"name": "two precisions", "since": "2020-01-01", "baseline": "float32"}),
    ("/speedups", {"by": "device", "candidate": "int8", "baseline": "float32", "since": "2020-01-01"}),
    _FILTERED[-1],
)
#: With one row on each, they have a further one.
_PAGE_SIZES = (
    (files, "_IMPORTS"),
    (files, "_RESULTS"),
    (history, "_CHANGES"),
    (history, "_SERIES"),
    (matrices, "_PAGE"),
    (operations, "_EVENTS"),
    (speedups, "_GROUPS"),
    (speedups, "_ROWS"),
    (speedups, "_ROWS_OF_ALL"),
)


def command_and_words(line: str) -> tuple[Any, list[str]]:
    """Return the command of the command line that a line calls, and the words behind its name."""
    command: Any = get_command(app)
    words = shlex.split(line)[1:]
    while words and words[0] in getattr(command, "commands", ()):
        command = command.commands[words.pop(0)]
    if command.name == "history":
        # The arguments of this group are those of its default.
        command = command.commands["show"]
    # Another group has only commands, unless it is one itself.
    assert getattr(command, "invoke_without_command", True) or not words, line
    return command, words


@pytest.mark.parametrize(
    "template", sorted(str(path.relative_to(_TEMPLATES)) for path in _TEMPLATES.rglob("*.html"))
)
def test_every_command_that_a_page_names_is_one(template: str) -> None:
    for line in re.findall(
        r"""(?:["'>]|[;.,] )(farm [a-z][^"'<;,.]*)""", (_TEMPLATES / template).read_text()
    ):
        command, words = command_and_words(re.sub(r"\{\{.*?\}\}", "", line))
        known = {name for option in command.params for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= known, line


@pytest.mark.parametrize(("path", "filters"), _FILTERED)
def test_the_command_below_a_page_takes_each_of_its_filters(
    pages: PageFarm, path: str, filters: dict[str, str]
) -> None:
    answer = pages.http.get(f"{path}?{urlencode(filters)}")
    assert answer.status_code == 200, answer.text
    (line,) = re.findall(r'class="command-label">[^<]*</span> <code>([^<]*)</code>', answer.text)
    command, words = command_and_words(unescape(line))
    assert len(words) == len(filters), line
    # Raises a usage error for an option that the command does not have.
    command.make_context(path, list(words))


@pytest.mark.parametrize(("path", "filters"), _FURTHER)
def test_a_link_to_a_further_page_keeps_each_filter(
    pages: PageFarm, monkeypatch: pytest.MonkeyPatch, path: str, filters: dict[str, str]
) -> None:
    for module, name in _PAGE_SIZES:
        monkeypatch.setattr(module, name, 1)
    answer = pages.http.get(f"{path}?{urlencode(filters)}")
    (link,) = re.findall(rf'href="{path}\?([^"]*(?:after|before)=[^"]*)"', answer.text)
    query = dict(parse_qsl(unescape(link)))
    (further,) = query.keys() - filters.keys()
    assert further in ("after", "before")
    assert query.items() >= filters.items()


def test_each_option_that_a_page_hands_to_its_command_is_a_filter_above() -> None:
    handed = {
        value
        for template in _TEMPLATES.rglob("*.html")
        for options in re.findall(r"command_line\(\"farm [^)]*\)", template.read_text())
        for value in re.findall(r"\w+=(\w+)", options)
    }
    assert handed == {name for _, filters in _FILTERED for name in filters} - {"matrix"}
