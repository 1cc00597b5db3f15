"""The lock of the data folder: one agent process per folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agents.host.data_dir import make_data_dir, translate_folder_errors
from farm.core.errors import HostError

_FILE = "agent.lock"


class AgentRunningError(HostError):
    """Another agent process uses the same data folder."""

    code = "host.agent_running"
    transient = False
    default_hint = "stop the other agent, or give this one a data folder of its own (FARM_AGENT_DATA_DIR)"


@contextmanager
def host_lock(data_dir: Path) -> Iterator[None]:
    """Hold the lock of a data folder, created if missing; the kernel releases it with the process.

    Raises:
        AgentRunningError: at once, when somebody else holds it.
        InvalidInput: this user cannot use the folder.
    """
    make_data_dir(data_dir)
    with translate_folder_errors(data_dir):
        descriptor = os.open(data_dir / _FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor, data_dir)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def find_holder(data_dir: Path, locks: Path = Path("/proc/locks")) -> int | None:
    """Return the pid of the agent that holds the lock of a folder; None when none does.

    Read from the kernel's table (proc_locks(5)): taking the lock to test it could make an agent that is just
    starting fail.
    """
    try:
        inode = (data_dir / _FILE).stat().st_ino
        rows = [line.split() for line in locks.read_text(encoding="ascii").splitlines()]
    except OSError:
        return None
    own_rows = (row for row in rows if row[1] == "FLOCK" and row[5].endswith(f":{inode}"))
    return next((int(row[4]) for row in own_rows), None)


def _lock(descriptor: int, data_dir: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        raise AgentRunningError(f"an agent (pid {holder}) already works in {data_dir}") from error
