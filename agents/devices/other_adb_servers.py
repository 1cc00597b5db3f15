"""Detection of USB devices that another adb server on this machine claims."""

import asyncio
from collections.abc import Mapping
from typing import NoReturn

import structlog

from agents.adb.client import AdbClient
from agents.devices.monitor import DeviceMonitor
from farm.core.errors import AdbServerDown

log = structlog.get_logger(__name__)

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


class OtherServerMonitor:
    """Polls the server that this machine's adb commands use, if one runs; never starts it."""

    def __init__(
        self, *, ours: AdbClient, port: int, monitor: DeviceMonitor, interval_s: float = CHECK_INTERVAL_S
    ) -> None:
        self._ours = ours
        self._port = port
        self._monitor = monitor
        self._interval_s = interval_s
        self._claimed: frozenset[str] = frozenset()

    async def run(self) -> NoReturn:
        """Check periodically; log the result when it changes."""
        while True:
            claimed = await self._check()
            if claimed != self._claimed:
                self._claimed = claimed
                log.warning("devices_claimed_by_other_server", port=self._port, serials=sorted(claimed))
                self._monitor.record_claimed(claimed, claimed_device_hint(self._port))
            await asyncio.sleep(self._interval_s)

    async def _check(self) -> frozenset[str]:
        if self._ours.port == self._port:
            return frozenset()
        try:
            theirs = await AdbClient(self._port).devices()
        except AdbServerDown:
            return frozenset()
        try:
            return find_claimed_devices(await self._ours.devices(), theirs)
        except AdbServerDown:
            return self._claimed
