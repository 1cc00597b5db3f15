"""A virtual phone: the device side of adb on a loopback port, with a real shell behind it.

It requires no authorization, like an emulator, unless `agents.virtual.connection` is configured:
any local process that can connect to loopback may run commands as the user it runs as.
"""

import asyncio
import fcntl
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import TextIO

from agents.host.process import start_ticks
from agents.virtual.connection import MAX_DATA_BYTES, AdbConnection, AuthorizedKeys, Service
from agents.virtual.course import CoursePlayer
from agents.virtual.faults import Faults, FaultState
from agents.virtual.processes import JOURNAL_FILE, BootCounter, RunMonitor, kill_processes, read_number
from agents.virtual.sandbox import (
    SimulatedBattery,
    banner,
    create_sandbox,
    replace_file,
    shell_environment,
    write_dumpsys,
    write_properties,
    write_slowness,
)
from agents.virtual.shell_service import (
    Shell,
    closing_service,
    delayed_service,
    dripping_shell,
    failing_shell,
    reboot_service,
    shell_request,
    shell_service,
)
from agents.virtual.sync_service import sync_service

#: The interval of process scans and fault checks: 0.6 % of one core, with 100 processes on a busy machine.
TICK_S = 0.1
FEATURES = ("shell_v2", "stat_v2")
#: Time it is reachable in a boot loop: adb's server needs that to notice.
LOOP_UP_S = 4.0
RECORD = "phone.json"
_PORT = "port"


