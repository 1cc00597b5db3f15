"""Checks of adb on this machine: the program, the keys, and the servers."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agents.adb.client import AdbClient
from agents.adb.external_server import PROTOCOL_VERSION, version_hint
from agents.devices.other_adb_servers import find_claimed_devices
from agents.doctor.processes import ProcessInfo, find_listener, process_text
from farm.core.errors import AdbServerDown
from farm.core.operations.diagnostic import Diagnostic, ok, problem, warning

_DEADLINE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdbVersionProbe:
    """The result of `adb version`."""

    binary: Path
    #: The first line of its output; None when it does not run.
    version: str | None
    #: Why it does not run.
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyProbe:
    """A private key that devices may know."""

    path: Path
    is_there: bool
    is_readable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProbe:
    """An adb server, or what listens in its place."""

    address: str
    #: None when no adb server answers there.
    version: int | None = None
    state_by_serial: Mapping[str, str]
    #: None for a server on another machine, or of another user.
    process: ProcessInfo | None = None


def probe_adb_version(binary: Path) -> AdbVersionProbe:
    """Run `adb version`, which starts no server."""
    try:
        done = subprocess.run(
            [binary, "version"], capture_output=True, text=True, timeout=_DEADLINE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return AdbVersionProbe(binary=binary, version=None, error=str(error))
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return AdbVersionProbe(
            binary=binary, version=None, error=done.stderr.strip() or f"exit {done.returncode}"
        )
    return AdbVersionProbe(binary=binary, version=lines[0])


def check_adb_version(answer: AdbVersionProbe) -> Diagnostic:
    """Check whether the agent can start a server."""
    if answer.version is None:
        return problem(
            "adb",
            f"{answer.binary} does not run: {answer.error}",
            "it comes with adbutils, for x86_64 Linux; elsewhere install adb and put it on PATH",
        )
    return ok("adb", f"{answer.version} ({answer.binary})")


def probe_key(path: Path) -> KeyProbe:
    """Probe a key file without reading it."""
    return KeyProbe(path=path, is_there=path.exists(), is_readable=os.access(path, os.R_OK))


def check_keys(own: KeyProbe, shared: KeyProbe | None) -> list[Diagnostic]:
    """Check the keys that devices are shown: the operator's, and one shared by a lab's hosts."""
    diagnostics: list[Diagnostic] = []
    if not own.is_there:
        hint = "unlock each phone and accept it, or share a key that the phones know: FARM_AGENT_ADB_KEY"
        diagnostics.append(
            warning("keys", f"there is no {own.path} yet; adb makes one that no phone knows", hint)
        )
    elif not own.is_readable:
        hint = "give it back to this user: phones ask again for every new key"
        diagnostics.append(problem("keys", f"{own.path} cannot be read", hint))
    else:
        diagnostics.append(ok("keys", f"phones are shown {own.path}"))
    if shared is not None and not shared.is_readable:
        hint = "set or unset FARM_AGENT_ADB_KEY"
        diagnostics.append(problem("keys", f"FARM_AGENT_ADB_KEY={shared.path} cannot be read", hint))
    elif shared is not None:
        diagnostics.append(ok("keys", f"phones are shown {shared.path} too"))
    return diagnostics


async def probe_server(host: str, port: int, *, is_here: bool = True) -> ServerProbe:
    """Query a server; none is started."""
    client = AdbClient(port, host)
    process = find_listener(port) if is_here else None
    try:
        version, listing = await client.version(), await client.devices()
    except AdbServerDown:
        return ServerProbe(address=client.address, state_by_serial={}, process=process)
    return ServerProbe(address=client.address, version=version, state_by_serial=listing, process=process)


def check_external_server(server: ServerProbe) -> Diagnostic:
    """Check whether the server that FARM_AGENT_ADB_SERVER names can be used."""
    if server.version is None:
        return problem(
            "adb server",
            f"no adb server answers at {server.address}, which FARM_AGENT_ADB_SERVER names",
            "start it (adb start-server), or unset FARM_AGENT_ADB_SERVER to have the agent run its own",
        )
    if server.version != PROTOCOL_VERSION:
        return warning("adb server", f"the one at {server.address} differs", version_hint(server.version))
    return ok("adb server", f"the one at {server.address} is shared")


def check_default_server(default: ServerProbe, ours: ServerProbe | None) -> Diagnostic:
    """Check whether the server that adb commands use claims devices that the agent should have."""
    if default.version is None:
        return ok("adb server", f"none but the agent's is in the way ({default.address} is silent)")
    claimed = find_claimed_devices(ours.state_by_serial if ours else {}, default.state_by_serial)
    if not claimed:
        return ok(
            "adb server",
            f"the one at {default.address} ({process_text(default.process)}) holds no phone on USB",
        )
    return problem(
        "adb server",
        f"the one at {default.address} ({process_text(default.process)}) holds {', '.join(sorted(claimed))}",
        f"adb -P {default.address.rpartition(':')[2]} kill-server, or share it: "
        f"FARM_AGENT_ADB_SERVER={default.address}",
    )
