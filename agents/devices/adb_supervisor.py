"""Supervision of adb: our server kept alive, TCP devices kept connected, other servers' claims detected."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from random import Random
from typing import NoReturn

import structlog

from agents.adb.client import AdbClient
from agents.adb.server import SelectedServer
from agents.adb.smartsocket import tcp_address
from agents.devices.backpressure import Backpressure
from agents.devices.monitor import DeviceMonitor
from agents.host.retry import Backoff
from agents.host.usb_ports import USB_PREFIX, states_by_port
from farm.clock import Clock
from farm.core.errors import AdbServerDown, FarmError

log = structlog.get_logger(__name__)

PING_S = 5.0
#: Unanswered pings in a row after which the server counts as wedged.
MAX_MISSED_PINGS = 3
#: More restarts than this within the window mark the server as unreliable.
MAX_RESTARTS = 5
RESTART_WINDOW_S = 600.0
_CRASH_LOOP = (
    f"adb's server had to be restarted more than {MAX_RESTARTS} times in {RESTART_WINDOW_S / 60:g} min"
)


@dataclass(eq=False, kw_only=True)
class AdbSupervisor:
    """Supervises one adb server; runs on devices are not affected by its restarts."""

    server: SelectedServer
    adb: AdbClient
    monitor: DeviceMonitor
    pressure: Backpressure
    clock: Clock
    random: Random
    #: The server's time to answer, and the interval between pings.
    ping_s: float = PING_S

    def __post_init__(self) -> None:
        self._problem: str | None = None
        self._restarted_s: list[float] = []
        self._relisted = asyncio.Event()
        self._listening: asyncio.Timeout | None = None

    async def track(self) -> NoReturn:
        """Apply every listing; restart the server when it is gone."""
        backoff = Backoff(self.random, first_s=0.25, cap_s=30.0)
        while True:
            try:
                await self._listen(backoff)
            except AdbServerDown as error:
                log.warning("adb_server_down", reason=error.message)
            except TimeoutError:
                # `ping` has logged the reason.
                pass
            self.monitor.record_server_down()
            await asyncio.sleep(backoff.next_s())
            await self._restart()

    async def _listen(self, backoff: Backoff) -> None:
        try:
            async with (
                asyncio.timeout(None) as self._listening,
                aclosing(self.adb.track_devices()) as listings,
            ):
                async for state_by_serial in listings:
                    states = await self._by_port(state_by_serial)
                    backoff.reset()
                    self._record_server_fault(None)
                    self.monitor.apply_listing(states)
                    self._relisted.set()
                    self._relisted = asyncio.Event()
        finally:
            self._listening = None

    async def ping(self) -> NoReturn:
        """Stop a server that runs but does not answer, so that `track` starts another; bound its log."""
        missed = 0
        while True:
            await asyncio.sleep(self.ping_s)
            self._record_server_fault(self._problem)
            await self.server.rotate_log()
            try:
                await self.adb.version(self.ping_s)
            except AdbServerDown:
                missed += 1
            else:
                missed = 0
            if missed >= MAX_MISSED_PINGS:
                log.error("adb_server_wedged", pid=self.server.pid)
                self._record_server_fault("adb's server does not answer")
                missed = 0
                await self.server.stop()
                # A server that is not ours to stop stays, and its silence is no news.
                if self._listening is not None:
                    self._listening.reschedule(asyncio.get_running_loop().time())

    async def keep_connected(self, address: str) -> NoReturn:
        """Keep a TCP device connected: connect again whenever adb drops it. An offline row recovers alone."""
        backoff = Backoff(self.random, first_s=1.0, cap_s=30.0)
        logged: str | None = None
        while True:
            relisted = self._relisted
            try:
                if address in await self.adb.devices():
                    backoff.reset()
                    await relisted.wait()
                    continue
                await self.adb.connect(address)
            except FarmError as error:
                write = log.debug if error.message == logged else log.warning
                write("device_not_connected", address=address, code=error.code, reason=error.message)
                logged = error.message
            # After a success, too: the listing follows within milliseconds, or the row was dropped again.
            with suppress(TimeoutError):
                async with asyncio.timeout(backoff.next_s()):
                    await relisted.wait()

    async def _by_port(self, state_by_serial: dict[str, str]) -> dict[str, str]:
        """Return the listing by port where ports have names: only the long listing has them."""
        names = self.monitor.names
        if not any(place.startswith(USB_PREFIX) for place in names):
            return state_by_serial
        return states_by_port(await self.adb.list_transports(), names)

    async def _restart(self) -> None:
        try:
            await self.server.start()
        except AdbServerDown as error:
            log.warning("adb_server_not_started", reason=error.message, hint=error.hint)
            self._record_server_fault("adb's server does not start")
            return
        self._restarted_s.append(self.clock.monotonic())
        log.info("adb_server_started", address=self.server.address)

    def _record_server_fault(self, problem: str | None) -> None:
        """Apply backpressure while the server has a problem, or was restarted too often."""
        self._problem = problem
        self._restarted_s = recent_restarts(self._restarted_s, self.clock.monotonic())
        is_loop = len(self._restarted_s) > MAX_RESTARTS
        self.pressure.record("adb", problem or (_CRASH_LOOP if is_loop else None))


def recent_restarts(restarted_s: Iterable[float], now_s: float) -> list[float]:
    """Return the restarts within the window."""
    return [at_s for at_s in restarted_s if now_s - at_s <= RESTART_WINDOW_S]


#: The default port of adb's server.
DEFAULT_ADB_PORT = 5037
CHECK_INTERVAL_S = 60.0
_REACHABLE = "device"


def default_adb_port(environment: Mapping[str, str]) -> int:
    """Return the port on which adb commands of this environment expect a server."""
    port = environment.get("ANDROID_ADB_SERVER_PORT", "")
    return int(port) if port.isdecimal() and 0 < int(port) < 65536 else DEFAULT_ADB_PORT


def find_claimed_devices(ours: Mapping[str, str], theirs: Mapping[str, str]) -> frozenset[str]:
    """Return the USB devices that another server lists and ours cannot use.

    A USB device is claimed by one server only. A TCP device accepts any number, and emulators attach
    themselves.
    """
    on_usb = (serial for serial in theirs if ":" not in serial and not serial.startswith("emulator-"))
    return frozenset(serial for serial in on_usb if ours.get(serial) != _REACHABLE)


def claimed_device_hint(port: int) -> str:
    """Return the explanation and the remedy for such a device."""
    return (
        f"another adb server on this machine (port {port}) claims it: stop that one "
        f"(adb -P {port} kill-server), or share it (FARM_AGENT_ADB_SERVER=127.0.0.1:{port})"
    )


@dataclass(eq=False, kw_only=True)
class OtherServerMonitor:
    """Polls the server that this machine's adb commands use, if one runs; never starts it."""

    ours: AdbClient
    port: int
    monitor: DeviceMonitor
    interval_s: float = CHECK_INTERVAL_S

    def __post_init__(self) -> None:
        self._claimed: frozenset[str] = frozenset()

    async def run(self) -> NoReturn:
        """Check periodically; log the result when it changes."""
        while True:
            claimed = await self._check()
            if claimed != self._claimed:
                self._claimed = claimed
                log.warning("devices_claimed_by_other_server", port=self.port, serials=sorted(claimed))
                self.monitor.record_claimed(claimed, claimed_device_hint(self.port))
            await asyncio.sleep(self.interval_s)

    async def _check(self) -> frozenset[str]:
        try:
            theirs = await AdbClient(tcp_address(self.port)).devices()
        except AdbServerDown:
            return frozenset()
        try:
            return find_claimed_devices(await self.ours.devices(), theirs)
        except AdbServerDown:
            return self._claimed
