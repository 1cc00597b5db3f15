"""The agent's data folder: created for its owner only; locked for one agent process; with a disk reserve."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agents.host.atomic_file import is_full
from farm.core.base.units import size_text
from farm.core.errors import HostDiskFull, HostError, InvalidInput
from farm.file_modes import close_folder


def find_file(path: Path) -> bytes | None:
    """Return the content of a file in the folder; None when it is missing.

    Raises:
        InvalidInput: this user may not read it. That is not the same as missing: the agent has joined, say.
    """
    with translate_folder_errors(path.parent):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None


@contextmanager
def translate_folder_errors(data_dir: Path) -> Iterator[None]:
    """Translate OS errors of the data folder into InvalidInput; those of a full disk into HostDiskFull."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise HostDiskFull(f"no space left in {data_dir}") from error
        raise InvalidInput(
            f"the agent's data folder {data_dir} cannot be used: {error.strerror} ({error.filename})",
            hint="do this as the user that the agent runs as (sudo -u), or name another folder with "
            "--data-dir or FARM_AGENT_DATA_DIR",
        ) from error


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
        AgentRunningError: at once, when another process holds it.
        HostDiskFull: there is no space for the folder or the lock's file.
        InvalidInput: this user cannot use the folder.
    """
    with translate_folder_errors(data_dir):
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        close_folder(data_dir)
        descriptor = os.open(data_dir / _FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise AgentRunningError(f"an agent (pid {holder}) already works in {data_dir}") from error
        # For messages only: a full disk keeps no agent from starting.
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def find_holder(data_dir: Path) -> int | None:
    """Return the pid of the agent that holds the lock of a folder; None when none does.

    Read from the kernel's table (proc_locks(5)): taking the lock to test it could make an agent that is just
    starting fail.
    """
    try:
        inode = (data_dir / _FILE).stat().st_ino
        rows = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
    except OSError:
        return None
    own_rows = (row for row in rows if row[1] == "FLOCK" and row[5].endswith(f":{inode}"))
    return next((int(row[4]) for row in own_rows), None)


class DiskReserve:
    """A preallocated file whose space is released when the disk is full. Blocking: for the disk thread.

    File systems with compression or block sharing may reserve less than the size of the file.
    """

    def __init__(self, path: Path, size_bytes: int) -> None:
        """Allocate nothing yet: see `refill`."""
        self._path = path
        self._size_bytes = size_bytes

    def refill(self) -> None:
        """Allocate the space again after a release.

        Raises:
            HostDiskFull: there is too little, or this disk keeps nothing back.
        """
        with suppress(FileNotFoundError):
            if self._path.stat().st_size >= self._size_bytes:
                return
        # Checked first: a failing allocation would use up all space first.
        if not self.has_room():
            raise HostDiskFull(f"no space for {self._path}")
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, self._size_bytes)
            finally:
                os.close(descriptor)
        except OSError as error:
            with suppress(OSError):
                self._path.unlink()
            raise HostDiskFull(f"no space for {self._path}: {error.strerror}") from error

    def release(self) -> bool:
        """Release the space; return False when it was released before."""
        is_there = self._path.exists()
        self._path.unlink(missing_ok=True)
        return is_there

    def shortage(self) -> str | None:
        """Return why this disk can take no new work; None while there is space beside the reserve."""
        try:
            self.refill()
            is_short = not self.has_room()
        except (HostDiskFull, OSError):
            is_short = True
        if not is_short:
            return None
        need, folder = size_text(self._size_bytes), self._path.parent
        return f"the agent's disk has less than {need} free for evidence in {folder}"

    def has_room(self, beside_bytes: int = 0) -> bool:
        """Return whether the free space exceeds the reserve plus these bytes; nothing is allocated."""
        return shutil.disk_usage(self._path.parent).free >= self._size_bytes + beside_bytes


#: As large as a report may be: two outputs at a plan's limit, escaped.
RESERVE_BYTES = 64 * 1024 * 1024
