"""Supervision of adb: the server kept alive, TCP devices kept connected, its listing followed."""

import asyncio
from collections.abc import Iterable
from random import Random
from typing import NoReturn

import structlog

from agents.adb.adbutils_listing import connect
from agents.adb.client import AdbClient
from agents.adb.server_selection import SelectedServer
from agents.devices.backpressure import Backpressure
from agents.devices.monitor import DeviceMonitor
from agents.host.backoff import Backoff
from agents.host.usb_port_names import USB_PREFIX, states_by_port
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


class AdbSupervisor:
    """Supervises one adb server; runs on devices are not affected by its restarts."""

    def __init__(
        self,
        *,
        server: SelectedServer,
        adb: AdbClient,
        monitor: DeviceMonitor,
        pressure: Backpressure,
        clock: Clock,
        random: Random,
        ping_s: float = PING_S,
    ) -> None:
        """Start nothing yet; `ping_s` is the server's time to answer, and the interval between pings."""
        self._server = server
        self._adb = adb
        self._monitor = monitor
        self._pressure = pressure
        self._clock = clock
        self._random = random
        self._ping_s = ping_s
        self._problem: str | None = None
        self._restarted_s: list[float] = []
        self._relisted = asyncio.Event()
        self._listening: asyncio.Timeout | None = None

    async def track(self) -> NoReturn:
        """Apply every listing; restart the server when it is gone."""
        backoff = Backoff(self._random, first_s=0.25, cap_s=30.0)
        while True:
            try:
                await self._listen(backoff)
            except AdbServerDown as error:
                log.warning("adb_server_down", reason=error.message)
            except TimeoutError:
                # `ping` has logged the reason.
                pass
            self._monitor.record_server_down()
            await asyncio.sleep(backoff.next_s())
            await self._restart()

    async def _listen(self, backoff: Backoff) -> None:
        try:
            async with asyncio.timeout(None) as self._listening:
                async for state_by_serial in self._adb.track_devices():
                    states = await self._by_port(state_by_serial)
                    backoff.reset()
                    self._record_server_fault(None)
                    self._apply_listing(states)
        finally:
            self._listening = None

    async def ping(self) -> NoReturn:
        """Stop a server that runs but does not answer, so that `track` starts another."""
        missed = 0
        while True:
            await asyncio.sleep(self._ping_s)
            self._record_server_fault(self._problem)
            try:
                await self._adb.version(self._ping_s)
            except AdbServerDown:
                missed += 1
            else:
                missed = 0
            if missed >= MAX_MISSED_PINGS:
                log.error("adb_server_wedged", pid=self._server.pid)
                self._record_server_fault("adb's server does not answer")
                missed = 0
                await self._server.stop()
                self._stop_listening()

    def _stop_listening(self) -> None:
        """Stop reading the listing: a server that is not ours to stop stays, and its silence is no news."""
        if self._listening is not None:
            self._listening.reschedule(asyncio.get_running_loop().time())

    async def keep_connected(self, address: str) -> NoReturn:
        """Keep a TCP device connected: connect again whenever adb drops it. An offline row recovers alone."""
        backoff = Backoff(self._random, first_s=1.0, cap_s=30.0)
        logged: str | None = None
        while True:
            relisted = self._relisted
            try:
                if await self._is_listed(address):
                    backoff.reset()
                    await relisted.wait()
                    continue
                await connect(self._adb.port, address, host=self._adb.host)
            except FarmError as error:
                write = log.debug if error.message == logged else log.warning
                write("device_not_connected", address=address, code=error.code, reason=error.message)
                logged = error.message
            # After a success, too: the listing follows within milliseconds, or the row was dropped again.
            await _wait_within(relisted, backoff.next_s())

    async def _is_listed(self, address: str) -> bool:
        return address in await self._adb.devices()

    async def _by_port(self, state_by_serial: dict[str, str]) -> dict[str, str]:
        """Return the listing by port where ports have names: only the long listing has them."""
        names = self._monitor.names
        if not any(place.startswith(USB_PREFIX) for place in names):
            return state_by_serial
        return states_by_port(await self._adb.list_transports(), names)

    def _apply_listing(self, state_by_serial: dict[str, str]) -> None:
        self._monitor.apply_listing(state_by_serial)
        self._relisted.set()
        self._relisted = asyncio.Event()

    async def _restart(self) -> None:
        try:
            await self._server.start()
        except AdbServerDown as error:
            log.warning("adb_server_not_started", reason=error.message, hint=error.hint)
            self._record_server_fault("adb's server does not start")
            return
        self._adb.port = self._server.port
        self._restarted_s.append(self._clock.monotonic())
        log.info("adb_server_started", port=self._server.port)

    def _record_server_fault(self, problem: str | None) -> None:
        """Apply backpressure while the server has a problem, or was restarted too often."""
        self._problem = problem
        self._restarted_s = recent_restarts(self._restarted_s, self._clock.monotonic())
        is_loop = len(self._restarted_s) > MAX_RESTARTS
        self._pressure.record("adb", problem or (_CRASH_LOOP if is_loop else None))


def recent_restarts(restarted_s: Iterable[float], now_s: float) -> list[float]:
    """Return the restarts within the window."""
    return [at_s for at_s in restarted_s if now_s - at_s <= RESTART_WINDOW_S]


async def _wait_within(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
