"""docs/devices.md: its walk-through prints what it says, and every command it names is one."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from console_page import console, steps
from typer.main import get_command

from agents.virtual.profile import soc_of
from farm.cli.main import app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "devices.md").read_text()
_PLAIN = re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
_TYPED = [re.split(r"  ", line)[0] for block in _PLAIN for line in block.splitlines()]
COMMANDS = sorted(
    {line for line in (*_TYPED, *re.findall(r"`(farm [^`]*)`", PAGE)) if line.startswith("farm ")}
)


@pytest.mark.timeout(400)
def test_the_phones_page_is_as_it_says(tmp_path: Path) -> None:
    desk = tmp_path / "desk"
    phones = desk / "farm-data" / "virtual"
    phones.mkdir(parents=True)
    (phones / "suffix").write_text("desk")
    _, soc = soc_of(Path("/proc/cpuinfo").read_text())
    environment = {"FARM_PORT": "0", "FARM_USER": "ann", "FARM_AGENT_HOST": "desk"}
    here = {"AMD EPYC": soc, "/home/ann/desk": str(desk)}
    with console(desk, environment=environment, here_by_said=here) as opened:
        for step in steps(PAGE):
            opened.play(step)


def test_there_are_commands_to_try() -> None:
    assert {"farm device admit ID", "farm doctor --agent", "farm devices"} <= set(COMMANDS)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_page_has_the_options_and_arguments_it_is_given(line: str) -> None:
    command: Any = get_command(app)
    given, path = shlex.split(line.replace(" ID", " 7"))[1:], ["farm"]
    while given and given[0] in getattr(command, "commands", {}):
        path.append(given[0])
        command = command.commands[given.pop(0)]
    assert len(path) > 1
    if given or not getattr(command, "commands", {}):
        # Refuses what it does not know; nothing is run.
        command.make_context(" ".join(path), given, resilient_parsing=not given)
