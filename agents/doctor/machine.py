"""Checks of this machine: disk space, limits, permissions, ports, adb with its keys and servers, and USB.

Devices and controllers on USB are read as the kernel sees them, independent of adb.
"""

import os
import resource
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.adb.client import AdbClient
from agents.adb.server import PROTOCOL_VERSION, version_hint
from agents.adb.smartsocket import tcp_address
from agents.devices.adb_supervisor import find_claimed_devices
from agents.devices.backpressure import name_controllers
from agents.host.config import AgentConfig
from agents.host.kernel_log import find_kernel_log
from farm.core.base.units import size_text
from farm.core.errors import AdbServerDown
from farm.core.operations.diagnostic import Diagnostic, ok, problem, warning
from farm.phone.adb.kernel_log import UsbRefusal, usb_refusals

_LOW_SPACE_BYTES, _MIN_SPACE_BYTES = 5_000_000_000, 1_000_000_000
#: Phones, connections and files of one process; a hundred phones need some thousands.
_MIN_OPEN_FILES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderProbe:
    """A folder of ours, or the place where it would be created."""

    path: Path
    is_there: bool
    is_writable: bool
    is_private: bool
    free_bytes: int


def probe_folder(path: Path) -> FolderProbe:
    """Probe a folder, or its nearest existing parent when it is missing."""
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    return FolderProbe(
        path=path,
        is_there=existing == path,
        is_writable=existing.is_dir() and os.access(existing, os.W_OK | os.X_OK),
        is_private=existing != path or not stat.S_IMODE(existing.stat().st_mode) & 0o002,
        free_bytes=shutil.disk_usage(existing).free,
    )


def check_folder(folder: FolderProbe, variable: str) -> list[Diagnostic]:
    """Check whether a data folder can be used; `variable` is the setting that names it."""
    free = f"{size_text(folder.free_bytes)} free"
    subject = "data folder"
    if not folder.is_writable:
        where = "cannot be written by this user" if folder.is_there else "cannot be made by this user"
        hint = f"give it to the user that runs this, or name another one with {variable}"
        return [problem(subject, f"{folder.path} {where}", hint)]
    if not folder.is_private:
        hint = f"chmod o-w {folder.path}"
        return [problem(subject, f"anyone on this machine may write to {folder.path}", hint)]
    message = f"{folder.path}: {'' if folder.is_there else 'not made yet, '}{free}"
    if folder.free_bytes < _MIN_SPACE_BYTES:
        return [problem(subject, message, f"free space there, or name a larger disk with {variable}")]
    if folder.free_bytes < _LOW_SPACE_BYTES:
        return [warning(subject, message, "models and evidence need some gigabytes: free space soon")]
    return [ok(subject, message)]


def read_file_limit() -> int:
    """Return the limit of open files; some services start with a lower one than a shell."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def check_file_limit(limit: int) -> Diagnostic:
    """Check whether the limit is enough for many devices."""
    if limit == resource.RLIM_INFINITY or limit >= _MIN_OPEN_FILES:
        return ok("limits", f"a process may open {'any number of' if limit < 0 else limit} files")
    return warning(
        "limits",
        f"a process may open {limit} files only",
        f"raise it: ulimit -n {_MIN_OPEN_FILES}, or LimitNOFILE={_MIN_OPEN_FILES} in the unit",
    )


def check_private_file(path: Path) -> list[Diagnostic]:
    """Check whether a secret is readable by its owner only; a missing one yields no diagnostic."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return []
    if mode & 0o077:
        return [problem("secrets", f"others may read {path} (mode {mode:o})", f"chmod 600 {path}")]
    return [ok("secrets", f"{path} is its owner's alone")]


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


#: Class, subclass and protocol of adb's interface (AOSP: adb.h, ADB_CLASS and following).
_ADB_INTERFACE = ("ff", "42", "01")
_SUBJECT = "usb"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsbDevice:
    """A USB device that offers adb."""

    #: The port it is plugged into, e.g. `1-2.3`.
    path: str
    serial: str
    name: str
    node: Path
    #: True if this user may open it; None when there is no node.
    is_openable: bool | None
    users: tuple[ProcessInfo, ...] = ()


def read_usb_devices(
    sys: Path = Path("/sys"), dev: Path = Path("/dev"), proc: Path = PROC
) -> list[UsbDevice]:
    """Return every USB device with an adb interface."""
    names = ("bInterfaceClass", "bInterfaceSubClass", "bInterfaceProtocol")
    folders = {
        interface.parent / interface.name.partition(":")[0]
        for interface in sys.glob("bus/usb/devices/*:*")
        if tuple(_text(interface / name) for name in names) == _ADB_INTERFACE
    }
    return [_usb_device(folder, dev, proc) for folder in sorted(folders)]


def check_usb(devices: Sequence[UsbDevice], own_server_pid: int | None) -> list[Diagnostic]:
    """Check which devices the agent of this machine can use, and what keeps it from the others."""
    if not devices:
        return [ok(_SUBJECT, "no phone on USB offers adb")]
    return [_check(device, own_server_pid) for device in devices]


