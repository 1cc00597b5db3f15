"""`farm agent`: what looks after the phones of this machine."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from farm.cli.access.secret_files import read_private, read_secret
from farm.cli.shell.output import Json, out, print_json, print_notice
from farm.core.base.address import is_loopback
from farm.core.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic import SecretStr

    from agents.link.enrollment import EnrollmentResult

app = typer.Typer(no_args_is_help=True, help="The agent of this machine, which looks after its phones.")

_LIKE_A_TOKEN = re.compile(r"[\w-]{20,}")

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="The agent's own folder; default: FARM_AGENT_DATA_DIR, else ~/.local/share/farm-agent.",
    ),
]


# Surplus arguments are taken, to be told what is wrong about them.
@app.command(context_settings={"allow_extra_args": True})
def join(
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="Where `farm up --agents-on` says agents call.")],
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="Holds the join token; default: standard input."),
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the farm calls this machine; default: its name.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Enroll this machine with a farm, with a token that `farm token create` made there.

    Joining again needs another token, and replaces what is kept of the farm before.

    Example: farm agent join http://farm-host:8471 --token-file token
    """
    import asyncio

    from agents.link.enrollment import join as joined_by
    from farm.cli.shell.settings import agent_settings
    from farm.clock import SystemClock

    _check_arguments(url, context.args)
    # Before a person is asked for a token, or a pipe is read that gives it once.
    agent_settings(farm_url=url, host=host, data_dir=data_dir)
    config = agent_settings(farm_url=url, host=host, data_dir=data_dir, join_token=_token(token_file))
    print_notice(joined_text(asyncio.run(joined_by(config, SystemClock())), data_dir))


@app.command()
def run(
    data_dir: DataDir = None,
    adb_server: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Use this adb server, as it is, instead of an own one."),
    ] = None,
    adb_connect: Annotated[
        str | None, typer.Option(metavar="HOST:PORT,...", help="Phones on TCP, to be kept connected.")
    ] = None,
) -> None:
    """Look after the phones of this machine in this terminal, until Ctrl-C.

    Settings are FARM_AGENT_* in the environment, else what joining kept.

    Example: farm agent run --adb-connect 10.0.0.21:5555,10.0.0.22:5555
    """
    from agents.daemon import run_until_signalled
    from farm.cli.shell.settings import agent_settings
    from farm.logconfig import configure_logging

    config = agent_settings(data_dir=data_dir, adb_server=adb_server, adb_connect=adb_connect)
    configure_logging()
    run_until_signalled(config)


@app.command()
def status(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Show the agent of this machine: its farm, whether it runs, what it has in hand.

    Without an agent of its own it is that of the farm that runs here.

    Example: farm agent status --json
    """
    from dataclasses import asdict

    from agents.doctor.status import agent_status
    from farm.cli.farm.local_agent import local_agent_config
    from farm.cli.hosts.tables import agent_text

    found = agent_status(local_agent_config(data_dir))
    if as_json:
        print_json(asdict(found))
    else:
        out().print(agent_text(found), markup=False, soft_wrap=True)


def joined_text(joined: "EnrollmentResult", data_dir: Path | None) -> str:
    """What joining did, and how to go on."""
    lines = [f"{joined.host_id} has joined the farm at {joined.farm_url}."]
    if joined.replaced is not None:
        lines.append(f"Before, it was {joined.replaced.host} of the farm at {joined.replaced.farm_url}.")
    if joined.archived_attempts:
        lines.append(
            f"Attempts of then that will not be reported: {joined.archived_attempts}; evidence is put aside."
        )
    address = urlsplit(joined.farm_url)
    if address.scheme == "http" and not is_loopback(address.hostname or ""):
        lines.append(
            "What the two say is not encrypted: use a VPN, an SSH tunnel or https where others listen."
        )
    where = f" --data-dir {data_dir}" if data_dir else ""
    lines.append(f"Start the agent: farm agent run{where}")
    return "\n".join(lines)


def _check_arguments(url: str, surplus: Sequence[str]) -> None:
    if surplus or _LIKE_A_TOKEN.fullmatch(url):
        raise InvalidInput(
            "a join token is no argument: every user of this machine can read a command line",
            hint="farm agent join URL --token-file FILE, or the token on standard input; revoke the one that "
            "was typed here",
        )
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(
            f"{url!r} is not the address of a farm", hint="write it like http://farm-host:8471"
        )


def _token(file: Path | None) -> "SecretStr | None":
    """The join token; None leaves it to the environment."""
    from pydantic import SecretStr

    if file is not None:
        return SecretStr(read_private(file))
    if os.environ.get("FARM_AGENT_JOIN_TOKEN") or os.environ.get("FARM_AGENT_JOIN_TOKEN_FILE"):
        return None
    return SecretStr(read_secret("join token"))
