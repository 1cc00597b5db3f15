"""The processes that use a port or a file, as far as this user may see."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
#: proc_pid_net(5): the state of a socket that listens.
_LISTENS = "0A"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessInfo:
    """One process, by its command line."""

    pid: int
    command: str


#: A process of a user whose processes we may not inspect.
UNKNOWN_PROCESS = ProcessInfo(pid=0, command="")


def find_listener(port: int, proc: Path = PROC) -> ProcessInfo | None:
    """Return the process that listens on a TCP port; None when none does."""
    inodes = {f"socket:[{inode}]" for inode in _listening_inodes(port, proc)}
    return next(_processes_with_open(inodes, proc), UNKNOWN_PROCESS) if inodes else None


def find_file_users(path: Path, proc: Path = PROC) -> list[ProcessInfo]:
    """Return the processes that have a file open."""
    return list(_processes_with_open({str(path)}, proc))


def process_text(process: ProcessInfo | None) -> str:
    """Return a process as text; another user's can often not be seen."""
    if process is None or process == UNKNOWN_PROCESS:
        return "a process of another user"
    return f"pid {process.pid}: {process.command[:80]}"


def _listening_inodes(port: int, proc: Path) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            rows = (proc / "net" / table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in (row.split() for row in rows):
            if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _processes_with_open(targets: set[str], proc: Path) -> Iterator[ProcessInfo]:
    for folder in proc.glob("[0-9]*"):
        try:
            is_one = any(str(link.readlink()) in targets for link in (folder / "fd").iterdir())
            if is_one:
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                yield ProcessInfo(pid=int(folder.name), command=words.decode(errors="replace").strip())
        except OSError:
            # The process ended, or is another user's.
            continue