def _check(device: UsbDevice, own_server_pid: int | None) -> Diagnostic:
    name = f"{device.serial} ({device.name}, USB {device.path})"
    if device.is_openable is None:
        return problem(
            _SUBJECT, f"{name} has no device node {device.node}", "in a container, pass /dev/bus/usb through"
        )
    if not device.is_openable:
        return problem(
            _SUBJECT,
            f"{name} cannot be opened by this user",
            "install deploy/udev/51-benchfarm.rules, be in the group plugdev, and plug the phone in again",
        )
    others = [user for user in device.users if user.pid != own_server_pid]
    if others:
        return warning(
            _SUBJECT,
            f"{name} is held by {'; '.join(map(process_text, others))}",
            "end that adb server, or have the agent share it (FARM_AGENT_ADB_SERVER=127.0.0.1:PORT)",
        )
    return ok(_SUBJECT, f"{name} can be opened")


def _usb_device(folder: Path, dev: Path, proc: Path) -> UsbDevice:
    bus, number = (int(_text(folder / name) or 0) for name in ("busnum", "devnum"))
    node = dev / "bus" / "usb" / f"{bus:03d}" / f"{number:03d}"
    return UsbDevice(
        path=folder.name,
        serial=_text(folder / "serial") or "no serial number",
        name=" ".join(filter(None, (_text(folder / "manufacturer"), _text(folder / "product")))) or "unnamed",
        node=node,
        is_openable=os.access(node, os.R_OK | os.W_OK) if node.exists() else None,
        users=tuple(_processes_with_open({str(node)}, proc)),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


_PERMISSION_HINT = (
    "sudo usermod -aG systemd-journal USER for the agent's user, or name a file with FARM_AGENT_KERNEL_LOG"
)


def read_refusals(config: AgentConfig) -> tuple[str, list[tuple[str, UsbRefusal]]] | None:
    """Return the name of the kernel log and its messages about refused USB devices.

    None when the agent cannot read a log.
    """
    try:
        kernel_log = find_kernel_log(config)
        if kernel_log is None:
            return None
        return kernel_log.name, list(name_controllers(usb_refusals(kernel_log.read())))
    except OSError:
        return None


def check_kernel_log(log: tuple[str, Sequence[tuple[str, UsbRefusal]]] | None) -> Diagnostic:
    """Check whether a full USB controller would be reported to the farm."""
    if log is None:
        message = "this user cannot read it, so full USB controllers are not detected"
        return warning("kernel log", message, _PERMISSION_HINT)
    name, refusals = log
    if not refusals:
        return ok("kernel log", f"{name} can be read; no USB controller refused a device")
    controller, last = refusals[-1]
    return warning(
        "kernel log",
        f"USB controller {controller} refused a device: {last.message.rstrip('.')}",
        "devices plugged in there do not appear: use another controller, or remove devices or hubs from it",
    )


_DEADLINE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProbe:
    """An adb server, or what listens in its place."""

    address: str
    #: None when no adb server answers there.
    version: int | None = None
    state_by_serial: Mapping[str, str]
    #: None for a server on another machine, or of another user.
    process: ProcessInfo | None = None


def check_adb_version(binary: Path) -> Diagnostic:
    """Check whether the agent can start a server; `adb version` starts none."""
    try:
        done = subprocess.run(
            [binary, "version"], capture_output=True, text=True, timeout=_DEADLINE_S, check=False
        )
        lines, error = done.stdout.strip().splitlines(), done.stderr.strip() or f"exit {done.returncode}"
        if lines and not done.returncode:
            return ok("adb", f"{lines[0]} ({binary})")
    except (OSError, subprocess.TimeoutExpired) as failure:
        error = str(failure)
    hint = "it comes with adbutils, for x86_64 Linux; elsewhere install adb and put it on PATH"
    return problem("adb", f"{binary} does not run: {error}", hint)


def check_keys(own: Path, shared: Path | None) -> list[Diagnostic]:
    """Check the keys that devices are shown: the operator's, and one shared by a lab's hosts."""
    if not own.exists():
        hint = "unlock each phone and accept it, or share a key that the phones know: FARM_AGENT_ADB_KEY"
        first = warning("keys", f"there is no {own} yet; adb makes one that no phone knows", hint)
    elif not os.access(own, os.R_OK):
        hint = "give it back to this user: phones ask again for every new key"
        first = problem("keys", f"{own} cannot be read", hint)
    else:
        first = ok("keys", f"phones are shown {own}")
    if shared is None:
        return [first]
    if not os.access(shared, os.R_OK):
        hint = "set or unset FARM_AGENT_ADB_KEY"
        return [first, problem("keys", f"FARM_AGENT_ADB_KEY={shared} cannot be read", hint)]
    return [first, ok("keys", f"phones are shown {shared} too")]


async def probe_server(host: str, port: int, *, is_here: bool = True) -> ServerProbe:
    """Query a server; none is started."""
    client, address = AdbClient(tcp_address(port, host)), f"{host}:{port}"
    process = find_listener(port) if is_here else None
    try:
        version, listing = await client.version(), await client.devices()
    except AdbServerDown:
        return ServerProbe(address=address, state_by_serial={}, process=process)
    return ServerProbe(address=address, version=version, state_by_serial=listing, process=process)


async def read_adb_devices(address: str) -> Mapping[str, str]:
    """Return the state of each device of a server by serial; empty where none answers."""
    try:
        return await AdbClient(address).devices()
    except AdbServerDown:
        return {}


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


def check_default_server(default: ServerProbe, ours: Mapping[str, str]) -> Diagnostic:
    """Check whether the server that adb commands use claims devices that the agent should have."""
    if default.version is None:
        return ok("adb server", f"none but the agent's is in the way ({default.address} is silent)")
    claimed = find_claimed_devices(ours, default.state_by_serial)
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
