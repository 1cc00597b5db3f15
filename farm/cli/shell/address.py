"""The address of the farm: FARM_URL, the farm that runs in the data folder, a login, or the default."""

import fcntl
import json
import os
import sys
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from farm.cli.access.credentials import find_login, find_token, login_file
from farm.cli.shell.identity import find_identity
from farm.cli.shell.output import print_notice, show

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from rich.console import RenderableType

    from farm.client.farm_client import FarmClient

V = TypeVar("V")

DEFAULT_URL = "http://127.0.0.1:8470"
DEFAULT_DATA_DIR = "farm-data"
#: Written into the data folder by a running farm: {"url": ..., "pid": ...}.
ANNOUNCEMENT_FILE = "farm.json"
#: Locked by a running farm. The kernel releases the lock with the process; a pid could be of another process
#: by now.
LOCK_FILE = "farm.lock"


def data_dir() -> Path:
    """Return the data folder: FARM_DATA_DIR, else `farm-data` in the current folder."""
    return Path(os.environ.get("FARM_DATA_DIR") or DEFAULT_DATA_DIR)


def farm_url() -> str:
    """Return the address of the farm to connect to."""
    return find_url() or DEFAULT_URL


def find_url() -> str | None:
    """Return the address from FARM_URL, a farm that runs here, or a login; None without any of them."""
    url = os.environ.get("FARM_URL") or find_running(data_dir())
    if url:
        return url
    login = find_login()
    return None if login is None else login.url


def find_running(folder: Path) -> str | None:
    """Return the address of the farm that runs in a data folder; None if none runs or it cannot be read.

    A file of another user than this one or root is no announcement: it would get this user's token.
    """
    try:
        with (folder / ANNOUNCEMENT_FILE).open() as file:
            if os.fstat(file.fileno()).st_uid not in (os.geteuid(), 0):
                return None
            url = str(json.load(file)["url"])
        return url if _is_locked(folder / LOCK_FILE) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def connect() -> "FarmClient":
    """Return a client of the farm, without sending anything yet."""
    return connect_to(farm_url())


def show_view(
    fetch: "Callable[[FarmClient], V]", render: "Callable[[V], RenderableType]", *, as_json: bool
) -> None:
    """Fetch a view from the farm, and print it as `render` draws it or as one JSON document."""
    with connect() as farm:
        view = fetch(farm)
    show(view, render, as_json=as_json)


def connect_to(url: str) -> "FarmClient":
    """Return a client of the farm at an address, with the stored token for it; a later login changes it."""
    find = partial(find_token, url)
    return connect_with(url, find(), find_newer=find, away_hint=_away_hint(url))


def connect_with(
    url: str,
    token: str | None,
    *,
    find_newer: "Callable[[], str | None]" = lambda: None,
    away_hint: str | None = None,
) -> "FarmClient":
    """Return a client of the farm at an address, with this token, or a newer one where it is refused."""
    from farm.client.farm_client import FarmClient

    farm = FarmClient(
        url,
        token=token,
        name=find_identity(),
        away_hint=away_hint,
        find_newer_token=find_newer,
        on_token_expiry=warn_token_expires,
    )
    if token is not None and farm.is_overheard:
        warn_unencrypted(url)
    return farm


def _away_hint(url: str) -> str | None:
    """Return a hint for a farm that does not answer at the address of the login; None for other addresses."""
    if os.environ.get("FARM_URL"):
        return None
    login = find_login()
    if login is None or login.url != url:
        return None
    return (
        f"that address is from your login in {login_file()}: `farm login URL` logs in at another farm, "
        "FARM_URL sets the address of a single command, and `farm logout` logs you out"
    )


@cache
def warn_unencrypted(url: str) -> None:
    """Warn once that a token is sent unencrypted."""
    print_notice(f"note: your access token goes to {url} unencrypted; use https, a VPN or an SSH tunnel")


@cache
def warn_token_expires(token: str, expires_at: "datetime") -> None:
    """Warn once, on a terminal, that a token expires soon."""
    from farm.presentation.text import local_time_text
    from farm.wire.tokens import token_id_of

    if sys.stderr.isatty():
        print_notice(
            f"note: your access token expires at {local_time_text(expires_at)}; an admin can replace it: "
            f"farm token rotate {token_id_of(token)}"
        )


def _is_locked(path: Path) -> bool:
    with path.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
