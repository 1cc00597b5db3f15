"""`farm login` and `farm whoami`: who one is to a farm that asks."""

from pathlib import Path
from typing import Annotated

import typer

from farm.cli.shell.output import Json, print_json, print_notice


def login(
    url: Annotated[str, typer.Argument(metavar="URL", help="The farm's address, as people call it.")],
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="Holds the access token; default: standard input."),
    ] = None,
) -> None:
    """Keep a farm's address and your access token there, for all commands.

    They use it unless FARM_URL, or a farm that runs in the data folder, says otherwise.

    Example: farm login https://farm.lab --token-file token
    """
    from farm.cli.access.credentials import Login, check_token, save_login
    from farm.cli.access.secret_files import read_private, read_secret
    from farm.cli.shell.address import connect_with

    said = read_secret("access token") if token_file is None else read_private(token_file)
    kept = Login(url=url.rstrip("/"), token=check_token(said))
    with connect_with(kept.url, kept.token) as farm:
        caller = farm.caller()
    path = save_login(kept)
    print_notice(
        f"You are {caller.name}, {caller.role}, at {kept.url}. It is kept in {path}, which only you can read."
    )


def whoami(as_json: Json = False) -> None:
    """Show who the farm takes you for, and what you may do there.

    Example: farm whoami
    """
    from farm.cli.shell.address import connect

    with connect() as farm:
        caller = farm.caller()
        url = farm.url
    if as_json:
        print_json({"url": url, **caller.model_dump(mode="json")})
        return
    typer.echo(f"{caller.name} ({caller.role}) at {url}")
    if not caller.is_authenticated:
        print_notice(
            "Nobody has to prove a name there: who can log in on the farm's machine may do everything."
        )
