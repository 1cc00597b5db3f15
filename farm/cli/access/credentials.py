"""The farm that one is logged in at, and the token it takes: by `farm login`, or by the environment."""

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from farm.cli.access.secret_files import create_private_file, read_private
from farm.core.errors import InvalidInput

_LOGIN_HINT = "`farm login URL --token-file FILE` writes it anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A farm, and what proves to it who calls."""

    url: str
    token: str


def login_file() -> Path:
    """Where `farm login` keeps what it was told (XDG base directories)."""
    home = os.environ.get("XDG_CONFIG_HOME") or f"{os.environ.get('HOME', '/nonexistent')}/.config"
    return Path(home) / "benchfarm" / "login.json"


def save_login(login: Login) -> Path:
    """Write a login down for this user alone, in the place of the one before.

    Raises:
        InvalidInput: it cannot be written.
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
            f"cannot write {path}: {error.strerror}", hint="XDG_CONFIG_HOME names another place"
        ) from error
    return path


def find_login() -> Login | None:
    """What was kept, if anything was.

    Raises:
        InvalidInput: others can read it, or it is no login.
    """
    path = login_file()
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="utf-8")
        login = Login(**json.loads(text))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        # Who cannot look there has kept nothing there: a service whose home is another user's, say.
        return None
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(f"{path} holds no login: {error}", hint=_LOGIN_HINT) from error
    if mode & 0o077:
        raise InvalidInput(
            f"others on this machine can read {path}, and could call the farm in your name",
            hint=f"chmod 600 {path}; if somebody may have read it, have its token revoked",
        )
    return login


def find_token(url: str) -> str | None:
    """The token for a farm: FARM_TOKEN_FILE's, else FARM_TOKEN, else that of a login there.

    Raises:
        InvalidInput: the one that is named is none.
    """
    if file := os.environ.get("FARM_TOKEN_FILE"):
        return check_token(read_private(Path(file)))
    if token := os.environ.get("FARM_TOKEN"):
        return check_token(token.strip())
    login = find_login()
    return login.token if login is not None and _origin(login.url) == _origin(url) else None


def check_token(text: str) -> str:
    """A token as it can be sent.

    Raises:
        InvalidInput: it cannot be one.
    """
    if not re.fullmatch(r"[\x21-\x7e]{1,512}", text):
        raise InvalidInput("that is no access token", hint="one is a line that begins with bfu_")
    return text


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
