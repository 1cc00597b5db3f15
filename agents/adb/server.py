"""The adb server, our own or the operator's: ours listens where this user alone may connect."""

import asyncio
import base64
import binascii
import hashlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path
from typing import Self

import adbutils
import structlog

from agents.adb.client import AdbClient
from agents.adb.smartsocket import MAX_PATH_BYTES, tcp_address, unix_address
from agents.host.atomic_file import make_folder, translate_disk_errors
from agents.host.config import AgentConfig
from agents.host.log_rotation import copy_and_truncate_if_over, rotate
from agents.host.process import TERMINATION_SIGNALS, command_line, end_process
from farm.core.base.address import host_and_port, is_loopback
from farm.core.errors import AdbServerDown, InvalidInput
from farm.file_modes import close_folder

log = structlog.get_logger(__name__)

#: With USB on, the server searches for devices for about 3 s before it answers.
START_DEADLINE_S = 20.0
STOP_DEADLINE_S = 5.0
POLL_S = 0.01
#: Of `adb-server.log`, and of its older part `adb-server.log.1`.
LOG_LIMIT_BYTES = 10 * 1024 * 1024
_ADB_VARIABLE_PREFIXES = ("ADB_", "ANDROID_ADB_", "ANDROID_SERIAL", "ADBUTILS_")


@dataclass(eq=False)
class AdbServer:
    """An adb server of our own; one folder has one server, on a Unix socket in it.

    `start` ends a server of the folder that still runs: its owner, an earlier agent, is gone. So two live
    agents never share a folder.
    """

    #: For the socket, log and temporary files; without USB for the key too. Made when missing, and closed to
    #: other users: to reach the socket is to command every device.
    folder: Path
    _: KW_ONLY
    #: Serve devices on USB, with the operator's key. False is for servers of TCP and virtual devices.
    usb: bool = True
    #: Further keys (ADB_VENDOR_KEYS), so that a lab can share one over all hosts.
    vendor_keys: str | None = None
    #: Another binary than the one adbutils ships.
    adb: Path | None = None
    log_limit_bytes: int = LOG_LIMIT_BYTES
    _process: asyncio.subprocess.Process | None = field(default=None, init=False)

    @property
    def address(self) -> str:
        """Return the address, whether it runs or not."""
        return own_address(self.folder)

    @property
    def is_on_this_machine(self) -> bool:
        """Return True."""
        return True

    @property
    def public_key(self) -> Path:
        """Return the path of the key that unknown devices are asked to allow; never an additional one."""
        environment = server_environment(os.environ, self.folder, self.usb, self.vendor_keys)
        return Path(environment["HOME"]) / ".android" / "adbkey.pub"

    @property
    def pid(self) -> int | None:
        """Return the server's pid; None when it does not run."""
        return self._process.pid if self._process is not None and self.alive() else None

    def alive(self) -> bool:
        """Return whether the process runs; a wedged one does: ask `AdbClient.version` too."""
        return self._process is not None and self._process.returncode is None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """End a server of an earlier process, start ours and wait until it answers.

        Raises:
            AdbServerDown: it does not come up; its log is named.
            HostDiskFull: there is no space for its folders or its log.
        """
        await self.stop()
        for folder in (self.folder / "tmp", key_home(self.folder)):
            make_folder(folder)
        close_folder(self.folder)
        await asyncio.to_thread(end_own_server, self.folder)
        if not await self._spawn_and_wait():
            await self.stop()
            raise AdbServerDown(f"adb's server does not start: see {self._log}")

    async def stop(self) -> None:
        """Stop the server by its pid, by force if needed; does nothing when it does not run."""
        process, self._process = self._process, None
        if process is not None:
            await _terminate(process)

    async def rotate_log(self) -> None:
        """Keep the log of the running server within its limit."""
        try:
            if await asyncio.to_thread(copy_and_truncate_if_over, self._log, self.log_limit_bytes):
                log.info("adb_server_log_rotated", file=str(self._log))
        except OSError as error:
            log.warning("adb_server_log_not_rotated", reason=str(error))

    @property
    def _log(self) -> Path:
        return self.folder / "adb-server.log"

    async def _spawn_and_wait(self) -> bool:
        await self._spawn()
        client = AdbClient(self.address)
        with suppress(TimeoutError):
            async with asyncio.timeout(START_DEADLINE_S):
                while self.alive():
                    with suppress(AdbServerDown):
                        await client.version()
                        return True
                    await asyncio.sleep(POLL_S)
        return False

    async def _spawn(self) -> None:
        arguments = [str(self.adb or bundled_adb()), "-L", self.address, "server", "nodaemon"]
        environment = server_environment(os.environ, self.folder, self.usb, self.vendor_keys)
        with translate_disk_errors(self._log):
            # What the previous server wrote tells why it ended.
            rotate(self._log)
            output = self._log.open("ab")
        with output:
            self._process = await asyncio.create_subprocess_exec(
                *arguments,
                env=environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # A Ctrl-C at the agent's terminal must reach the agent alone, which then stops the server.
                start_new_session=True,
            )


