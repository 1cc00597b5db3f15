"""`farm adb`: run adb on a reserved device through the adb server of the agent."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.identity import require_identity
from farm.core.base.ids import HostId
from farm.core.devices.adb_allowlist import forbidden_reason
from farm.core.errors import HostError, InvalidInput

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def adb(
    device: Annotated[str, typer.Argument(metavar="ID", help="A device that you have reserved.")],
    words: Annotated[list[str] | None, typer.Argument(metavar="ARGS...", help="Arguments of adb.")] = None,
) -> None:
    """Run adb on a device that you have reserved. Input, output and exit code are those of adb.

    It works on the host that the device is attached to. Elsewhere it prints the command to run there and
    exits with 5.

    Example: farm adb bench-a shell getprop ro.build.version.release

    Example: farm adb bench-a push model.pt /data/local/tmp/
    """
    arguments = words or []
    if reason := forbidden_reason(arguments):
        raise InvalidInput(f"farm adb refuses this: {reason}", hint="farm adb ID shell, push, pull, logcat")
    with connect() as farm:
        access = farm.adb_access(device, require_identity())
    there = ["adb", "-L", access.adb_address, "-s", access.serial, *arguments]
    check_attached_here(access.host, access.boot_id, access.device_id, there)
    sys.stdout.flush()
    sys.stderr.flush()
    # Replace this process, so that adb has the terminal. -P: do not import from a folder `agents` in the
    # current folder.
    python = [sys.executable, "-P", "-m", "agents.adb.passthrough"]
    os.execv(sys.executable, [*python, access.adb_address, access.serial, *arguments])


def check_attached_here(
    host: HostId, boot_id: str | None, name: str, command: Sequence[str], *, options: Sequence[str] = ()
) -> None:
    """Check that a device is attached to this machine.

    Args:
        host: that the device is attached to.
        boot_id: of the host's present boot; None where its agent is not connected.
        name: of the device, for the error.
        command: what is to be run on its host instead.
        options: of the ssh that runs it there.

    Raises:
        HostError: it is attached to another machine, or its agent is not connected.
    """
    if boot_id is None:
        raise HostError(f"the agent of host {host} is not connected")
    if _BOOT_ID.exists() and boot_id == _BOOT_ID.read_text(encoding="ascii").strip():
        return
    remote = shlex.join(["ssh", *options, host, shlex.join(command)])
    raise HostError(
        f"{name} is attached to {host}, not to this machine",
        hint=f"run it there, as the agent's user: {remote}",
    )
