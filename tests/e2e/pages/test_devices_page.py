"""docs/devices.md: its walk-through prints what it says, and every command it names is one."""

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from agents.virtual.sandbox import host_soc
from farm.cli.shell.main import app
from tests.e2e.pages.console_page import console, steps

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "devices.md").read_text()
#: As they are typed in the walk-through, also behind `until` and in a pipe.
_TYPED = re.findall(r"\bfarm [^|;&\n]*", "\n".join(step.command for step in steps(PAGE)))
COMMANDS = sorted({line.strip() for line in (*_TYPED, *re.findall(r"`(farm [^`]*)`", PAGE))})


# Its phone is checked seven times, and recovers three times.
@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_phones_page_is_as_it_says(short_path: Path) -> None:
    desk = short_path / "desk"
    phones = desk / "farm-data" / "virtual"
    phones.mkdir(parents=True)
    (phones / "suffix").write_text("desk")
    _, soc = host_soc(Path("/proc/cpuinfo").read_text())
    environment = {"FARM_PORT": "0", "FARM_USER": "ann", "FARM_AGENT_HOST": "desk"}
    here = {
        "AMD EPYC": soc,
        "/home/ann/desk": str(desk),
        # Of a phone. A virtual one shares its root folder with this machine.
        " /data/local/tmp/": f" {phones / 'virtual-desk-0' / 'data' / 'local' / 'tmp'}/",
    }
    with console(desk, environment=environment, here_by_said=here) as opened:
        for step in steps(PAGE):
            opened.play(step)


@cache
def commands() -> Any:
    """Return the tree of the CLI's commands, whose building takes a while."""
    return get_command(app)


def command_of(line: str) -> tuple[list[str], list[str], Any]:
    """The words that name a command, what it is given, and the command."""
    command = commands()
    given, path = shlex.split(line.replace(" ID", " 7"))[1:], ["farm"]
    while given and given[0] in getattr(command, "commands", {}):
        path.append(given[0])
        command = command.commands[given.pop(0)]
    return path, given, command


def test_every_command_that_the_page_names_is_typed_in_its_walk_through() -> None:
    named, typed = ({" ".join(command_of(line)[0]) for line in lines} for lines in (COMMANDS, _TYPED))
    assert {"farm device admit", "farm doctor", "farm device list", "farm adb", "farm alarms clear"} <= typed
    assert named - typed == set()


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_page_has_the_options_and_arguments_it_is_given(line: str) -> None:
    path, given, command = command_of(line)
    assert len(path) > 1
    if given or not getattr(command, "commands", {}):
        # Refuses what it does not know; nothing is run.
        command.make_context(" ".join(path), given, resilient_parsing=not given)
