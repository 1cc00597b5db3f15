"""Secrets in files of the user's own; none is ever an argument, which every user of the machine can read."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import typer

from farm.cli.shell.output import print_notice
from farm.core.errors import InvalidInput


@contextmanager
def create_private_file(path: Path) -> Iterator[TextIO]:
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


def read_private(file: Path) -> str:
    """The token in a file; others who can read it are remarked upon.

    Raises:
        InvalidInput: there is none.
    """
    try:
        text = file.read_text(encoding="utf-8").strip()
        mode = file.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"the token file {file} cannot be read: {error}", hint="`farm token create --out FILE` makes one"
        ) from error
    if stat.S_ISREG(mode) and mode & 0o077:
        print_notice(
            f"note: others on this machine can read {file}; `farm token create --out FILE` makes it private"
        )
    if not text:
        raise InvalidInput(f"the token file {file} is empty", hint="`farm token create --out FILE` fills one")
    return text


def read_secret(what: str) -> str:
    """A token that somebody types unseen, or that comes through a pipe; `what` says which: `join token`.

    Raises:
        InvalidInput: nothing came.
    """
    if sys.stdin.isatty():
        said: str = typer.prompt(what.capitalize(), hide_input=True, err=True)
        return said.strip()
    text = sys.stdin.readline().strip()
    if not text:
        raise InvalidInput(
            f"there is no {what} on standard input",
            hint="`farm token create` makes one; give it with --token-file FILE, or by a pipe",
        )
    return text
