"""Output of commands: data on stdout, messages on stderr."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, TextIO, TypeVar

import typer

from farm.core.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console, RenderableType

#: Minimum width of tables; a narrower terminal wraps the lines.
MIN_WIDTH = 80
#: Width of output that is not on a terminal and has no COLUMNS, so that a row stays one line.
PIPED_WIDTH = 200

#: Tables are cut after this many rows.
MAX_ROWS = 2000

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]

#: For endless output: one object per line can be read as it arrives.
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]

M = TypeVar("M", bound="BaseModel")


def out() -> "Console":
    """Return the console for data (stdout)."""
    return _console(stderr=False)


def err() -> "Console":
    """Return the console for progress, notes and errors (stderr)."""
    return _console(stderr=True)


def show(views: Sequence[M], render: Callable[[Sequence[M]], "RenderableType"], *, as_json: bool) -> None:
    """Print a listing as a table or as one JSON list."""
    if as_json:
        print_json([view.model_dump(mode="json") for view in views])
    else:
        out().print(render(views))


def print_json(document: object) -> None:
    """Print a JSON document, the only output of a command with `--json` on stdout."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_json_list(views: "Iterable[BaseModel]") -> None:
    """Print a JSON list document by document, with one document in memory at a time."""
    before = "["
    for view in views:
        text = json.dumps(view.model_dump(mode="json"), indent=2, ensure_ascii=False)
        typer.echo(f"{before}\n{indent(text, '  ')}", nl=False)
        before = ","
    typer.echo("[]" if before == "[" else "\n]")


def first_rows(views: Iterable[M], *, where_all_are: str) -> list[M]:
    """Return the first MAX_ROWS views. If there are more, print where all of them are."""
    rows = list(islice(views, MAX_ROWS + 1))
    if len(rows) > MAX_ROWS:
        print_notice(f"Only the first {MAX_ROWS} are shown: {where_all_are}")
    return rows[:MAX_ROWS]


def print_json_line(document: object) -> None:
    """Print a JSON document on one line."""
    typer.echo(json.dumps(document, ensure_ascii=False))


def print_notice(text: str) -> None:
    """Print a message to stderr without markup."""
    err().print(text, markup=False, soft_wrap=True)


def confirm(question: str) -> None:
    """Ask for confirmation.

    Raises:
        InvalidInput: stdin is not a terminal.
        typer.Abort: the answer is no.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidInput("confirmation needs a terminal", hint="--yes skips the confirmation")
    typer.confirm(question, abort=True, err=True)


def ignore_closed_output() -> None:
    """Discard output to streams that are closed."""
    sys.stdout = sys.stdout or _discard_output()
    sys.stderr = sys.stderr or _discard_output()


def flush_output() -> None:
    """Flush stdout. If that fails, discard the rest, so that Python does not report it again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)


def _console(*, stderr: bool) -> "Console":
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    stream = sys.stderr if stderr else sys.stdout
    if not stream.isatty() and not os.environ.get("COLUMNS"):
        console.width = PIPED_WIDTH
    console.width = max(MIN_WIDTH, console.width)
    return console


def _discard_output() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")
