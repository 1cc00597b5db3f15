"""The stored login, the token for a farm, and secrets in files of one user."""

import json
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

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


def piped_line() -> str:
    """Return the first line of standard input; empty at a terminal."""
    return "" if sys.stdin.isatty() else sys.stdin.readline().strip()


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
    text = piped_line()
    if not text:
        raise InvalidInput(
            f"there is no {what} on standard input",
            hint="`farm token create` creates one; pass it with --token-file FILE or through a pipe",
        )
    return text


_LOGIN_HINT = "`farm login URL --token-file FILE` replaces it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The address of a farm and an access token for it."""

    url: str
    token: str


def login_file() -> Path:
    """Return the file in which `farm login` stores the login (XDG base directories)."""
    home = os.environ.get("XDG_CONFIG_HOME") or f"{os.environ.get('HOME', '/nonexistent')}/.config"
    return Path(home) / "benchfarm" / "login.json"


def save_login(login: Login) -> Path:
    """Store a login, readable for this user only. It replaces the previous login.

    Raises:
        InvalidInput: the file cannot be written.
    """
    path = login_file()
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with create_private_file(draft) as file:
            json.dump(asdict(login), file)
        draft.replace(path)
    except OSError as error:
        raise InvalidInput(
            f"cannot write {path}: {error.strerror}", hint="XDG_CONFIG_HOME sets another folder"
        ) from error
    return path


def find_login(*, for_use: bool = True) -> Login | None:
    """Return the stored login; None if there is none.

    Raises:
        InvalidInput: the file is not a login, or other users can read it, and it is to be used.
    """
    path = login_file()
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="utf-8")
        login = Login(**json.loads(text))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        # An unreadable home has no login, for example that of a service that runs as another user.
        return None
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(f"{path} is not a login: {error}", hint=_LOGIN_HINT) from error
    if for_use and mode & 0o077:
        raise InvalidInput(
            f"other users of this machine can read {path} and use the farm in your name",
            hint=f"chmod 600 {path}; if it may have been read, have the token revoked",
        )
    return login


def remove_login() -> bool:
    """Remove the stored login, whatever is in its file; return whether there was one.

    Raises:
        InvalidInput: the file cannot be removed.
    """
    path = login_file()
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise InvalidInput(
            f"cannot remove {path}: {error.strerror}",
            hint=f"remove it as its owner: rm {shlex.quote(str(path))}",
        ) from error
    return True


def find_token(url: str) -> str | None:
    """Return the token for a farm: from FARM_TOKEN_FILE, else FARM_TOKEN, else the login at that farm.

    Raises:
        InvalidInput: the configured token is not a token.
    """
    if file := os.environ.get("FARM_TOKEN_FILE"):
        return check_token(read_private(Path(file)))
    if token := os.environ.get("FARM_TOKEN"):
        return check_token(token.strip())
    login = find_login()
    return login.token if login is not None and _origin(login.url) == _origin(url) else None


def check_token(text: str) -> str:
    """Return the token if it has the form of one.

    Raises:
        InvalidInput: it has not.
    """
    if not re.fullmatch(r"[\x21-\x7e]{1,512}", text):
        raise InvalidInput(
            "this is not an access token", hint="an access token is one line that begins with bfu_"
        )
    return text


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
