"""The kernel log of this host, polled without blocking; each line is returned once."""

import os
import shutil
import stat
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from agents.host.config import AgentConfig
from farm.core.base.address import host_and_port, is_loopback

KMSG = Path("/dev/kmsg")
#: Read from a plain file or a journal at first.
_FIRST_BYTES, _FIRST_LINES = 256 * 1024, 2000
#: The most that one read returns; the rest is left to the next.
_LOOK_BYTES = 4 * 1024 * 1024
_RECORD_BYTES = 8192
_JOURNAL_S = 10.0
#: Members of systemd-journal and adm may read it; others get empty output.
_JOURNALCTL = ("journalctl", "--dmesg", "--quiet", "--no-pager", "--output=short-monotonic")


class KernelLog(Protocol):
    """A source of kernel log lines."""

    #: For messages.
    name: str
    #: The interval between reads: cheap sources are read often.
    every_s: float

    def read(self) -> str:
        """Return the lines added since the last read; the first read returns older ones. May block briefly.

        Raises:
            OSError: it cannot be read.
        """


class KmsgLog:
    """The kernel's ring buffer, which holds some thousands of lines."""

    every_s = 5.0

    def __init__(self, path: Path = KMSG) -> None:
        self.name = str(path)
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def read(self) -> str:
        records: list[bytes] = []
        length = 0
        while length < _LOOK_BYTES:
            try:
                record = os.read(self._descriptor, _RECORD_BYTES)
            except BlockingIOError:
                break
            except BrokenPipeError:
                # Unread records were overwritten; the next call returns the remaining ones.
                continue
            if not record:
                # Such as /dev/null, which disables reading.
                break
            records.append(record)
            length += len(record)
        return b"".join(records).decode(errors="replace")

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):
            os.close(self._descriptor)


class LogFile:
    """A file to which the kernel log is written, such as /var/log/kern.log."""

    every_s = 5.0

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path
        self._inode: int | None = None
        self._offset = 0

    def read(self) -> str:
        with self._path.open("rb") as file:
            status = os.fstat(file.fileno())
            if self._inode is None:
                self._offset = max(0, status.st_size - _FIRST_BYTES)
            elif status.st_ino != self._inode or status.st_size < self._offset:
                # It was rotated or truncated.
                self._offset = 0
            self._inode = status.st_ino
            file.seek(self._offset)
            text = file.read(_LOOK_BYTES)
        # A full read without a line end, such as a hole, is skipped.
        complete = text[: text.rfind(b"\n") + 1] or (text if len(text) == _LOOK_BYTES else b"")
        self._offset += len(complete)
        return complete.decode(errors="replace")


class JournaldLog:
    """The kernel log in journald; each read runs journalctl."""

    name = "journalctl --dmesg"
    every_s = 60.0

    def __init__(self) -> None:
        self._last: str | None = None

    def read(self) -> str:
        lines = _read_journald()
        first_new = lines.index(self._last) + 1 if self._last in lines else 0
        self._last = lines[-1] if lines else self._last
        return "\n".join(lines[first_new:])


def find_kernel_log(config: AgentConfig) -> KernelLog | None:
    """Return the log that an agent with these settings reads; None when it can read none.

    An agent without phones on local USB reads a log only when its settings name one.
    """
    if config.kernel_log is not None:
        return _open_log(config.kernel_log)
    if not wants_kernel_log(config):
        return None
    with suppress(OSError):
        return KmsgLog()
    with suppress(OSError):
        return JournaldLog() if shutil.which(_JOURNALCTL[0]) and _read_journald(lines=1) else None
    return None


def wants_kernel_log(config: AgentConfig) -> bool:
    """Return whether the kernel log of this host concerns the agent's phones."""
    if config.kernel_log is not None:
        return True
    server = config.adb_server
    return config.adb_usb and (server is None or is_loopback(host_and_port(server)[0]))


def _open_log(path: Path) -> KernelLog | None:
    try:
        mode = path.stat().st_mode
        # Opening a pipe without a writer would block for ever.
        return KmsgLog(path) if stat.S_ISCHR(mode) or stat.S_ISFIFO(mode) else LogFile(path)
    except FileNotFoundError:
        return LogFile(path)
    except OSError:
        return None


def _read_journald(lines: int = _FIRST_LINES) -> list[str]:
    try:
        done = subprocess.run(
            [*_JOURNALCTL, f"--lines={lines}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_JOURNAL_S,
            check=True,
        )
    except subprocess.SubprocessError as error:
        raise OSError(f"{_JOURNALCTL[0]}: {error}") from error
    return done.stdout.decode(errors="replace").splitlines()
