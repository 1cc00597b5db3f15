"""`farm token`: join tokens for agents, and access tokens for people and scripts."""

from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from farm.cli.access.credentials import create_private_file
from farm.cli.shell.address import DEFAULT_URL, connect, connect_to, data_dir, find_running, find_url
from farm.cli.shell.identity import require_identity
from farm.cli.shell.options import Json
from farm.cli.shell.output import print_json, print_notice, show
from farm.cli.shell.settings import farm_config
from farm.cli.shell.tables import Listing, name, number, prose
from farm.clock import SystemClock
from farm.core.base.address import is_overheard
from farm.core.base.ids import HostId
from farm.core.errors import InvalidInput
from farm.core.operations.role import Role
from farm.presentation.text import local_time_text, seconds
from farm.wire.documents.access import (
    MAX_JOIN_VALID_S,
    MIN_VALID_S,
    AccessRequest,
    AccessToken,
    JoinToken,
    NewAccessToken,
    NewJoinToken,
    RotationRequest,
    TokenRequest,
)


def issue_offline_token(folder: Path, request: AccessRequest) -> NewAccessToken:
    """Create a token in the database of the farm with this data folder.

    A user who can write to the data folder has all permissions at that farm anyway.

    Raises:
        InvalidInput: the folder cannot be used, a farm runs there, or the database cannot be reached.
    """
    from farm.daemon import data_folder_lock, make_data_folder
    from farm.database.connect import check_server, display_url, open_database
    from farm.database.migrate import upgrade
    from farm.database.transaction import bind_tx
    from farm.services.access.tokens import issue_access_token

    config = farm_config(data_dir=folder.absolute())
    make_data_folder(config.data_dir)
    check_server(config)
    with data_folder_lock(config.data_dir), closing(open_database(config)) as database:
        upgrade(database.engine)
        token = database.write(
            bind_tx(issue_access_token, now=SystemClock().now(), actor=f"user:{require_identity()}"), request
        )
    print_notice(
        f"No farm runs with the data folder {folder}: the token is in its database, {display_url(config)}."
    )
    return token


app = typer.Typer(no_args_is_help=True)
Out = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the token to a new private file instead.")
]


