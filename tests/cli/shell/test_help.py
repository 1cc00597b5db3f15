"""Every command explains itself, and none loads what it does not need."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from farm.cli.shell.main import COMMANDS, CommandSpec, app, main
from tests.support.session.tiers import quick_first

HEAVY = ("torch", "torchvision", "scipy", "numpy", "uvicorn", "fastapi", "sqlalchemy", "adbutils", "pydantic")

#: Runs a command, then says on the last line of stderr which modules it loaded.
LOADED = """
import sys
from farm.cli.shell.main import main
try:
    main(sys.argv[1:])
finally:
    print(*sys.modules, file=sys.stderr)
"""


def command_paths(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield from command_paths(child, (*path, name))


ALL = list(command_paths(typer.main.get_command(app)))
LEAVES = [path for path in ALL if not any(other[:-1] == path for other in ALL if other)]


def helped(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as left:
        main([*path, "--help"])
    assert not left.value.code
    return capsys.readouterr().out


def loaded_by(*words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words], capture_output=True, text=True, timeout=60, check=False
    )
    return set(done.stderr.splitlines()[-1].split())


def test_the_commands_of_the_issue_are_there() -> None:
    wanted = "up, device list, variant build, variant list, matrix submit, matrix show, speedups, demo"
    assert {tuple(path.split()) for path in wanted.split(", ")} <= set(LEAVES)


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_has_help(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert " ".join(["Usage: farm", *path]) in helped(path, capsys)


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_the_help_of_every_command_has_an_example_of_it(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    said = " ".join(helped(path, capsys).split())
    assert f"Example: farm {' '.join(path)}" in said


@pytest.mark.parametrize(
    "path", [path for path in LEAVES if path[-1] in ("list", "devices", "speedups", "show")]
)
def test_every_listing_offers_json(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert "--json" in helped(path, capsys)


@pytest.mark.parametrize("spec", COMMANDS, ids=lambda spec: spec.name)
def test_the_line_of_a_command_is_the_beginning_of_its_help(spec: CommandSpec) -> None:
    described = " ".join(spec.load().help.split("\n\n")[0].split())
    assert spec.hidden or described == spec.help


def test_help_loads_nothing_heavy() -> None:
    assert not loaded_by("--help") & {*HEAVY, "httpx", "yaml"}


def test_a_listing_loads_no_framework_server_or_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM_URL", "http://127.0.0.1:9")
    assert not loaded_by("devices", "--json") & (set(HEAVY) - {"pydantic"})


def test_settings_are_shown_without_a_server_and_its_statistics(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FARM_DATA_DIR", str(tmp_path))
    assert not loaded_by("admin", "config") & {"scipy", "numpy", "fastapi", "uvicorn", "torch"}


def test_no_colours_are_printed_where_no_one_wants_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in helped((), capsys)


def test_the_version_is_said_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert not left.value.code
    assert capsys.readouterr().out.startswith("farm ")


def test_a_command_that_does_not_exist_is_the_users_fault(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["phones"])
    assert left.value.code == 2
    assert "phones" in capsys.readouterr().err


@pytest.mark.parametrize("noun", ["device", "host", "variant"])
def test_a_plural_is_a_short_form_of_a_listing(noun: str) -> None:
    root: Any = typer.main.get_command(app)
    assert root.commands[f"{noun}s"].help == root.commands[noun].commands["list"].help
    assert f"Short form: `farm {noun}s`." in " ".join(root.commands[f"{noun}s"].help.split())


@pytest.mark.parametrize(
    ("line", "expected"),
    quick_first(
        [
            ("farm ", {"run", "matrix", "device", "variant", "doctor"}),
            ("farm device ", {"list", "reserve", "release", "rebaseline", "provision"}),
            ("farm device re", {"reserve", "release", "rebaseline", "retire"}),
            ("farm device reserve --", {"--for", "--reason", "--help"}),
        ]
    ),
)
def test_bash_completes_commands_and_options(line: str, expected: set[str]) -> None:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    done = subprocess.run(
        [Path(sys.executable).with_name("farm")],
        env={**os.environ, "_FARM_COMPLETE": "complete_bash", **words},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert expected <= set(done.stdout.split()), done.stderr


def test_the_completion_script_is_printed_for_bash() -> None:
    # The shell is told by the process that started the command: bash must stay its parent.
    command = f"{sys.executable} -m farm.cli.shell.main --show-completion; true"
    printed = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "complete -o default -F" in printed.stdout, printed.stderr
