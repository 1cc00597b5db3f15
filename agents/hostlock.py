"""One agent per data folder: a second one finds the lock taken."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from farm.core.errors import HostError


class AgentRunningError(HostError):
    """Another agent process works in the same data folder."""

    code = "host.agent_running"
    transient = False
    default_hint = "stop the other agent, or give this one a data folder of its own (FARM_AGENT_DATA_DIR)"


@contextmanager
def host_lock(data_dir: Path) -> Iterator[None]:
    """Hold the folder's lock; the kernel drops it with the process, however that ends.

    Raises:
        AgentRunningError: at once, when somebody else holds it.
    """
    path = data_dir / "agent.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor, data_dir)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, data_dir: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        raise AgentRunningError(f"an agent (pid {holder}) already works in {data_dir}") from error
