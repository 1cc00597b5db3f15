"""`farm login` and `farm whoami`: store and show the identity of the caller."""

from pathlib import Path
from typing import Annotated

import typer

from farm.cli.access.credentials import (
    Login,
    check_token,
    piped_line,
    read_private,
    read_secret,
    save_login,
)
from farm.cli.access.device_login import sign_in
from farm.cli.shell.address import connect, connect_with
from farm.cli.shell.options import Json
from farm.cli.shell.output import print_data, print_json, print_notice


def login(
    url: Annotated[str, typer.Argument(metavar="URL", help="Address of the farm.")],
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="File with the access token; default: standard input, or by the farm's identity provider.",
        ),
    ] = None,
) -> None:
    """Store the address of a farm and your access token for all commands.

    Where the farm has an identity provider, it signs you in: you enter a code there, in any browser.
    FARM_URL and a farm that runs in the data folder take precedence over the login.

    Example: farm login https://farm.lab --token-file token
    """
    address = url.rstrip("/")
    if token_file is None:
        token = piped_line() or sign_in(address) or read_secret("access token")
    else:
        token = read_private(token_file)
    new_login = Login(url=address, token=check_token(token))
    with connect_with(new_login.url, new_login.token) as farm:
        caller = farm.caller()
    path = save_login(new_login)
    print_notice(
        f"Logged in at {new_login.url} as {caller.name} ({caller.role}). Stored in {path} (private)."
    )


def whoami(as_json: Json = False) -> None:
    """Show your name and role at the farm.

    Example: farm whoami
    """
    with connect() as farm:
        caller = farm.caller()
        url = farm.url
    if as_json:
        print_json({"url": url, **caller.model_dump(mode="json")})
        return
    print_data(f"{caller.name} ({caller.role}) at {url}")
    if not caller.is_authenticated:
        print_notice("This farm does not check identities: every user of its machine has all permissions.")
