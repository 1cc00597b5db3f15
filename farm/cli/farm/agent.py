"""`farm agent`: enroll, run and show the agent of this machine."""

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import SecretStr

from farm.cli.access.credentials import read_private, read_secret
from farm.cli.farm.up import needs_virtual
from farm.cli.shell.options import Json
from farm.cli.shell.output import print_notice, show
from farm.cli.shell.settings import agent_settings, local_agent_config
from farm.core.base.address import NO_LOGIN, has_login, is_overheard
from farm.core.errors import InvalidInput
from farm.logconfig import configure_logging

if TYPE_CHECKING:
    from agents.doctor.status import AgentStatus
    from agents.link.enrollment import EnrollmentResult

app = typer.Typer(no_args_is_help=True)

_LIKE_A_TOKEN = re.compile(r"[\w-]{20,}")

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="The agent's own folder; default: FARM_AGENT_DATA_DIR, else ~/.local/share/farm-agent.",
    ),
]


# Surplus arguments are accepted, so that the error can say that a token is not an argument.
@app.command(context_settings={"allow_extra_args": True})
def join(
    context: typer.Context,
    url: Annotated[
        str, typer.Argument(metavar="URL", help="The agents' address that `farm up --agents-on` prints.")
    ],
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", metavar="FILE", help="File with the join token; default: standard input."
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of this machine in the farm; default: its host name."),
    ] = None,
    plain_http: Annotated[
        bool,
        typer.Option(
            "--plain-http", help="Send this host's credential unencrypted, as inside a VPN; now and later."
        ),
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Enroll this machine with a farm, using a join token from `farm token create`.

    Joining again needs another token and replaces the previous enrolment.

    Example: farm agent join https://farm-host:8471 --token-file token
    """
    from agents.link.enrollment import join as enroll

    _check_arguments(url, context.args)
    # Validate before the token is read: a pipe delivers it only once.
    given = {"farm_url": url, "host": host, "data_dir": data_dir, "plain_http": plain_http or None}
    agent_settings(**given)
    config = agent_settings(**given, join_token=_token(token_file))
    print_notice(joined_text(asyncio.run(enroll(config)), data_dir))


@app.command()
def run(
    data_dir: DataDir = None,
    adb_server: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Use this running adb server instead of starting one."),
    ] = None,
    adb_connect: Annotated[
        str | None, typer.Option(metavar="HOST:PORT,...", help="Devices on TCP to keep connected.")
    ] = None,
    virtual: Annotated[
        int, typer.Option(min=0, max=64, help="Virtual devices to start on this machine; none on USB then.")
    ] = 0,
    virtual_nnapi: Annotated[
        bool,
        typer.Option("--virtual-nnapi", help="Give them NNAPI, as `farm up --virtual-nnapi`."),
    ] = False,
) -> None:
    """Run the agent of this machine in this terminal until Ctrl-C.

    Settings are FARM_AGENT_* in the environment, else those saved by joining.

    Example: farm agent run --adb-connect 10.0.0.21:5555,10.0.0.22:5555

    Example: farm agent run --virtual 2
    """
    from agents.daemon import run_until_signalled

    config = agent_settings(data_dir=data_dir, adb_server=adb_server, adb_connect=adb_connect)
    configure_logging()
    run_until_signalled(config, virtual=virtual, virtual_nnapi=needs_virtual(virtual_nnapi, virtual))


@app.command()
def status(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Show the agent of this machine: its farm, whether it runs, and its attempts in progress.

    On a machine without its own agent, show the embedded agent of the farm that runs here.

    Example: farm agent status --json
    """
    from agents.doctor.status import agent_status

    show(agent_status(local_agent_config(data_dir)), agent_text, as_json=as_json)


def agent_text(status: "AgentStatus") -> str:
    """Return the status of an agent, one line for each fact."""
    joined = "" if status.has_joined else " (not joined)"
    fields = [
        ("host", status.host),
        ("farm", f"{status.farm_url}{joined}"),
        ("agent", f"runs (pid {status.pid})" if status.pid else "does not run"),
        ("adb", status.adb_server or "no server runs"),
        ("data", status.data_dir),
        ("reports", f"{status.waiting_reports} waiting for the farm"),
        ("attempts", f"{len(status.attempts)} in progress"),
        *(
            ("", f"attempt {attempt.attempt_id} on {attempt.device_id}: {attempt.phase}")
            for attempt in status.attempts
        ),
    ]
    return "\n".join(f"{heading:10}{text}" for heading, text in fields)


def joined_text(joined: "EnrollmentResult", data_dir: Path | None) -> str:
    """Return the result of joining, and the next step."""
    lines = [f"{joined.host_id} has joined the farm at {joined.farm_url}."]
    if joined.replaced is not None:
        its_farm = joined.replaced.farm_url
        # Addresses with a password were saved once.
        shown = "another address" if has_login(its_farm) else its_farm
        lines.append(f"It was {joined.replaced.host} of the farm at {shown} before.")
    if joined.archived_attempts:
        lines.append(
            f"Previous attempts that will not be reported: {joined.archived_attempts}; evidence is archived."
        )
    if is_overheard(joined.farm_url):
        lines.append(
            "The connection is not encrypted, as --plain-http allows: others must not reach its network."
        )
    where = f" --data-dir {data_dir}" if data_dir else ""
    lines.append(f"Start the agent: farm agent run{where}")
    return "\n".join(lines)


def _check_arguments(url: str, surplus: Sequence[str]) -> None:
    if surplus or _LIKE_A_TOKEN.fullmatch(url):
        raise InvalidInput(
            "a join token is not an argument: every user of this machine can read a command line",
            hint="farm agent join URL --token-file FILE, or the token on standard input; revoke the "
            "token that was typed here",
        )
    if has_login(url):
        raise InvalidInput(NO_LOGIN, hint="write it like http://farm-host:8471; the token says who joins")
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(
            f"{url!r} is not the address of a farm", hint="write it like http://farm-host:8471"
        )


def _token(file: Path | None) -> SecretStr | None:
    """Return the join token; None if the environment sets it."""
    if file is not None:
        return SecretStr(read_private(file))
    if os.environ.get("FARM_AGENT_JOIN_TOKEN") or os.environ.get("FARM_AGENT_JOIN_TOKEN_FILE"):
        return None
    return SecretStr(read_secret("join token"))
