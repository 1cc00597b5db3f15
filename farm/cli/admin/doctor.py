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
    from farm.core.operations.diagnostic import Diagnostic


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
    from farm.core.operations.diagnostic import blamed_parties

    found = _run_checks(farm=farm, agent=agent, agent_data=agent_data)
    if as_json:
        print_json([{"part": part, **asdict(each)} for part, each in found])
    else:
        out().print(diagnostic_table(found))
    raise typer.Exit(max(map(exit_code, blamed_parties(each for _, each in found)), default=0))


def diagnostic_table(found: Sequence[tuple[str, "Diagnostic"]]) -> "Table":
    """Findings, with what to do below what is not as it should be."""
    from farm.cli.shell.tables import add_row, new_table

    table = new_table(names=("part", "", "looked at"), prose=("found",))
    for part, each in found:
        said = each.message if each.hint is None else f"{each.message}\nhint: {each.hint}"
        add_row(table, part, each.level, each.subject, said)
    return table


def _run_checks(*, farm: bool, agent: bool, agent_data: Path | None) -> list[tuple[str, "Diagnostic"]]:
    from farm.cli.farm.local_agent import local_agent_config

    config = local_agent_config(agent_data)
    has_farm, has_agent = data_dir().is_dir(), config.data_dir.is_dir()
    if not (farm or agent):
        farm, agent = has_farm or not has_agent, has_agent or not has_farm
    found: list[tuple[str, Diagnostic]] = []
    if farm:
        found += [("farm", each) for each in _farm_diagnostics()]
    if agent:
        found += [("agent", each) for each in _agent_diagnostics(config)]
    return found


def _farm_diagnostics() -> list["Diagnostic"]:
    from farm.cli.admin.farm_checks import diagnose_farm
    from farm.cli.shell.settings import farm_config

    with err().status("looking this machine over for a farm"):
        return diagnose_farm(farm_config(data_dir=data_dir().absolute()))


def _agent_diagnostics(config: "AgentConfig") -> list["Diagnostic"]:
    from agents.doctor.diagnose import diagnose_agent
    from farm.cli.farm.local_agent import embedded_agent_dir

    is_stopped = config.data_dir == embedded_agent_dir() and find_running(data_dir()) is None
    with err().status("looking this machine over for an agent"):
        return asyncio.run(diagnose_agent(config, has_farm=not is_stopped))
