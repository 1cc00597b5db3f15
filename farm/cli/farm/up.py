"""`farm up`: run the farm, optionally with an embedded agent and virtual devices."""

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from farm.cli.shell.address import data_dir
from farm.cli.shell.next_steps import farm_commands
from farm.cli.shell.output import print_notice
from farm.cli.shell.settings import farm_config
from farm.config import FarmConfig
from farm.core.base.address import is_loopback, web_address
from farm.core.errors import InvalidInput
from farm.logconfig import configure_logging
from farm.presentation.text import plural

_DEFAULT_PORT = 8470


def up(
    virtual: Annotated[
        int, typer.Option(min=0, max=64, help="Virtual devices to start on this machine.")
    ] = 0,
    virtual_nnapi: Annotated[
        bool,
        typer.Option(
            "--virtual-nnapi",
            help="Give them NNAPI, by a reference library on the CPU. Building it needs a C++ compiler.",
        ),
    ] = False,
    bind: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on; default: FARM_BIND, else 127.0.0.1. On any address except "
            "loopback, callers need an access token, and HTTP is not encrypted without FARM_TLS_CERT."
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help=f"0 selects a free port; default: FARM_PORT, else {_DEFAULT_PORT}."
        ),
    ] = None,
    agents_on: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address for agents of other machines, such as 0.0.0.0:8471; default: FARM_AGENTS_BIND, "
            "else none. HTTP is not encrypted: use FARM_TLS_CERT, a VPN, an SSH tunnel or a TLS proxy.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The data folder; default: FARM_DATA_DIR, else ./farm-data.")
    ] = None,
    database_url_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the address of a PostgreSQL database: postgresql://USER:PASSWORD@HOST/NAME; "
            "default: FARM_DATABASE_URL_FILE, else FARM_DATABASE_URL, else SQLite in the data folder.",
        ),
    ] = None,
    agent: Annotated[
        bool, typer.Option("--agent/--no-agent", help="Run the embedded agent in this process.")
    ] = True,
) -> None:
    """Run a farm in this terminal until Ctrl-C.

    Its embedded agent serves the virtual devices, or without --virtual the devices on USB.

    Example: farm up --virtual 2
    """
    folder = (data or data_dir()).absolute()
    # Before its modules are loaded, which takes most of the start.
    print_notice(starting_message(folder))
    from farm.daemon import UpOptions, run

    config = farm_config(
        data_dir=folder,
        bind=bind,
        port=port,
        agents_bind=agents_on,
        database_url_file=database_url_file,
    )
    configure_logging()
    left_running = run(
        UpOptions(
            config=config,
            virtual=virtual,
            virtual_nnapi=needs_virtual(virtual_nnapi, virtual),
            agent=agent,
            announce=lambda url, agents_url: print_notice(
                startup_message(url, config, agents_url=agents_url, virtual=virtual, agent=agent)
            ),
        )
    )
    print_notice(shutdown_message(left_running))


def needs_virtual(nnapi: bool, virtual: int) -> bool:
    """Return the option `--virtual-nnapi`.

    Raises:
        InvalidInput: there are no virtual devices that would have it.
    """
    if nnapi and not virtual:
        raise InvalidInput(
            "--virtual-nnapi is for virtual devices, and there are none", hint="add --virtual 1"
        )
    return nnapi


def starting_message(folder: Path) -> str:
    """Return the message of a farm that is about to start."""
    return f"Starting a farm in {folder}; its address follows, on an idle machine within 10 s."


def startup_message(
    url: str, config: FarmConfig, *, agents_url: str | None = None, virtual: int, agent: bool
) -> str:
    """Return the message of a started farm."""
    from farm.database.connect import display_url

    note = "" if config.is_encrypted else " (not encrypted)"
    devices = f"{virtual} virtual" if virtual else "on USB"
    lines = [
        f"The farm listens at {url}",
        f"  data    {config.data_dir}",
        *([f"  rows    {display_url(config)}"] if config.database_url else []),
        f"  devices {devices if agent else 'of other agents only'}",
        *_access_notes(config, url),
        *([f"  agents  of other machines connect to {agents_url}{note}"] if agents_url else []),
        farm_commands(config.data_dir),
        "Ctrl-C stops it.",
    ]
    return "\n".join(lines)


def _access_notes(config: FarmConfig, url: str) -> list[str]:
    """Return the notes for a farm that other machines can reach."""
    if not config.needs_tokens:
        return []
    lines = ["  people  need an access token: farm token create --role ROLE --name NAME --out FILE"]
    if not is_loopback(config.bind) and not config.is_encrypted:
        lines.insert(0, f"  others  connect to {web_address(socket.gethostname(), urlsplit(url).port or 80)}")
        lines.append(
            "  HTTP is not encrypted and exposes tokens on the network: use FARM_TLS_CERT, a proxy or a VPN."
        )
    return lines


def shutdown_message(left_running: Sequence[str]) -> str:
    """Return the message of a stopped farm, given the devices on which a run continues."""
    if not left_running:
        return "The farm has stopped."
    runs, devices = plural(len(left_running), "run"), ", ".join(left_running)
    verb, them = ("continues", "it") if len(left_running) == 1 else ("continue", "them")
    return f"The farm has stopped. {runs} {verb} on {devices}; the next `farm up` resumes {them}."
