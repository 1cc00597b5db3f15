"""Device actions requested by operators, run while no attempt uses the device."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import structlog

from agents.device.cleanup import clean_device
from agents.device.control.device_settings import apply_settings, check_settings, restore_settings
from agents.device.control.identify import SHOW_S, identify
from agents.devices.active_attempts import ActiveAttempts
from agents.devices.inventory import is_usb
from agents.devices.monitor import DeviceMonitor, OnlineDevice
from farm.core.base.units import size_text
from farm.core.errors import DeviceOffline, FarmError
from farm.core.upkeep.device_action import DeviceActionKind
from farm.core.upkeep.device_settings import settings_text
from farm.wire.agents.protocol import DeviceActionOrder, DeviceActionReport

log = structlog.get_logger(__name__)

_REPORT_LIMIT = 2000


@dataclass(eq=False, kw_only=True)
class DeviceActionRunner:
    """Runs each device action in a task of its own, and reports it until the farm no longer lists it.

    Invariant: a device has an active attempt or a device action, never both. Nothing is saved: an action that
    an earlier process did not report is run again, which does no harm.
    """

    active: ActiveAttempts
    monitor: DeviceMonitor
    tasks: asyncio.TaskGroup
    show_s: float = SHOW_S

    def __post_init__(self) -> None:
        self._in_progress: set[int] = set()
        self._report_by_id: dict[int, DeviceActionReport] = {}

    def in_progress(self) -> tuple[int, ...]:
        """Return the device actions that are running."""
        return tuple(sorted(self._in_progress))

    def reports(self) -> tuple[DeviceActionReport, ...]:
        """Return the results that the farm has not acknowledged yet."""
        return tuple(self._report_by_id.values())

    def apply(self, reported: Sequence[DeviceActionReport], listed: Sequence[DeviceActionOrder]) -> None:
        """Forget reported results that are no longer listed; start listed actions on free devices."""
        wanted = {action.device_action_id for action in listed}
        for report in reported:
            if report.device_action_id not in wanted:
                self._report_by_id.pop(report.device_action_id, None)
        for action in listed:
            is_known = action.device_action_id in {*self._in_progress, *self._report_by_id}
            if not is_known and not self.active.is_busy(action.device_id):
                self._in_progress.add(action.device_action_id)
                self.active.on_device_action.add(action.device_id)
                self.tasks.create_task(self._execute(action), name=f"device action {action.device_action_id}")

    async def _execute(self, action: DeviceActionOrder) -> None:
        report = await self._report(action)
        log.info(
            "device_action_ended",
            device_action_id=action.device_action_id,
            device_id=action.device_id,
            kind=action.kind,
            done=report.done,
            reason=report.error,
        )
        self._report_by_id[action.device_action_id] = report
        self._in_progress.discard(action.device_action_id)
        self.active.on_device_action.discard(action.device_id)
        self.active.changed.set()

    async def _report(self, action: DeviceActionOrder) -> DeviceActionReport:
        try:
            return await self._perform(action)
        except FarmError as error:
            reason = error.message
        except Exception as error:
            log.exception("device_action_crashed", device_action_id=action.device_action_id)
            reason = f"the agent failed: {error!r}"
        return DeviceActionReport(device_action_id=action.device_action_id, error=reason[:_REPORT_LIMIT])

    async def _perform(self, action: DeviceActionOrder) -> DeviceActionReport:
        device = self.monitor.find(action.device_id)
        if device is None:
            raise DeviceOffline(f"{action.device_id} went away")
        try:
            return await self._perform_on(device, action)
        finally:
            # Cached files may be gone, and the screen may have changed.
            device.state_cache.forget()

    async def _perform_on(self, device: OnlineDevice, action: DeviceActionOrder) -> DeviceActionReport:
        action_id, on_network = action.device_action_id, not is_usb(device.adb.serial)
        match action.kind:
            case DeviceActionKind.IDENTIFY:
                done = await identify(device.adb, action.label, show_s=self.show_s)
                return DeviceActionReport(device_action_id=action_id, done=done)
            case DeviceActionKind.CLEAN:
                freed = await clean_device(device.adb)
                size = size_text(freed.freed_bytes)
                done = f"ended remaining runs and freed {size} in {freed.files} cached files"
                return DeviceActionReport(
                    device_action_id=action_id, done=done, freed_bytes=freed.freed_bytes
                )
            case DeviceActionKind.CHECK_SETTINGS:
                results = await check_settings(device.adb, on_network=on_network)
            case DeviceActionKind.PROVISION:
                results = await apply_settings(device.adb, on_network=on_network)
            case DeviceActionKind.RESTORE_SETTINGS:
                results = await restore_settings(device.adb, action.put_back)
            case _:
                assert_never(action.kind)
        done = settings_text(results)[:_REPORT_LIMIT]
        return DeviceActionReport(device_action_id=action_id, done=done, settings=results)
