"""Battery care: batteries kept within their window, by root or by a switched USB port."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import structlog

from agents.adb.client import AdbClient
from agents.device.control.charging import pause_charging, resume_charging
from agents.devices.active_attempts import ActiveAttempts
from agents.devices.inventory import is_usb
from agents.devices.monitor import DeviceMonitor, OnlineDevice
from agents.host.usb_ports import UsbPort, find_port, restore_ports, save_ports, switch_power
from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from farm.core.errors import FarmError, HostError
from farm.core.upkeep.charging import ChargeWindow, should_charge

log = structlog.get_logger(__name__)

INTERVAL_S = 20.0
#: For all devices together, when the agent stops.
_RESTORE_S = 15.0
_CANNOT_PAUSE = "charging cannot be paused: no root with a known switch, and no FARM_AGENT_POWER_COMMAND"
_PORT_CUTS_DATA = "charging cannot be paused: switching its port off disconnects it from adb, too"


#: In the agent's folder: the ports that are off, for the next process after a kill.
PORTS_FILE = "ports-off.json"


@dataclass(eq=False, kw_only=True)
class BatteryCare:
    """Checks all devices periodically; one that is being measured is not disturbed.

    Invariant: a pause is recorded on the device, or its port is switched on when we end; so a device charges
    again when the agent stops, and after a kill when the next agent process sees the device.
    """

    adb: AdbClient
    monitor: DeviceMonitor
    active: ActiveAttempts
    window: ChargeWindow | None
    power: Sequence[str] | None
    folder: Path
    interval_s: float = INTERVAL_S

    def __post_init__(self) -> None:
        self._ports_file = self.folder / PORTS_FILE
        #: Devices whose charging is paused, with the port whose power is off.
        self._paused: dict[DeviceId, UsbPort | None] = {}
        #: Ports of an earlier process that could not be switched on.
        self._ports_left_off: tuple[UsbPort, ...] = ()
        #: The boot id in which each device was last cleaned of earlier pauses.
        self._boot_id_by_device: dict[DeviceId, str | None] = {}
        #: Devices whose port cuts their data as well.
        self._unpausable: set[DeviceId] = set()

    async def run(self) -> NoReturn:
        """Check batteries until cancelled; then resume the charging of all devices."""
        self._ports_left_off = await restore_ports(self._ports_file, self.power)
        try:
            while True:
                await self.run_once()
                await asyncio.sleep(self.interval_s)
        finally:
            await self._release_all()

    async def run_once(self) -> None:
        """Check every device once; a slow one delays no other."""
        observations = self.monitor.observations()
        online = {name for name, row in observations.items() if row.presence is Presence.ONLINE}
        idle = sorted(online - self.active.measuring())
        absent = [name for name, port in self._paused.items() if port and name not in observations]
        await asyncio.gather(*map(self._care_for, idle), *map(self._restore_port, absent))

    async def _care_for(self, identity: DeviceId) -> None:
        device = self.monitor.find(identity)
        if device is None or identity in self.active.on_device_action:
            return
        try:
            if identity not in self._boot_id_by_device or self._boot_id_by_device[identity] != device.boot_id:
                # An earlier process, or a lost connection, may have left a pause.
                await _resume(identity, device)
                if self._paused.get(identity) is None:
                    self._paused.pop(identity, None)
                self._boot_id_by_device[identity] = device.boot_id
            await self._decide(identity, device)
        except FarmError as error:
            log.info("charging_check_failed", device_id=identity, code=error.code, reason=error.message)

    async def _decide(self, identity: DeviceId, device: OnlineDevice) -> None:
        condition = self.monitor.observations()[identity].condition
        level = condition.battery_level_pct if condition else None
        is_paused = identity in self._paused
        records = (attempt.record for attempt in self.active.attempt_by_id.values())
        # Of a run that is about to begin there.
        gates = next((record.plan.gates for record in records if record.device_id == identity), None)
        charge = should_charge(self.window, level, is_held=is_paused, gates=gates)
        if charge and is_paused:
            await self._release(identity)
            self._record(identity, f"charges again since {level} %")
        elif not charge and not is_paused and not self.active.is_busy(identity):
            # Nothing may begin on a device that is about to lose its charger.
            self.active.on_device_action.add(identity)
            try:
                await self._pause(identity, device, level)
            finally:
                self.active.on_device_action.discard(identity)
                self.active.changed.set()

    async def _pause(self, identity: DeviceId, device: OnlineDevice, level_pct: int | None) -> None:
        assert self.window is not None
        until = f"charging paused at {level_pct} %, until {self.window.low_pct} %"
        serial = device.adb.serial
        path = None
        if device.facts.root:
            # Before the pause: if we are cancelled during the call, it is released, too.
            self._paused[identity] = None
            path = await pause_charging(device.adb, self.window)
            if path is None:
                del self._paused[identity]
        if path is not None:
            self._record(identity, f"{until}, by {path}")
        elif self.power is None or not is_usb(serial):
            self._record(identity, _CANNOT_PAUSE)
        elif identity in self._unpausable:
            self._record(identity, _PORT_CUTS_DATA)
        else:
            port = UsbPort(serial=serial, usb_path=find_port(serial, await self.adb.list_transports()))
            self._paused[identity] = port
            try:
                await self._save_ports()
                await switch_power(self.power, port, "off")
            except FarmError:
                # It may be off nevertheless; the next round tries again.
                await self._release(identity)
                raise
            self._record(identity, f"{until}, by the power of its port")

    async def _restore_port(self, identity: DeviceId) -> None:
        """Switch on a port that cuts the device's data as well: it is no way to pause charging."""
        self._unpausable.add(identity)
        try:
            await self._release(identity)
            self._record(identity, _PORT_CUTS_DATA)
        except FarmError as error:
            log.warning("port_stays_off", device_id=identity, code=error.code, reason=error.message)

    async def _release(self, identity: DeviceId) -> None:
        port, device = self._paused[identity], self.monitor.find(identity)
        if port is not None and self.power is not None:
            await switch_power(self.power, port, "on")
        elif device is not None:
            await _resume(identity, device)
        del self._paused[identity]
        await self._save_ports()

    async def _release_all(self) -> None:
        try:
            async with asyncio.timeout(_RESTORE_S):
                results = await asyncio.gather(
                    *map(self._release, list(self._paused)), return_exceptions=True
                )
        except TimeoutError:
            log.warning("charging_not_restored", devices=sorted(self._paused))
            return
        for error in results:
            if isinstance(error, Exception):
                log.warning("charging_not_restored", reason=str(error))

    async def _save_ports(self) -> None:
        """Record which ports are off, before the first one is."""
        ports = [*self._ports_left_off, *filter(None, self._paused.values())]
        if ports or self._ports_file.exists():
            await save_ports(self._ports_file, ports)

    def _record(self, identity: DeviceId, note: str) -> None:
        if self.active.charging_by_device.get(identity) != note:
            log.info("charging_changed", device_id=identity, note=note)
            self.active.charging_by_device[identity] = note
            self.active.changed.set()


async def _resume(identity: DeviceId, device: OnlineDevice) -> None:
    if not await resume_charging(device.adb):
        raise HostError(f"{identity} does not resume charging")
