"""The agent's adb server: a child on a private port, found again after a kill of the agent."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import adbutils
import structlog

from agents.adb.client import AdbClient
from agents.adb.smartsocket import LOOPBACK
from agents.host.process import command_line, end_process
from farm.core.errors import AdbServerDown

log = structlog.get_logger(__name__)

#: With USB on, the server searches for devices for about 3 s before it answers.
START_DEADLINE_S = 20.0
STOP_DEADLINE_S = 5.0
POLL_S = 0.01
_STARTS = 3
_RECORD = "adb-server.json"
_ADB_VARIABLE_PREFIXES = ("ADB_", "ANDROID_ADB_", "ANDROID_SERIAL", "ADBUTILS_")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """A started server, as recorded for the next agent process."""

    pid: int
    port: int


class AdbServer:
    """An adb server of our own; one folder has one server, on the same port again where possible.

    `start` ends a recorded server that still runs: its owner, an earlier agent, is gone. So two live agents
    never share a folder.
    """

    def __init__(
        self, folder: Path, *, usb: bool = True, vendor_keys: str | None = None, adb: Path | None = None
    ) -> None:
        """Start nothing yet.

        Args:
            folder: for the record, log and temporary files; without USB for the key too. Made when missing.
            usb: serve phones on USB, with the operator's key. False is for servers of TCP and virtual phones.
            vendor_keys: further keys (ADB_VENDOR_KEYS), so that a lab can share one over all hosts.
            adb: another binary than the one adbutils ships.
        """
        self._folder = folder
        self._usb = usb
        self._vendor_keys = vendor_keys
        self._adb = adb
        self._process: asyncio.subprocess.Process | None = None
        self._port = 0

    @property
    def host(self) -> str:
        """Return the loopback address."""
        return LOOPBACK

    @property
    def port(self) -> int:
        """Return the server's port; 0 before the first start."""
        return self._port

    @property
    def public_key(self) -> Path:
        """Return the path of the key that unknown devices are asked to allow; never an additional one."""
        environment = server_environment(os.environ, self._folder, self._usb, self._vendor_keys)
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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """End a server of an earlier process, start ours and wait until it answers.

        Raises:
            AdbServerDown: it does not come up; its log is named.
        """
        await self.stop()
        for folder in (self._folder / "tmp", key_home(self._folder)):
            folder.mkdir(parents=True, exist_ok=True)
        previous_port = await self._end_orphaned_server()
        self._port = self._port or previous_port
        for _ in range(_STARTS):
            if not self._port or not _is_free(self._port):
                self._port = _free_port()
            if await self._spawn_and_wait():
                return
            await self.stop()
        raise AdbServerDown(f"adb's server does not start: see {self._log}")

    async def stop(self) -> None:
        """Stop the server by its pid, by force if needed; does nothing when it does not run."""
        process, self._process = self._process, None
        if process is not None:
            await _terminate(process)
            record = find_record(self._folder)
            # While we waited for its end, `start` may have recorded another.
            if record is not None and record.pid == process.pid:
                (self._folder / _RECORD).unlink(missing_ok=True)

    @property
    def _log(self) -> Path:
        return self._folder / "adb-server.log"

    async def _spawn_and_wait(self) -> bool:
        await self._spawn()
        client = AdbClient(self._port)
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                while self.alive():
                    if await _is_responding(client):
                        # Another process may have taken the port and answer instead of our server.
                        return self.alive()
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            pass
        return False

    async def _spawn(self) -> None:
        arguments = [str(self._adb or bundled_adb()), "-P", str(self._port), "server", "nodaemon"]
        environment = server_environment(os.environ, self._folder, self._usb, self._vendor_keys)
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *arguments,
                env=environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A Ctrl-C at the agent's terminal must reach the agent alone, which then stops the server.
                start_new_session=True,
            )
        self._write_record(ServerRecord(pid=self._process.pid, port=self._port))

    def _write_record(self, record: ServerRecord) -> None:
        path = self._folder / _RECORD
        draft = path.with_suffix(".new")
        try:
            draft.write_text(json.dumps({"pid": record.pid, "port": record.port}))
            draft.replace(path)
        except OSError as error:
            # A full disk must not keep results of runs from being collected. The price: after a kill of
            # this agent the next one does not find the server.
            log.warning("adb_server_not_recorded", reason=str(error))
            draft.unlink(missing_ok=True)

    async def _end_orphaned_server(self) -> int:
        """End the recorded server if it still runs; return its port, 0 without a record."""
        record = find_record(self._folder)
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


def forbid_adbutils_servers(environment: MutableMapping[str, str]) -> None:
    """Keep adbutils from starting servers; call it once in the composition root, with `os.environ`.

    adbutils runs `ADB start-server` on the environment's port when the client's server does not answer. Given
    a binary that does nothing, it fails as it should. `bundled_adb` ignores the environment.
    """
    environment["ADBUTILS_ADB_PATH"] = shutil.which("false") or "/bin/false"


async def _is_responding(client: AdbClient) -> bool:
    try:
        await client.version()
    except AdbServerDown:
        return False
    return True


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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
