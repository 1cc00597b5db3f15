"""The adb server, our own or the operator's: a child on a private port, found again after an agent's kill."""

import asyncio
import base64
import binascii
import hashlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Self

import adbutils
import structlog

from agents.adb.client import AdbClient
from agents.adb.smartsocket import LOOPBACK
from agents.host.atomic_file import make_folder, translate_disk_errors
from agents.host.config import AgentConfig
from agents.host.log_rotation import copy_and_truncate_if_over, rotate
from agents.host.process import command_line, end_process
from farm.core.base.address import host_and_port
from farm.core.errors import AdbServerDown, InvalidInput

log = structlog.get_logger(__name__)

#: With USB on, the server searches for devices for about 3 s before it answers.
START_DEADLINE_S = 20.0
STOP_DEADLINE_S = 5.0
POLL_S = 0.01
#: Of `adb-server.log`, and of its older part `adb-server.log.1`.
LOG_LIMIT_BYTES = 10 * 1024 * 1024
_STARTS = 3
_RECORD = "adb-server.json"
_ADB_VARIABLE_PREFIXES = ("ADB_", "ANDROID_ADB_", "ANDROID_SERIAL", "ADBUTILS_")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """A started server, as recorded for the next agent process."""

    pid: int
    port: int


@dataclass(eq=False)
class AdbServer:
    """An adb server of our own; one folder has one server, on the same port again where possible.

    `start` ends a recorded server that still runs: its owner, an earlier agent, is gone. So two live agents
    never share a folder.
    """

    #: For the record, log and temporary files; without USB for the key too. Made when missing.
    folder: Path
    _: KW_ONLY
    #: Serve devices on USB, with the operator's key. False is for servers of TCP and virtual devices.
    usb: bool = True
    #: Further keys (ADB_VENDOR_KEYS), so that a lab can share one over all hosts.
    vendor_keys: str | None = None
    #: Another binary than the one adbutils ships.
    adb: Path | None = None
    log_limit_bytes: int = LOG_LIMIT_BYTES
    #: 0 before the first start.
    port: int = field(default=0, init=False)
    _process: asyncio.subprocess.Process | None = field(default=None, init=False)

    @property
    def host(self) -> str:
        """Return the loopback address."""
        return LOOPBACK

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
        previous_port = await self._end_orphaned_server()
        self.port = self.port or previous_port
        for _ in range(_STARTS):
            if not self.port or not _is_free(self.port):
                with socket.socket() as probe:
                    probe.bind((LOOPBACK, 0))
                    self.port = int(probe.getsockname()[1])
            if await self._spawn_and_wait():
                return
            await self.stop()
        raise AdbServerDown(f"adb's server does not start: see {self._log}")

    async def stop(self) -> None:
        """Stop the server by its pid, by force if needed; does nothing when it does not run."""
        process, self._process = self._process, None
        if process is not None:
            await _terminate(process)
            record = find_record(self.folder)
            # While we waited for its end, `start` may have recorded another.
            if record is not None and record.pid == process.pid:
                (self.folder / _RECORD).unlink(missing_ok=True)

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
        client = AdbClient(self.port)
        with suppress(TimeoutError):
            async with asyncio.timeout(START_DEADLINE_S):
                while self.alive():
                    with suppress(AdbServerDown):
                        await client.version()
                        # Another process may have taken the port and answer instead of our server.
                        return self.alive()
                    await asyncio.sleep(POLL_S)
        return False

    async def _spawn(self) -> None:
        arguments = [str(self.adb or bundled_adb()), "-P", str(self.port), "server", "nodaemon"]
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
        path = self.folder / _RECORD
        draft = path.with_suffix(".new")
        try:
            draft.write_text(json.dumps({"pid": self._process.pid, "port": self.port}))
            draft.replace(path)
        except OSError as error:
            # A full disk must not keep results of runs from being collected. The price: after a kill of
            # this agent the next one does not find the server.
            log.warning("adb_server_not_recorded", reason=str(error))
            draft.unlink(missing_ok=True)

    async def _end_orphaned_server(self) -> int:
        """End the recorded server if it still runs; return its port, 0 without a record."""
        record = find_record(self.folder)
        if record is None:
            return 0
        await asyncio.to_thread(
            end_process,
            record.pid,
            lambda pid: is_our_server(command_line(pid), record.port),
            deadline_s=STOP_DEADLINE_S,
        )
        return record.port


def find_record(folder: Path) -> ServerRecord | None:
    """Return the recorded server of the folder; None without a readable record."""
    try:
        fields = json.loads((folder / _RECORD).read_text())
        return ServerRecord(pid=int(fields["pid"]), port=int(fields["port"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def find_own_server(folder: Path) -> ServerRecord | None:
    """Return the recorded server of the folder, if it runs."""
    record = find_record(folder)
    return record if record is not None and is_our_server(command_line(record.pid), record.port) else None


def is_our_server(arguments: list[str], port: int) -> bool:
    """Return whether a command line is that of our adb server on the port: pids are reused."""
    return arguments[1:] == ["-P", str(port), "server", "nodaemon"]


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


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


#: The protocol of the adb bundled with adbutils ("1.0.41"). An adb of another version kills the server.
PROTOCOL_VERSION = 41


class ExternalServer:
    """An adb server that another process runs; it may go away, and is waited for."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self._version: int | None = None

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
            version = await AdbClient(self.port, self.host).version()
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
        InvalidInput: the key that phones are to be shown cannot be read.
    """
    if config.adb_server is not None:
        return ExternalServer(*host_and_port(config.adb_server))
    if config.adb_key is not None and not os.access(config.adb_key, os.R_OK):
        # adb would ignore it silently, and every device would ask its owner for approval.
        raise InvalidInput(f"the key {config.adb_key} cannot be read", hint="set or unset FARM_AGENT_ADB_KEY")
    keys = str(config.adb_key) if config.adb_key else None
    return AdbServer(config.data_dir / "adb", usb=config.adb_usb, vendor_keys=keys)


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
