"""Where the farm is: FARM_URL, the farm that runs in the data folder, a login, or the usual address."""

import fcntl
import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from farm.cli.access.credentials import find_login, find_token, login_file
from farm.cli.shell.identity import find_identity
from farm.cli.shell.output import print_notice

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient

DEFAULT_URL = "http://127.0.0.1:8470"
DEFAULT_DATA_DIR = "farm-data"
#: Written into the data folder by a running farm: {"url": ..., "pid": ...}.
ANNOUNCEMENT_FILE = "farm.json"
#: Locked by a running farm, and by nobody else for longer than a look takes; the kernel drops the lock with
#: the process, so it says what no pid can: pids are used again.
LOCK_FILE = "farm.lock"


def data_dir() -> Path:
    """The data folder commands look into: FARM_DATA_DIR, else `farm-data` here."""
    return Path(os.environ.get("FARM_DATA_DIR") or DEFAULT_DATA_DIR)


def farm_url() -> str:
    """The address of the farm to talk to."""
    return find_url() or DEFAULT_URL


def find_url() -> str | None:
    """The address of the farm, if anybody said which: FARM_URL, one that runs here, or a login."""
    found = os.environ.get("FARM_URL") or find_running(data_dir())
    if found:
        return found
    login = find_login()
    return None if login is None else login.url


def find_running(folder: Path) -> str | None:
    """The address of the farm that runs in a data folder; None when none does, or nobody can tell."""
    try:
        url = str(json.loads((folder / ANNOUNCEMENT_FILE).read_text())["url"])
        return url if _is_locked(folder / LOCK_FILE) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def connect() -> "FarmClient":
    """A client of the farm; nothing is sent yet."""
    return connect_to(farm_url())


def connect_to(url: str) -> "FarmClient":
    """A client of the farm at an address, with the token that is kept for it."""
    return connect_with(url, find_token(url), away_hint=_away_hint(url))


def connect_with(url: str, token: str | None, *, away_hint: str | None = None) -> "FarmClient":
    """As `connect_to`, with a token that is given."""
    from farm.client.farm_client import FarmClient

    farm = FarmClient(url, token=token, name=find_identity(), away_hint=away_hint)
    if token is not None and farm.is_overheard:
        warn_unencrypted(url)
    return farm


def _away_hint(url: str) -> str | None:
    """What to do when no farm answers at an address that nobody typed, but logged in at once; else None."""
    if os.environ.get("FARM_URL"):
        return None
    login = find_login()
    if login is None or login.url != url:
        return None
    return (
        f"that address is from your login, kept in {login_file()}: `farm login URL` logs in at another farm, "
        "FARM_URL names one for a single command, and without that file you are logged out"
    )


@cache
def warn_unencrypted(url: str) -> None:
    """Say that a token can be overheard; once is enough."""
    print_notice(f"note: your access token goes to {url} unencrypted; use https, a VPN or an SSH tunnel")


def _is_locked(path: Path) -> bool:
    with path.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
