"""`python -m agents.adb.passthrough ADDRESS SERIAL ARGS...`: run adb on an existing server."""

import asyncio
import os
import pwd
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from agents.adb.client import AdbClient
from agents.adb.server import bundled_adb
from agents.adb.smartsocket import find_socket_path
from farm.core.errors import AdbServerDown, FarmError, HostError

_VERSION = re.compile(r"Android Debug Bridge version \d+\.\d+\.(\d+)")
_EXIT_HOST_FAULT = 5


def main(argv: Sequence[str]) -> NoReturn:
    """Check the server, then replace this process by adb."""
    address, serial, *words = argv
    binary = bundled_adb()
    command = [str(binary), "-L", address, "-s", serial, *words]
    try:
        check_user(address, command)
        check_server(binary, address)
    except FarmError as error:
        sys.stderr.write(f"error: {error.message}\nhint: {error.hint}\n")
        sys.exit(_EXIT_HOST_FAULT)
    os.execve(binary, command, environment_without_adb(os.environ))


def check_user(address: str, command: Sequence[str]) -> None:
    """Check that this user may use the server at an address; an agent's own is for the agent's user alone.

    Raises:
        HostError: naming that user, and how to run the command as that user.
    """
    path = find_socket_path(address)
    if path is None or not _is_closed(path):
        return
    owner = _owner(path)
    raise HostError(
        f"the agent's adb server is for the agent's user, {owner}, alone",
        hint=f"run adb as that user: {shlex.join(['sudo', '-u', owner, *command])}",
    )


def _is_closed(path: Path) -> bool:
    try:
        path.stat()
    except PermissionError:
        # A folder above it is closed.
        return True
    except OSError:
        return False
    return not os.access(path, os.W_OK)


def _owner(path: Path) -> str:
    """Return the name of the owner of the deepest part of a path that this user may see."""
    for part in (path, *path.parents):
        try:
            return pwd.getpwuid(part.stat().st_uid).pw_name
        except PermissionError:
            continue
        except KeyError:
            break
    return "USER"


def check_server(binary: Path, address: str) -> None:
    """Check that adb will use the server at `address` as it is.

    adb starts a server where none answers, and replaces one of another version: both would take the devices
    from the farm.

    Raises:
        AdbServerDown: no server answers there, or one of another version.
    """
    server_version = asyncio.run(AdbClient(address).version())
    output = subprocess.run(
        [binary, "version"], capture_output=True, text=True, timeout=10, check=False
    ).stdout
    ours = _VERSION.match(output)
    if ours is None or int(ours[1]) != server_version:
        raise AdbServerDown(
            f"the adb server at {address} has version {server_version}, {binary} would replace it",
            hint=f"use the adb that started the server: adb -L {address} ...",
        )


def environment_without_adb(outer: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables that point adb at another device or server."""
    return {name: value for name, value in outer.items() if not name.startswith(("ADB_", "ANDROID_"))}


if __name__ == "__main__":
    main(sys.argv[1:])
