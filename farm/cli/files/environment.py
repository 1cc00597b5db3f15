"""`farm env`: list and remove the environments in which files for other runtimes are built."""

from typing import Annotated

import typer

from farm.cli.shell.options import Json
from farm.cli.shell.output import print_notice
from farm.cli.shell.output import show as show_document
from farm.cli.shell.tables import Listing, name, number, prose
from farm.core.base.units import size_text
from farm.variants.environments.runtime_environments import (
    Environment,
    environments_dir,
    list_environments,
    remove_environment,
)

_environment_table = Listing[Environment](
    name("environment", lambda each: each.name),
    prose("state", lambda each: each.state),
    number("size", lambda each: size_text(each.size_bytes)),
    name("folder", lambda each: each.path),
)

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_command(as_json: Json = False) -> None:
    """List the environments of runtimes on this machine. The first build for a runtime creates its own.

    Example: farm env list
    """
    show_document(list_environments(environments_dir()), _environment_table, as_json=as_json)


@app.command()
def remove(
    environment: Annotated[str, typer.Argument(metavar="NAME", help="As `farm env list` names it.")],
) -> None:
    """Delete an environment. The next build that needs it creates it again.

    Example: farm env remove onnxruntime-1c9c5b3a
    """
    remove_environment(environment, environments_dir())
    print_notice(f"{environment} is removed")
