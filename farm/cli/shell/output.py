"""Output of commands: data on stdout, messages on stderr."""

import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, TextIO, TypeVar

import typer

from farm.core.errors import InvalidInput
from farm.presentation.printable import escaped, printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

#: Tables are cut after this many rows.
MAX_ROWS = 2000

M = TypeVar("M")
D = TypeVar("D")


def out() -> "Console":
    """Return the console for data (stdout)."""
    return _console(stderr=False)


def err() -> "Console":
    """Return the console for progress, notes and errors (stderr)."""
    return _console(stderr=True)


def show(view: D, render: "Callable[[D], RenderableType]", *, as_json: bool) -> None:
    """Print a view, or a listing of views, as `render` draws it or as one JSON document."""
    if as_json:
        print_json(view)
    else:
        print_data(render(view))


def print_done(document: object, text: str, *, as_json: bool) -> None:
    """Print what a command did: as one JSON document to stdout, else as a message to stderr."""
    if as_json:
        print_json(document)
    else:
        print_notice(text)


def print_data(data: "RenderableType") -> None:
    """Print data to stdout. Tables fit the terminal; text is not wrapped."""
    from rich.text import Text

    data = Text(data) if isinstance(data, str) else data
    out().print(data, soft_wrap=isinstance(data, Text))


def print_unchanged(text: str) -> None:
    """Write text to stdout as it is; a terminal gets it without the control sequences in it."""
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)


def print_json(document: object) -> None:
    """Print a JSON document, the only output of a command with `--json` on stdout."""
    typer.echo(_json_text(document, indent=2))


def print_json_list(views: Iterable[object]) -> None:
    """Print a JSON list document by document, with one document in memory at a time."""
    before = "["
    for view in views:
        typer.echo(f"{before}\n{indent(_json_text(view, indent=2), '  ')}", nl=False)
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
    typer.echo(_json_text(document))


def print_notice(text: str) -> None:
    """Print a message to stderr without markup; where that has no room, it is lost."""
    with suppress(OSError):
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


def _json_text(document: object, *, indent: int | None = None) -> str:
    from pydantic_core import to_jsonable_python

    return escaped(json.dumps(to_jsonable_python(document), indent=indent, ensure_ascii=False))


def _console(*, stderr: bool) -> "Console":
    # Commands that draw nothing start sooner without rich.
    from farm.cli.shell.console import console

    return console(stderr=stderr)


def _discard_output() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")
