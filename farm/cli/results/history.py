"""`farm history`: how results change over time."""

from typing import Any

import typer
from typer.core import TyperGroup

from farm.cli.results.history_detect import detect
from farm.cli.results.history_show import show_history

_DEFAULT = "show"


class _ShowsByDefault(TyperGroup):
    """A group whose arguments are those of `show` where they do not begin with a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_ShowsByDefault)
app.command(_DEFAULT)(show_history)
app.command()(detect)
