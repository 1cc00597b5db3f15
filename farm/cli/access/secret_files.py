"""Secrets in files of one user. They are never arguments, which every user of the machine can read."""

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
    """Create a file that only the user can read; remove it if the block fails."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InvalidInput(
            f"cannot create {path}: {error.strerror}",
            hint="name a new file, in a folder that you may write to",
        ) from error
    try:
        with os.fdopen(descriptor, "w") as file:
            yield file
    except BaseException:
        path.unlink()
        raise


def read_private(file: Path) -> str:
    """Return the token in a file. Print a note if other users can read the file.

    Raises:
        InvalidInput: the file cannot be read or is empty.
    """
    try:
        text = file.read_text(encoding="utf-8").strip()
        mode = file.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"the token file {file} cannot be read: {error}",
            hint="`farm token create --out FILE` creates one",
        ) from error
    if stat.S_ISREG(mode) and mode & 0o077:
        print_notice(
            f"note: other users can read {file}; `farm token create --out FILE` creates a private file"
        )
    if not text:
        raise InvalidInput(
            f"the token file {file} is empty", hint="`farm token create --out FILE` creates one"
        )
    return text


def read_secret(what: str) -> str:
    """Return a token from a hidden prompt or from a pipe.

    Args:
        what: the kind of token, for messages: `join token`.

    Raises:
        InvalidInput: standard input is empty.
    """
    if sys.stdin.isatty():
        secret: str = typer.prompt(what.capitalize(), hide_input=True, err=True)
        return secret.strip()
    text = sys.stdin.readline().strip()
    if not text:
        raise InvalidInput(
            f"there is no {what} on standard input",
            hint="`farm token create` creates one; pass it with --token-file FILE or through a pipe",
        )
    return text
