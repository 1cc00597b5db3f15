"""`farm doctor`: check this machine and print how to fix problems."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from agents.host.config import AgentConfig
from farm.cli.shell.address import data_dir, find_running
from farm.cli.shell.options import Json
from farm.cli.shell.output import err, print_data, print_json
from farm.cli.shell.settings import embedded_agent_dir, farm_config, local_agent_config
from farm.cli.shell.tables import Listing, name, prose
from farm.core.operations.diagnostic import Diagnostic, blamed_parties


def doctor(
    farm: Annotated[bool, typer.Option("--farm", help="Check what a farm needs of this machine.")] = False,
    agent: Annotated[
        bool, typer.Option("--agent", help="Check what an agent needs of this machine.")
    ] = False,
    agent_data: Annotated[
        Path | None,
        typer.Option("--agent-data", metavar="FOLDER", help="The agent's data folder; default: detected."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check this machine: adb, devices on USB, ports, disk space, permissions, keys, connection to the farm.

    Without --farm or --agent it checks what is set up here, or both if nothing is. The exit code is 0 if
    nothing needs to be fixed.

    Example: farm doctor --agent
    """
    config = local_agent_config(agent_data)
    has_farm, has_agent = data_dir().is_dir(), config.data_dir.is_dir()
    if not (farm or agent):
        farm, agent = has_farm or not has_agent, has_agent or not has_farm
    diagnostics: list[tuple[str, Diagnostic]] = []
    if farm:
        diagnostics += [("farm", diagnostic) for diagnostic in _farm_diagnostics()]
    if agent:
        diagnostics += [("agent", diagnostic) for diagnostic in _agent_diagnostics(config)]
    if as_json:
        print_json([{"part": part, **asdict(diagnostic)} for part, diagnostic in diagnostics])
    else:
        print_data(diagnostic_table(diagnostics))
    parties = blamed_parties(diagnostic for _, diagnostic in diagnostics)
    raise typer.Exit(max((party.exit_code for party in parties), default=0))


#: Part of the machine's software and diagnostic, with a hint below each problem.
diagnostic_table = Listing[tuple[str, Diagnostic]](
    name("part", lambda row: row[0]),
    name("", lambda row: row[1].level),
    name("check", lambda row: row[1].subject),
    prose("result", lambda row: "\nhint: ".join(filter(None, (row[1].message, row[1].hint)))),
)


def _farm_diagnostics() -> list[Diagnostic]:
    from farm.cli.admin.machine_checks import diagnose_farm

    with err().status("checking this machine for a farm"):
        return diagnose_farm(farm_config(data_dir=data_dir().absolute()))


def _agent_diagnostics(config: AgentConfig) -> list[Diagnostic]:
    from agents.doctor.diagnose import diagnose_agent

    is_stopped = config.data_dir == embedded_agent_dir() and find_running(data_dir()) is None
    with err().status("checking this machine for an agent"):
        return asyncio.run(diagnose_agent(config, has_farm=not is_stopped))