class VirtualDeviceBusy(Exception):
    """Another process serves this folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualDeviceConfig:
    """The configuration of one virtual phone."""

    state: Path
    serial: str
    #: 0 selects the port of an earlier process, or any.
    port: int = 0
    shell: str = "/bin/sh"
    #: True if it reports that it shares this machine's CPU, which excludes runs beside other phones.
    shared_cpu: bool = True
    #: NNAPI's library, of which it has a copy; None for a phone without NNAPI.
    nnapi: Path | None = None
    tick_s: float = TICK_S


class VirtualDevice:
    """Serves one phone from one folder; the folder's lock is held as long as the object lives."""

    def __init__(self, setup: VirtualDeviceConfig) -> None:
        """Create the folder; nothing listens yet.

        Raises:
            VirtualDeviceBusy: another process has the folder.
        """
        self._setup = setup
        self._state = setup.state.resolve()
        self._lock = _lock_folder(self._state)
        self._properties = create_sandbox(
            self._state, setup.serial, shared_cpu=setup.shared_cpu, nnapi=setup.nnapi
        )
        self._shell = Shell(
            program=setup.shell,
            environment=shell_environment(os.environ, self._state, setup.serial, setup.shell),
            folder=self._state / "data",
        )
        self._faults = FaultState(self._state)
        self._shown: Faults | None = None
        self._battery = SimulatedBattery(self._state)
        self._boots = BootCounter(self._state)
        #: The end of the current reboot, on the loop's clock; and the next reboot of a boot loop.
        self._back_at_s = self._loops_at_s = 0.0
        self._ordered = asyncio.Event()
        self._watch = RunMonitor(setup.serial, self._state / JOURNAL_FILE, boot_id=self._boots.boot_id)
        self._course = CoursePlayer(self._state)
        self._awake = asyncio.Event()
        self._awake.set()
        self._connections: dict[asyncio.Task[None], AdbConnection] = {}
        self._server: asyncio.Server | None = None
        self._port = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set; then hang up on running commands and remove the record."""
        self._port = await self._listen(self._setup.port or read_number(self._state / _PORT))
        (self._state / _PORT).write_text(str(self._port))
        self._watch.resume()
        # Before the phone is announced: processes on it were alive at least until then.
        self._watch.look()
        pid, started_at = os.getpid(), datetime.now(UTC).isoformat()
        identity = {"pid": pid, "ticks": start_ticks(pid), "port": self._port, "serial": self._setup.serial}
        replace_file(self._state / RECORD, json.dumps({**identity, "started_at": started_at}))
        try:
            while not stop.is_set():
                await self._tick()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._setup.tick_s):
                        await stop.wait()
        finally:
            (self._state / RECORD).unlink(missing_ok=True)
            self._awake.set()
            await self._disconnect()
            self._lock.close()

    async def _tick(self) -> None:
        self._watch.look()
        self._course.play(self._watch.pids, asyncio.get_running_loop().time())
        await self._apply_restarts()
        now_s = asyncio.get_running_loop().time()
        faults = self._battery.with_battery(self._faults.current(), now_s)
        if faults != self._shown:
            await self._show(faults)
        is_flapped_off = faults.flap_s > 0 and int(now_s / faults.flap_s) % 2 == 1
        if faults.vanish or is_flapped_off:
            await self._disconnect()
        elif self._server is None and now_s >= self._back_at_s:
            await self._listen(self._port)

    async def _apply_restarts(self) -> None:
        now_s, faults = asyncio.get_running_loop().time(), self._faults.current()
        if faults.boot_loop and now_s >= self._loops_at_s:
            self._loops_at_s = now_s + faults.reboot_s + LOOP_UP_S
            await self._reboot(faults.reboot_s)
        elif self._ordered.is_set():
            self._ordered.clear()
            self._faults.take("ends_with_reboot")
            await self._reboot(faults.reboot_s)
        elif self._faults.take("reboots"):
            await self._reboot(faults.reboot_s)
        elif self._faults.take("adbd_restarts"):
            await self._disconnect()
            if faults.adbd_takes_runs:
                await asyncio.to_thread(kill_processes, self._setup.serial, self._state)

    async def _reboot(self, away_s: float) -> None:
        await self._disconnect()
        await asyncio.to_thread(kill_processes, self._setup.serial, self._state)
        self._boots.begin_next_boot()
        self._watch.reboot(self._boots.boot_id)
        self._back_at_s = asyncio.get_running_loop().time() + away_s

    async def _show(self, faults: Faults) -> None:
        """Apply these faults from now on."""
        first, before, self._shown = self._shown is None, self._shown or Faults(), faults
        write_dumpsys(self._state, faults)
        write_slowness(self._state, faults)
        # Properties that were set in another way stay.
        if first or (faults.boot_loop, faults.build) != (before.boot_loop, before.build):
            write_properties(self._state, self._properties, faults)
        if faults.hang or faults.offline:
            self._awake.clear()
        else:
            self._awake.set()
        # Connected hosts were greeted before, and would not notice.
        in_greeting = attrgetter("offline", "unauthorized", "mode", "no_stat_v2")
        if in_greeting(faults) != in_greeting(before):
            await self._drop()

    async def _listen(self, port: int) -> int:
        try:
            self._server = await asyncio.start_server(
                self._accept, "127.0.0.1", port, limit=2 * MAX_DATA_BYTES
            )
        except OSError:
            if not port or self._port:
                raise
            # The port of an earlier process is in use by another one.
            return await self._listen(0)
        listening: int = self._server.sockets[0].getsockname()[1]
        return listening

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task, faults = asyncio.current_task(), self._faults.current()
        assert task is not None
        features = tuple(name for name in FEATURES if not (name == "stat_v2" and faults.no_stat_v2))
        connection = AdbConnection(
            reader,
            writer,
            banner=banner(self._properties, features, faults.mode),
            find_service=self._find_service,
            awake=self._awake,
            keys=AuthorizedKeys(self._state, forgotten=faults.unauthorized),
        )
        self._connections[task] = connection
        try:
            # asyncio reports a server's cancelled task as an error.
            with suppress(asyncio.CancelledError):
                await connection.serve()
        finally:
            del self._connections[task]

    def _find_service(self, name: str) -> Service | None:
        faults, request = self._faults.current(), shell_request(name)
        if self._faults.take("eofs"):
            return closing_service
        if name.startswith("reboot:"):
            return reboot_service(self._ordered)
        if name == "sync:":
            service = sync_service(self._faults)
        elif request is None:
            return None
        elif faults.exit1:
            service = failing_shell(request)
        else:
            service = dripping_shell(request) if faults.drips else shell_service(self._shell, request)
        return delayed_service(service, faults.slow_ms / 1000) if faults.slow_ms else service

    async def _disconnect(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        await self._drop()

    async def _drop(self) -> None:
        tasks = list(self._connections)
        for task, connection in self._connections.items():
            connection.abort()
            # A task that waits for a hanging phone would not notice.
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _lock_folder(state: Path) -> TextIO:
    state.mkdir(parents=True, exist_ok=True)
    lock = (state / "lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise VirtualDeviceBusy(f"another process serves {state}") from error
    return lock
