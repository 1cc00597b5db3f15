"""Separate storage for a virtual phone: a file system of a given size, visible to it and its processes.

It is mounted in a namespace that lasts as long as some process of the phone does. A phone that is started
again has empty storage, as after a factory reset.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount", "--")
_MOUNT = 'mount -t tmpfs -o "size=$1m" tmpfs "$2" && shift 2 && exec "$@"'
_CHECK_DEADLINE_S = 10.0


def find_mount_error(folder: Path) -> str | None:
    """Return why users of this machine cannot mount, as its own message; None where they can. Blocks."""
    try:
        tried = subprocess.run(
            _mount_command(folder, 1, ["true"]),
            capture_output=True,
            text=True,
            timeout=_CHECK_DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return tried.stderr.strip() or f"exit code {tried.returncode}" if tried.returncode else None


def exec_device(state: Path, size_mib: int, arguments: Sequence[str]) -> None:
    """Replace this process by the same phone with that much storage.

    Raises:
        OSError: there is no unshare(1).
    """
    data = state.resolve() / "data"
    data.mkdir(parents=True, exist_ok=True)
    device = [sys.executable, "-m", "agents.virtual", *arguments]
    command = _mount_command(data, size_mib, device)
    os.execvp(command[0], command)


def _mount_command(folder: Path, size_mib: int, command: Sequence[str]) -> list[str]:
    return [*_NAMESPACE, "/bin/sh", "-c", _MOUNT, "sh", str(size_mib), str(folder), *command]