def own_address(folder: Path) -> str:
    """Return where the own server of a folder listens, in the notation of `adb -L`."""
    return unix_address(folder / "socket")


def check_own_address(folder: Path) -> None:
    """Check that a server can listen in a folder.

    Raises:
        InvalidInput: the path of its socket is longer than the kernel allows.
    """
    path = folder / "socket"
    if (length := len(os.fsencode(path))) > MAX_PATH_BYTES:
        raise InvalidInput(
            f"the path of the adb server's socket has {length} bytes, at most {MAX_PATH_BYTES} are "
            f"possible: {path}",
            hint="choose a shorter data folder: FARM_AGENT_DATA_DIR, or FARM_DATA_DIR for `farm up`",
        )


def find_own_server(folder: Path) -> int | None:
    """Return the pid of the own server of a folder, started by this process or another; None without one."""
    return next(_own_servers(folder), None)


def end_own_server(
    folder: Path,
    *,
    deadline_s: float = STOP_DEADLINE_S,
    signals: Sequence[signal.Signals] = TERMINATION_SIGNALS,
) -> None:
    """End the own server of a folder, if one runs. Blocks for at most `deadline_s` after each signal."""
    for pid in _own_servers(folder):
        end_process(pid, partial(_is_own_server, folder), deadline_s=deadline_s, signals=signals)


def _own_servers(folder: Path) -> Iterator[int]:
    pids = (int(process.name) for process in Path("/proc").glob("[0-9]*"))
    return (pid for pid in pids if _is_own_server(folder, pid))


def _is_own_server(folder: Path, pid: int) -> bool:
    """Return whether a process is the server of this folder, not of one with the same path in a container."""
    match command_line(pid):
        case [_, "-L", _, "server", "nodaemon"]:
            # Readable for its own user only, who alone can enter the folder.
            with suppress(OSError):
                return Path(f"/proc/{pid}/cwd").samefile(folder)
    return False


def key_home(folder: Path) -> Path:
    """Return the home folder of a server without USB, which holds its key."""
    return folder / "home"


def server_environment(
    outer: Mapping[str, str], folder: Path, usb: bool, vendor_keys: str | None
) -> dict[str, str]:
    """Return the server's environment: ours, with every adb setting of the operator replaced."""
    inherited = {name: value for name, value in outer.items() if not name.startswith(_ADB_VARIABLE_PREFIXES)}
    settings = {"ADB_MDNS": "0", "ADB_EMU": "0", "ADB_REJECT_KILL_SERVER": "1", "TMPDIR": str(folder / "tmp")}
    if not usb:
        # Its key is created below HOME: devices without authorization do not need the operator's.
        settings |= {"ADB_USB": "0", "HOME": str(key_home(folder))}
    if keys := vendor_keys or outer.get("ADB_VENDOR_KEYS"):
        settings["ADB_VENDOR_KEYS"] = keys
    return {"HOME": str(Path.home()), **inherited, **settings}