@app.command()
def create(
    role: Annotated[
        str,
        typer.Option(
            metavar=f"[{'|'.join(Role)}]",
            help="agent: a join token. Any other role: an access token; only admins create those.",
        ),
    ] = Role.AGENT,
    name: Annotated[
        str | None, typer.Option(help="Owner of the access token; events record this name.")
    ] = None,
    auto_admit: Annotated[
        bool, typer.Option("--auto-admit", help="Admit the devices of that machine without an operator.")
    ] = False,
    valid: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Validity: 90s, 30m, 1h, 7d; `never` for an access token that does not expire; "
            "default: 1h for join tokens, 90d for access tokens.",
        ),
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="NAME", help="The only host that may use the join token.")
    ] = None,
    out: Out = None,
    data: Annotated[
        Path | None,
        typer.Option(help="For access tokens: the farm with this data folder, whether it runs or not."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a token and print it. It cannot be shown again.

    Without --role it is a join token for one `farm agent join`.

    Example: farm token create --role submitter --name ann --out token
    """
    request = _token_request(
        _parse_role(role), name, auto_admit=auto_admit, valid=valid, host=host, data=data
    )
    _hand_over(lambda: _issue_token(request, data), out, as_json=as_json)


@app.command()
def rotate(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The id in `farm token list`.")],
    grace: Annotated[
        str, typer.Option(metavar="TIME", help="How long the old token stays valid: 0s, 30m, 24h, 7d.")
    ] = "24h",
    valid: Annotated[
        str, typer.Option(metavar="TIME", help="Validity of the new token, such as 30d, or `never`.")
    ] = "90d",
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Replace an access token by one with the same owner and role, and print it.

    Example: farm token rotate 3f9c01ab77d2 --out new.token
    """
    request = _rotation_request(grace, valid)
    with connect() as farm:
        _hand_over(lambda: farm.rotate_access_token(token_id, request), out, as_json=as_json)
    print_notice(f"Access token {token_id} is valid for {grace} more at most: replace it where it is used.")


def _hand_over(
    issue: Callable[[], NewJoinToken | NewAccessToken], out: Path | None, *, as_json: bool
) -> None:
    """Print a new token, or write it to a file, and say how to use it."""
    # The file first: a token that cannot be stored would stay valid.
    with nullcontext() if out is None else create_private_file(out) as file:
        token = issue()
        if file is not None:
            file.write(f"{token.token}\n")
    if as_json:
        print_json(token.model_dump(mode="json", exclude={"token"} if out else None))
    elif out is None:
        typer.echo(token.token)
    print_notice(how_to_use(token, out))


_token_table = Listing[JoinToken | AccessToken](
    name("token", lambda view: view.token_id),
    name("state", lambda view: view.state),
    name("role", lambda view: view.role),
    prose("owner", lambda view: _owner_text(view)),
    number("created", lambda view: local_time_text(view.created_at)),
    number("valid until", lambda view: local_time_text(view.expires_at) if view.expires_at else "unlimited"),
    number("last used", lambda view: _last_use_text(view)),
)


@app.command("list")
def list_tokens(as_json: Json = False) -> None:
    """List the tokens with owner and state, newest first.

    Example: farm token list --json
    """
    with connect() as farm:
        tokens: list[JoinToken | AccessToken] = [*farm.access_tokens(), *farm.tokens()]
    show(sorted(tokens, key=lambda token: token.created_at, reverse=True), _token_table, as_json=as_json)


@app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The id in `farm token list`.")],
) -> None:
    """Revoke a token at once. A host that has already joined stays.

    Example: farm token revoke 3f9c01ab77d2
    """
    if not token_id:
        raise InvalidInput("the name of a token is empty", hint="`farm token list` lists them")
    with connect() as farm:
        if any(token.token_id == token_id for token in farm.access_tokens()):
            view = farm.revoke_access_token(token_id)
            print_notice(f"Access token {token_id} of {view.name} ({view.role}) revoked.")
        else:
            farm.revoke_token(token_id)
            print_notice(f"Join token {token_id} revoked.")


def _last_use_text(view: JoinToken | AccessToken) -> str:
    used_at = view.last_used_at if isinstance(view, AccessToken) else view.used_at
    return "-" if used_at is None else local_time_text(used_at)


def _owner_text(view: JoinToken | AccessToken) -> str:
    if isinstance(view, AccessToken):
        return view.name
    admission = "devices admitted automatically" if view.auto_admit else "devices wait for an operator"
    return f"{view.used_by or view.host or 'a new host'}, {admission}"


def _token_request(
    role: Role, name: str | None, *, auto_admit: bool, valid: str | None, host: str | None, data: Path | None
) -> TokenRequest | AccessRequest:
    if role is not Role.AGENT:
        if auto_admit or host is not None:
            raise InvalidInput("--auto-admit and --host are for join tokens", hint="leave them out")
        return _access_request(role, name, valid)
    if name is not None or data is not None:
        raise InvalidInput("--name and --data are for access tokens", hint="name its role with --role")
    valid_s = seconds(valid or "1h")
    if not MIN_VALID_S <= valid_s <= MAX_JOIN_VALID_S:
        raise InvalidInput(f"a token cannot be valid for {valid}", hint="from 60s to 30d")
    return TokenRequest(auto_admit=auto_admit, valid_s=valid_s, host=None if host is None else HostId(host))


def _parse_role(text: str) -> Role:
    try:
        return Role(text)
    except ValueError as error:
        raise InvalidInput(f"there is no role {text!r}", hint=f"one of {', '.join(Role)}") from error


def _access_request(role: Role, name: str | None, valid: str | None) -> AccessRequest:
    if name is None:
        raise InvalidInput("an access token needs an owner", hint="name the owner: --name NAME")
    try:
        if valid is None:
            return AccessRequest(name=name, role=role)
        return AccessRequest(name=name, role=role, valid_s=_valid_s(valid))
    except ValidationError as error:
        field = error.errors(include_url=False)[0]["loc"][0]
        message, rule = (
            (f"{name[:80]!r} is not a name", "a name has up to 64 characters and no blanks")
            if field == "name"
            else (f"a token cannot be valid for {valid}", "from 60s to 3650d, or `never`")
        )
        raise InvalidInput(message, hint=rule) from error


def _rotation_request(grace: str, valid: str) -> RotationRequest:
    try:
        return RotationRequest(grace_s=seconds(grace), valid_s=_valid_s(valid))
    except ValidationError as error:
        raise InvalidInput(
            f"not a rotation: {grace} more for the old token, {valid} for the new one",
            hint="from 0s to 30d for the old one; from 60s to 3650d, or `never`, for the new one",
        ) from error


def _valid_s(text: str) -> int | None:
    return None if text == "never" else seconds(text)


def _issue_token(request: TokenRequest | AccessRequest, data: Path | None) -> NewJoinToken | NewAccessToken:
    if isinstance(request, TokenRequest):
        with connect() as farm:
            return farm.create_token(request)
    url = _find_running_farm() if data is None else find_running(data)
    if url is None:
        return issue_offline_token(data or data_dir(), request)
    with connect_to(url) as farm:
        return farm.create_access_token(request)


def _find_running_farm() -> str | None:
    """Return the address of the farm that other commands would use; None if there is none."""
    if url := find_url():
        return url
    with connect_to(DEFAULT_URL) as farm:
        return DEFAULT_URL if farm.is_healthy() else None


def how_to_use(token: NewJoinToken | NewAccessToken, out: Path | None) -> str:
    """Return how to use a new token."""
    if isinstance(token, NewJoinToken):
        return how_to_join(token, out)
    until = f"until {token.expires_at:%Y-%m-%d %H:%M} UTC" if token.expires_at else "until it is revoked"
    command = "farm login URL" if out is None else f"farm login URL --token-file {out.name}"
    return f"{token.name} is {token.role} with it {until}: {command}   (or FARM_TOKEN_FILE, for scripts)"


def how_to_join(token: NewJoinToken, out: Path | None) -> str:
    """Return how to use a new join token."""
    lines = [f"Valid for one host until {token.expires_at:%Y-%m-%d %H:%M} UTC."]
    if token.agents_url is None:
        lines.append(
            "This farm accepts only local agents; `farm up --agents-on 0.0.0.0:8471` accepts others."
        )
        return "\n".join(lines)
    file = "FILE" if out is None else out.name
    allowance = " --plain-http" if is_overheard(token.agents_url) else ""
    command = f"farm agent join {token.agents_url} --token-file {file}{allowance}"
    lines.append(f"On the other machine: {command}   (or the token on standard input)")
    return "\n".join(lines)
