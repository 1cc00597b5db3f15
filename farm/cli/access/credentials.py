"""The stored login, and the token for a farm from the login or the environment."""

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from farm.cli.access.secret_files import create_private_file, read_private
from farm.core.errors import InvalidInput

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


def find_login() -> Login | None:
    """Return the stored login; None if there is none.

    Raises:
        InvalidInput: other users can read the file, or it is not a login.
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
    if mode & 0o077:
        raise InvalidInput(
            f"other users of this machine can read {path} and use the farm in your name",
            hint=f"chmod 600 {path}; if it may have been read, have the token revoked",
        )
    return login


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
