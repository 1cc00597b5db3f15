"""How commands speak: stdout is data, stderr is talk."""

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

#: Tables are laid out for at least this width; a narrower terminal wraps them itself.
MIN_WIDTH = 80
#: What is piped and has no COLUMNS is not wrapped to a terminal's width: a row stays one line.
PIPED_WIDTH = 200

#: Nobody reads a longer table.
MAX_ROWS = 2000

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]

#: For what goes on: whoever reads it need not wait for an end.
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]

M = TypeVar("M", bound="BaseModel")


def out() -> "Console":
    """Where data goes."""
    return _console(stderr=False)


def err() -> "Console":
    """Where everything else goes: progress, notes, errors."""
    return _console(stderr=True)


def show(views: Sequence[M], render: Callable[[Sequence[M]], "RenderableType"], *, as_json: bool) -> None:
    """Print a listing, as a table or as one JSON list."""
    if as_json:
        print_json([view.model_dump(mode="json") for view in views])
    else:
        out().print(render(views))


def print_json(document: object) -> None:
    """Print a document; the only thing a command with `--json` may write to stdout."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_json_list(views: "Iterable[BaseModel]") -> None:
    """Print one list, as `print_json` does, each document as it comes: of a million, one is in memory."""
    before = "["
    for view in views:
        text = json.dumps(view.model_dump(mode="json"), indent=2, ensure_ascii=False)
        typer.echo(f"{before}\n{indent(text, '  ')}", nl=False)
        before = ","
    typer.echo("[]" if before == "[" else "\n]")


def first_rows(views: Iterable[M], *, where_all_are: str) -> list[M]:
    """As many as a table has rows at most; where there are more, that is said, with what has them all."""
    rows = list(islice(views, MAX_ROWS + 1))
    if len(rows) > MAX_ROWS:
        print_notice(f"These are the first {MAX_ROWS} of more: {where_all_are}")
    return rows[:MAX_ROWS]


def print_json_line(document: object) -> None:
    """Print a document on a line of its own, at once: for what goes on."""
    typer.echo(json.dumps(document, ensure_ascii=False))


def print_notice(text: str) -> None:
    """Say something to the person, exactly as it is written, on stderr."""
    err().print(text, markup=False, soft_wrap=True)


def confirm(question: str) -> None:
    """Have the person agree, or end the command.

    Raises:
        InvalidInput: nobody is there to be asked.
        typer.Abort: the person does not agree.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidInput("nobody is there to be asked", hint="say --yes to go on without a question")
    typer.confirm(question, abort=True, err=True)


def ignore_closed_output() -> None:
    """Have output that its owner closed go nowhere."""
    sys.stdout = sys.stdout or _discard_output()
    sys.stderr = sys.stderr or _discard_output()


def flush_output() -> None:
    """Print what is left; what cannot be goes nowhere, or Python would try again as it ends, and say so."""
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
