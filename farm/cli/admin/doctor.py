"""`farm doctor`: what is wrong with this machine, and what to do about it."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.shell.address import data_dir, find_running
from farm.cli.shell.exit_codes import exit_code
from farm.cli.shell.output import Json, err, out, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from agents.host.config import AgentConfig
    from farm.core.operations.diagnostic import Finding


def doctor(
    farm: Annotated[bool, typer.Option("--farm", help="What a farm needs of this machine.")] = False,
    agent: Annotated[bool, typer.Option("--agent", help="What an agent needs of this machine.")] = False,
    agent_data: Annotated[
        Path | None,
        typer.Option("--agent-data", metavar="FOLDER", help="The agent's folder; default: as it finds it."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Look this machine over: adb, phones on USB, ports, room, permissions, keys, the way to the farm.

    Without --farm or --agent it looks at what is set up here, or at both where nothing is. Exits with 0 when
    nothing has to be mended.

    Example: farm doctor --agent
    """
    from farm.core.operations.diagnostic import blames

    found = _examined(farm=farm, agent=agent, agent_data=agent_data)
    if as_json:
        print_json([{"part": part, **asdict(each)} for part, each in found])
    else:
        out().print(finding_table(found))
    raise typer.Exit(max(map(exit_code, blames(each for _, each in found)), default=0))


def finding_table(found: Sequence[tuple[str, "Finding"]]) -> "Table":
    """Findings, with what to do below what is not as it should be."""
    from farm.cli.shell.tables import add_row, listing

    table = listing(names=("part", "", "looked at"), prose=("found",))
    for part, each in found:
        said = each.sentence if each.hint is None else f"{each.sentence}\nhint: {each.hint}"
        add_row(table, part, each.level, each.subject, said)
    return table


def _examined(*, farm: bool, agent: bool, agent_data: Path | None) -> list[tuple[str, "Finding"]]:
    from farm.cli.farm.local_agent import agent_here

    config = agent_here(agent_data)
    has_farm, has_agent = data_dir().is_dir(), config.data_dir.is_dir()
    if not (farm or agent):
        farm, agent = has_farm or not has_agent, has_agent or not has_farm
    found: list[tuple[str, Finding]] = []
    if farm:
        found += [("farm", each) for each in _of_the_farm()]
    if agent:
        found += [("agent", each) for each in _of_the_agent(config)]
    return found


def _of_the_farm() -> list["Finding"]:
    from farm.cli.admin.farm_checks import examine_farm
    from farm.cli.shell.settings import farm_config

    with err().status("looking this machine over for a farm"):
        return examine_farm(farm_config(data_dir=data_dir().absolute()))


def _of_the_agent(config: "AgentConfig") -> list["Finding"]:
    from agents.doctor.diagnose import examine_agent
    from farm.cli.farm.local_agent import embedded_folder

    is_stopped = config.data_dir == embedded_folder() and find_running(data_dir()) is None
    with err().status("looking this machine over for an agent"):
        return asyncio.run(examine_agent(config, has_farm=not is_stopped))
