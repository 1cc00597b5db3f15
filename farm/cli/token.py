"""`farm token`: what lets the agent of another machine join the farm."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from farm.cli.address import connect
from farm.cli.duration import seconds
from farm.cli.output import Json, print_json, show, talk
from farm.core.errors import InvalidInput

if TYPE_CHECKING:
    from farm.wire.token_views import NewTokenView

app = typer.Typer(no_args_is_help=True, help="Join tokens: each lets the agent of one machine in, once.")


@app.command()
def create(
    auto_admit: Annotated[
        bool, typer.Option("--auto-admit", help="Phones of that machine join the pool without an operator.")
    ] = False,
    valid: Annotated[str, typer.Option(metavar="TIME", help="For how long, e.g. 90s, 30m, 1h, 7d.")] = "1h",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it into a new file of yours instead.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a token for one `farm agent join`, and print it: this once, and nothing else on stdout.

    Example: farm token create --valid 1h | ssh lab-2 farm agent join http://farm-host:8471
    """
    from farm.wire.token_views import TokenRequest

    request = TokenRequest(auto_admit=auto_admit, valid_s=_valid_s(valid))
    # The file first: a token that could not be kept would stay valid.
    with nullcontext() if out is None else _new_private_file(out) as file, connect() as farm:
        token = farm.create_token(request)
        if file is not None:
            file.write(f"{token.token}\n")
    if as_json:
        print_json(token.model_dump(mode="json", exclude={"token"} if out else None))
    elif out is None:
        typer.echo(token.token)
    talk(how_to_join(token, out))


@app.command("list")
def list_tokens(as_json: Json = False) -> None:
    """List the tokens there were, and which hosts joined with them.

    Example: farm token list --json
    """
    from farm.cli.host_tables import token_table

    with connect() as farm:
        show(farm.tokens(), token_table, as_json=as_json)


@app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `farm token list` names it.")],
) -> None:
    """Let nobody join with a token any more. A host that has joined stays.

    Example: farm token revoke 3f9c01ab77d2
    """
    with connect() as farm:
        farm.revoke_token(token_id)
    talk(f"Nobody can join with {token_id} any more.")


def how_to_join(token: "NewTokenView", out: Path | None) -> str:
    """What to do with a token."""
    lines = [f"Valid for one host until {token.expires_at:%Y-%m-%d %H:%M} UTC."]
    if token.agents_url is None:
        lines.append(
            "This farm is called from this machine only; `farm up --agents-on 0.0.0.0:8471` lets others in."
        )
        return "\n".join(lines)
    where = f"farm agent join {token.agents_url}"
    how = f"{where} --token-file FILE" if out is None else f"{where} --token-file {out.name}"
    lines.append(f"On the other machine: {how}   (or the token on standard input)")
    return "\n".join(lines)


def _valid_s(text: str) -> int:
    from farm.wire.token_views import MAX_VALID_S, MIN_VALID_S

    valid_s = seconds(text)
    if not MIN_VALID_S <= valid_s <= MAX_VALID_S:
        raise InvalidInput(f"a token cannot be valid for {text}", hint="from 60s to 30d")
    return valid_s


@contextmanager
def _new_private_file(path: Path) -> Iterator[TextIO]:
    """A file of the user's alone; none is left when something goes wrong."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InvalidInput(
            f"cannot make {path}: {error.strerror}", hint="name a new file, in a folder that you may write to"
        ) from error
    try:
        with os.fdopen(descriptor, "w") as file:
            yield file
    except BaseException:
        path.unlink()
        raise
