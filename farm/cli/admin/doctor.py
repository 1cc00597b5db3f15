"""`farm doctor`: check this machine and print how to fix problems."""

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
    from farm.core.operations.diagnostic import blamed_parties

    diagnostics = _run_checks(farm=farm, agent=agent, agent_data=agent_data)
    if as_json:
        print_json([{"part": part, **asdict(diagnostic)} for part, diagnostic in diagnostics])
    else:
        out().print(diagnostic_table(diagnostics))
    parties = blamed_parties(diagnostic for _, diagnostic in diagnostics)
    raise typer.Exit(max(map(exit_code, parties), default=0))


def diagnostic_table(diagnostics: Sequence[tuple[str, "Diagnostic"]]) -> "Table":
    """Return a table of diagnostics, with a hint below each problem."""
    from farm.cli.shell.tables import add_row, new_table

    table = new_table(names=("part", "", "check"), prose=("result",))
    for part, diagnostic in diagnostics:
        result = (
            diagnostic.message
            if diagnostic.hint is None
            else f"{diagnostic.message}\nhint: {diagnostic.hint}"
        )
        add_row(table, part, diagnostic.level, diagnostic.subject, result)
    return table


def _run_checks(*, farm: bool, agent: bool, agent_data: Path | None) -> list[tuple[str, "Diagnostic"]]:
    from farm.cli.farm.local_agent import local_agent_config

    config = local_agent_config(agent_data)
    has_farm, has_agent = data_dir().is_dir(), config.data_dir.is_dir()
    if not (farm or agent):
        farm, agent = has_farm or not has_agent, has_agent or not has_farm
    diagnostics: list[tuple[str, Diagnostic]] = []
    if farm:
        diagnostics += [("farm", diagnostic) for diagnostic in _farm_diagnostics()]
    if agent:
        diagnostics += [("agent", diagnostic) for diagnostic in _agent_diagnostics(config)]
    return diagnostics


def _farm_diagnostics() -> list["Diagnostic"]:
    from farm.cli.admin.farm_checks import diagnose_farm
    from farm.cli.shell.settings import farm_config

    with err().status("checking this machine for a farm"):
        return diagnose_farm(farm_config(data_dir=data_dir().absolute()))


def _agent_diagnostics(config: "AgentConfig") -> list["Diagnostic"]:
    from agents.doctor.diagnose import diagnose_agent
    from farm.cli.farm.local_agent import embedded_agent_dir

    is_stopped = config.data_dir == embedded_agent_dir() and find_running(data_dir()) is None
    with err().status("checking this machine for an agent"):
        return asyncio.run(diagnose_agent(config, has_farm=not is_stopped))
