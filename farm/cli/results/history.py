"""`farm history`: how results change over time."""

import typer

from farm.cli.results.history_detect import detect

app = typer.Typer(no_args_is_help=True)
app.command()(detect)
