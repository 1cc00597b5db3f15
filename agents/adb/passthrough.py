"""`python -m agents.adb.passthrough PORT SERIAL ARGS...`: run adb on an existing server."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from agents.adb.client import AdbClient
from agents.adb.server import bundled_adb
from farm.core.errors import AdbServerDown, FarmError

_VERSION = re.compile(r"Android Debug Bridge version \d+\.\d+\.(\d+)")
_EXIT_HOST_FAULT = 5


def main(argv: Sequence[str]) -> NoReturn:
    """Check the server, then replace this process by adb."""
    port, serial, *words = argv
    binary = bundled_adb()
    try:
        check_server(binary, int(port))
    except FarmError as error:
        sys.stderr.write(f"error: {error.message}\nhint: {error.hint}\n")
        sys.exit(_EXIT_HOST_FAULT)
    os.execve(binary, [str(binary), "-P", port, "-s", serial, *words], environment_without_adb(os.environ))


def check_server(binary: Path, port: int) -> None:
    """Check that adb will use the server on `port` as it is.

    adb starts a server where none answers, and replaces one of another version: both would take the devices
    from the farm.

    Raises:
        AdbServerDown: no server answers there, or one of another version.
    """
    server_version = asyncio.run(AdbClient(port).version())
    output = subprocess.run(
        [binary, "version"], capture_output=True, text=True, timeout=10, check=False
    ).stdout
    ours = _VERSION.match(output)
    if ours is None or int(ours[1]) != server_version:
        raise AdbServerDown(
            f"the adb server on port {port} has version {server_version}, {binary} would replace it",
            hint=f"use the adb that started the server: adb -P {port} ...",
        )


def environment_without_adb(outer: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables that point adb at another device or server."""
    return {name: value for name, value in outer.items() if not name.startswith(("ADB_", "ANDROID_"))}


if __name__ == "__main__":
    main(sys.argv[1:])
