"""Keeps adb going: our server alive, TCP phones connected, its listing read."""

import asyncio
from random import Random
from typing import NoReturn

import structlog

from agents.adb.choice import Server
from agents.adb.client import AdbClient
from agents.adb.listing import connect
from agents.backoff import Backoff
from agents.watch import PhoneWatch
from farm.core.errors import AdbServerDown, FarmError

log = structlog.get_logger(__name__)

PING_S = 5.0
#: Pings without an answer in a row, after which the server counts as wedged (FAULTS 17).
PINGS_MISSED = 3


class AdbKeeper:
    """Looks after one adb server; runs on phones do not notice when it is restarted."""

    def __init__(
        self, *, server: Server, adb: AdbClient, watch: PhoneWatch, random: Random, ping_s: float = PING_S
    ) -> None:
        """Nothing is asked yet; `ping_s` is how long the server may take to answer, and the time between."""
        self._server = server
        self._adb = adb
        self._watch = watch
        self._random = random
        self._ping_s = ping_s
        self._relisted = asyncio.Event()
        self._listening: asyncio.Timeout | None = None

    async def track(self) -> NoReturn:
        """Hand every listing on; restart the server when it is gone."""
        backoff = Backoff(self._random, first_s=0.25, cap_s=30.0)
        while True:
            try:
                await self._listen(backoff)
            except AdbServerDown as error:
                log.warning("adb_server_down", reason=error.message)
            except TimeoutError:
                # `ping` has said why.
                pass
            self._watch.note_server_down()
            await asyncio.sleep(backoff.next_s())
            await self._restart()

    async def _listen(self, backoff: Backoff) -> None:
        try:
            async with asyncio.timeout(None) as self._listening:
                async for state_by_serial in self._adb.track_devices():
                    backoff.reset()
                    self._note(state_by_serial)
        finally:
            self._listening = None

    async def ping(self) -> NoReturn:
        """End a server that is there and does not answer, so that `track` starts another."""
        missed = 0
        while True:
            await asyncio.sleep(self._ping_s)
            try:
                await self._adb.version(self._ping_s)
            except AdbServerDown:
                missed += 1
            else:
                missed = 0
            if missed >= PINGS_MISSED:
                log.error("adb_server_wedged", pid=self._server.pid)
                missed = 0
                await self._server.stop()
                self._stop_listening()

    def _stop_listening(self) -> None:
        """A server that is not ours to end stays, and its silence would be taken for news of no change."""
        if self._listening is not None:
            self._listening.reschedule(asyncio.get_running_loop().time())

    async def keep_connected(self, address: str) -> NoReturn:
        """Attach a TCP phone, again whenever adb drops its row. A row that is offline recovers by itself."""
        backoff = Backoff(self._random, first_s=1.0, cap_s=30.0)
        told: str | None = None
        while True:
            relisted = self._relisted
            try:
                if await self._is_listed(address):
                    backoff.reset()
                    await relisted.wait()
                    continue
                await connect(self._adb.port, address, host=self._adb.host)
            except FarmError as error:
                say = log.debug if error.message == told else log.warning
                say("phone_not_connected", address=address, code=error.code, reason=error.message)
                told = error.message
            # Also after a success: the listing follows within milliseconds, or the row was dropped again.
            await _wait_within(relisted, backoff.next_s())

    async def _is_listed(self, address: str) -> bool:
        return address in await self._adb.devices()

    def _note(self, state_by_serial: dict[str, str]) -> None:
        self._watch.note_states(state_by_serial)
        self._relisted.set()
        self._relisted = asyncio.Event()

    async def _restart(self) -> None:
        try:
            await self._server.start()
        except AdbServerDown as error:
            log.warning("adb_server_not_started", reason=error.message, hint=error.hint)
            return
        self._adb.port = self._server.port
        log.info("adb_server_started", port=self._server.port)


async def _wait_within(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