def bundled_adb() -> Path:
    """Return the adb binary inside adbutils. `adbutils.adb_path()` alone prefers any adb on PATH."""
    binary = Path(adbutils.__file__).parent / "binaries" / "adb"
    return binary if binary.exists() else Path(adbutils.adb_path())


async def _terminate(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
        # A stopped process (SIGSTOP) handles no signal before SIGCONT.
        # Not by the process object, which would reap the process instead of asyncio's child watcher.
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)
    try:
        async with asyncio.timeout(STOP_DEADLINE_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


#: The protocol of the adb bundled with adbutils ("1.0.41"). An adb of another version kills the server.
PROTOCOL_VERSION = 41


class ExternalServer:
    """An adb server that another process runs; it may go away, and is waited for."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self._version: int | None = None

    @property
    def address(self) -> str:
        """Return the address."""
        return tcp_address(self.port, self.host)

    @property
    def is_on_this_machine(self) -> bool:
        """Return whether other processes of this machine reach it by the same address."""
        return is_loopback(self.host)

    @property
    def public_key(self) -> None:
        """Return None: the key is the operator's."""
        return

    @property
    def pid(self) -> None:
        """Return None: the server may be on another machine."""
        return

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except AdbServerDown as error:
            log.warning("adb_server_not_started", reason=error.message, hint=error.hint)
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def start(self) -> None:
        """Check whether it answers, and log once when its version is not ours.

        Raises:
            AdbServerDown: it does not.
        """
        try:
            version = await AdbClient(self.address).version()
        except AdbServerDown as error:
            raise AdbServerDown(
                error.message,
                hint=f"start it where the devices are (`adb -P {self.port} start-server`), or unset "
                "FARM_AGENT_ADB_SERVER: then the agent runs its own server. The agent keeps trying "
                f"{self.host}:{self.port}",
            ) from error
        if version not in (PROTOCOL_VERSION, self._version):
            log.warning("adb_server_version_differs", hint=version_hint(version))
        self._version = version

    async def stop(self) -> None:
        """Do nothing."""

    async def rotate_log(self) -> None:
        """Do nothing: the log is its owner's."""


def version_hint(version: int) -> str:
    """Return the hint for a server of another version than ours."""
    return (
        f"the shared adb server speaks version {version}, the agent's adb {PROTOCOL_VERSION}: the agent can "
        "use it, but an adb command of another version than the server's ends that server"
    )


#: Both have the same methods to start and stop, and the same address properties.
SelectedServer = AdbServer | ExternalServer


def select_server(config: AgentConfig) -> SelectedServer:
    """Return the server that the settings name; nothing is started yet.

    Raises:
        InvalidInput: the key that phones are to be shown cannot be read, or the path of the data folder is
            too long for a socket.
    """
    if config.adb_server is not None:
        return ExternalServer(*host_and_port(config.adb_server))
    if config.adb_key is not None and not os.access(config.adb_key, os.R_OK):
        # adb would ignore it silently, and every device would ask its owner for approval.
        raise InvalidInput(f"the key {config.adb_key} cannot be read", hint="set or unset FARM_AGENT_ADB_KEY")
    keys = str(config.adb_key) if config.adb_key else None
    folder = config.data_dir / "adb"
    check_own_address(folder)
    return AdbServer(folder, usb=config.adb_usb, vendor_keys=keys)


def fingerprint(public_key: str) -> str | None:
    """Return the fingerprint that Android's dialog shows for a key (`adbkey.pub`); None for an invalid one.

    AOSP: AdbDebuggingManager.getFingerprints: the MD5 of the key's bytes, in pairs of capitals.
    """
    try:
        content = base64.b64decode(public_key.partition(" ")[0], validate=True)
    except (binascii.Error, ValueError):
        return None
    digits = hashlib.md5(content, usedforsecurity=False).hexdigest().upper()
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2)) if content else None


def find_fingerprint(path: Path | None) -> str | None:
    """Return the fingerprint of a key file, as devices show it; None while it cannot be read."""
    if path is None:
        return None
    try:
        return fingerprint(path.read_text(encoding="ascii", errors="replace").strip())
    except OSError:
        return None
