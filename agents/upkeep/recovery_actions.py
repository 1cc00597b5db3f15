"""The recovery steps as adb calls and power switching."""

import asyncio
from typing import assert_never

from agents.adb.client import AdbClient
from agents.device.run.run_control import clean_run
from agents.devices.active import ActiveAttempts
from agents.devices.inventory import TransportObservation
from agents.devices.monitor import DeviceMonitor
from agents.host.config import AgentConfig
from agents.host.usb_port_names import USB_PREFIX
from agents.host.usb_power import UsbPort, switch_power
from agents.upkeep.powered_off_ports import restore_ports, save_ports
from farm.core.base.ids import DeviceId
from farm.core.errors import HostError
from farm.core.upkeep.recovery import RecoveryStep

#: How long a port must be off for a device to notice.
POWER_OFF_S = 5.0
PORTS_FILE = "ports-cycled.json"
_DEADLINE_S = 20.0


class RecoveryActions:
    """Runs single steps, each with one or two adb calls."""

    def __init__(
        self,
        *,
        adb: AdbClient,
        monitor: DeviceMonitor,
        active: ActiveAttempts,
        config: AgentConfig,
        off_s: float = POWER_OFF_S,
    ) -> None:
        self._adb = adb
        self._monitor = monitor
        self._active = active
        self._power = config.power_command
        self._ports_file = config.data_dir / PORTS_FILE
        self._off_s = off_s

    async def restore_left_port(self) -> None:
        """Switch on the port that an earlier process, killed in between, left off."""
        await restore_ports(self._ports_file, self._power)

    async def take(
        self, step: RecoveryStep, identity: DeviceId, observation: TransportObservation, usb_path: str | None
    ) -> str:
        """Run one step; return its result as text.

        Raises:
            FarmError: it could not be taken.
        """
        device = self._adb.device(observation.serial)
        match step:
            case RecoveryStep.REPROBE:
                self._monitor.probe_again(identity)
                return "probed again"
            case RecoveryStep.RECONNECT:
                await device.reconnect(_DEADLINE_S)
                return "reconnected by adb"
            case RecoveryStep.CLEAN:
                return await self._clean(identity, observation)
            case RecoveryStep.REBOOT:
                await device.reboot(_DEADLINE_S)
                return "it accepted the command to restart"
            case RecoveryStep.POWER_CYCLE:
                return await self._power_cycle(UsbPort(serial=observation.serial, usb_path=usb_path))
            case RecoveryStep.HUMAN:
                return "no permitted step brought it back"
            case _:
                assert_never(step)

    async def _clean(self, identity: DeviceId, observation: TransportObservation) -> str:
        facts, fence = observation.facts, self._active.fence_by_device.get(identity, 0)
        if facts is None or fence == 0:
            return "no run of ours is known there"
        await clean_run(self._adb.device(observation.serial), facts.work_root, fence)
        return f"ended leftovers up to run {fence}"

    async def _power_cycle(self, port: UsbPort) -> str:
        listed = await self._adb.list_transports()
        if port.usb_path and any(
            row.usb_path == port.usb_path and port.serial not in (row.serial, f"{USB_PREFIX}{row.usb_path}")
            for row in listed
        ):
            raise HostError(f"another device is at {port.usb_path} now")
        command = self._power or ()
        await save_ports(self._ports_file, [port])
        try:
            await switch_power(command, port, "off")
            await asyncio.sleep(self._off_s)
        finally:
            await restore_ports(self._ports_file, command)
        return f"its port was off for {self._off_s:g} s"
