"""`farm login`, `farm logout` and `farm whoami`: store, forget and show the identity of the caller."""

from pathlib import Path
from typing import Annotated

import typer

from farm.cli.access.credentials import (
    Login,
    check_token,
    find_login,
    login_file,
    piped_line,
    read_private,
    read_secret,
    remove_login,
    save_login,
)
from farm.cli.access.device_login import sign_in
from farm.cli.shell.address import connect, connect_with
from farm.cli.shell.options import Json
from farm.cli.shell.output import print_data, print_json, print_notice
from farm.core.errors import FarmError, InvalidInput
from farm.wire.tokens import token_id_of


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


def logout() -> None:
    """Forget the address and the access token that `farm login` stored for you on this machine.

    A token that the farm's identity provider gave you is revoked. Another one stays valid, as other machines
    or scripts may use it.

    Example: farm logout
    """
    path = login_file()
    try:
        old = find_login(for_use=False)
    except InvalidInput:
        # A damaged one ends here, too.
        old = None
    if not remove_login():
        print_notice("You are not logged in on this machine.")
        return
    if old is None:
        print_notice(f"Logged out. {path} is removed.")
        return
    print_notice(f"Logged out of {old.url}. {path} is removed.")
    if _is_revoked(old):
        print_notice("Its token is revoked.")
        return
    print_notice(
        "The token stays valid until it expires or is revoked. If nothing else uses it, ask an "
        f"administrator: farm token revoke {token_id_of(old.token)}"
    )


def _is_revoked(old: Login) -> bool:
    """Revoke the token of a sign-in; False where it is of another origin, or its farm does not answer."""
    try:
        with connect_with(old.url, old.token) as farm:
            return farm.end_sign_in().is_revoked
    except FarmError:
        return False


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
