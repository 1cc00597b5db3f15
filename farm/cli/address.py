"""Where the farm is: FARM_URL, the farm that runs in the data folder, or the usual address."""

import fcntl
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farm.client import FarmClient

DEFAULT_URL = "http://127.0.0.1:8470"
DEFAULT_DATA_DIR = "farm-data"
#: Written into the data folder by a running farm: {"url": ..., "pid": ...}.
ANNOUNCEMENT = "farm.json"
#: Locked by a running farm, and by nobody else for longer than a look takes; the kernel drops the lock with
#: the process, so it says what no pid can: pids are used again.
LOCK = "farm.lock"


def data_dir() -> Path:
    """The data folder commands look into: FARM_DATA_DIR, else `farm-data` here."""
    return Path(os.environ.get("FARM_DATA_DIR") or DEFAULT_DATA_DIR)


def farm_url() -> str:
    """The address of the farm to talk to."""
    return os.environ.get("FARM_URL") or find_running(data_dir()) or DEFAULT_URL


def find_running(folder: Path) -> str | None:
    """The address of the farm that runs in a data folder; None when none does, or nobody can tell."""
    try:
        url = str(json.loads((folder / ANNOUNCEMENT).read_text())["url"])
        return url if _is_locked(folder / LOCK) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def connect() -> "FarmClient":
    """A client of the farm; nothing is sent yet."""
    from farm.client import FarmClient

    return FarmClient(farm_url())


def _is_locked(path: Path) -> bool:
    with path.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
