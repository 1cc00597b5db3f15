"""`farm attempt`: show one run."""

from typing import Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, out, print_json
from farm.core.base.ids import AttemptId

app = typer.Typer(no_args_is_help=True, help="Attempts: single runs on a device, with their output.")


@app.command("show")
def show_command(
    attempt_id: Annotated[
        int, typer.Argument(metavar="ID", help="The attempt's number, as `farm matrix jobs` shows it.")
    ],
    as_json: Json = False,
) -> None:
    """Show one attempt: command, files, conditions, output, and its evaluation.

    The middle of a long output is left out; --json prints all of it.

    Example: farm attempt show 12
    """
    from farm.cli.jobs.attempt_report import attempt_report

    with connect() as farm:
        view = farm.attempt(AttemptId(attempt_id))
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        out().print(attempt_report(view), soft_wrap=True)
