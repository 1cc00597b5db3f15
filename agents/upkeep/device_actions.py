"""Device actions requested by operators, run while no attempt uses the device."""

import asyncio
from collections.abc import Sequence
from typing import assert_never

import structlog

from agents.device.control.device_settings import apply_settings, check_settings, restore_settings
from agents.device.control.identify import SHOW_S, identify
from agents.device.run.cleanup import clean_device
from agents.devices.active import ActiveAttempts
from agents.devices.inventory import is_usb
from agents.devices.monitor import DeviceMonitor, OnlineDevice
from farm.core.base.units import size_text
from farm.core.errors import DeviceOffline, FarmError
from farm.core.upkeep.device_action import DeviceActionKind
from farm.core.upkeep.device_settings import settings_text
from farm.wire.agents.protocol import DeviceActionOrder, DeviceActionReport

log = structlog.get_logger(__name__)

_REPORT_LIMIT = 2000


class DeviceActionRunner:
    """Runs each device action in a task of its own, and reports it until the farm no longer lists it.

    Invariant: a device has an active attempt or a device action, never both. Nothing is saved: an action that
    an earlier process did not report is run again, which does no harm.
    """

    def __init__(
        self,
        *,
        active: ActiveAttempts,
        monitor: DeviceMonitor,
        tasks: asyncio.TaskGroup,
        show_s: float = SHOW_S,
    ) -> None:
        self._active = active
        self._monitor = monitor
        self._tasks = tasks
        self._show_s = show_s
        self._in_progress: set[int] = set()
        self._report_by_id: dict[int, DeviceActionReport] = {}

    def in_progress(self) -> tuple[int, ...]:
        """Return the device actions that are running."""
        return tuple(sorted(self._in_progress))

    def reports(self) -> tuple[DeviceActionReport, ...]:
        """Return the results that the farm has not acknowledged yet."""
        return tuple(self._report_by_id.values())

    def apply(self, reported: Sequence[DeviceActionReport], listed: Sequence[DeviceActionOrder]) -> None:
        """Forget the results that the farm has recorded, and start listed actions on free devices.

        Args:
            reported: what the exchange said that is answered now.
            listed: the answer's full list.
        """
        wanted = {device_action.device_action_id for device_action in listed}
        for report in reported:
            if report.device_action_id not in wanted:
                self._report_by_id.pop(report.device_action_id, None)
        for device_action in listed:
            if self._is_new(device_action) and not self._active.is_busy(device_action.device_id):
                self._in_progress.add(device_action.device_action_id)
                self._active.on_device_action.add(device_action.device_id)
                self._tasks.create_task(
                    self._execute(device_action), name=f"device action {device_action.device_action_id}"
                )

    def _is_new(self, device_action: DeviceActionOrder) -> bool:
        return (
            device_action.device_action_id not in self._in_progress
            and device_action.device_action_id not in self._report_by_id
        )

    async def _execute(self, device_action: DeviceActionOrder) -> None:
        report = await self._report(device_action)
        log.info(
            "device_action_ended",
            device_action_id=device_action.device_action_id,
            device_id=device_action.device_id,
            kind=device_action.kind,
            done=report.done,
            reason=report.error,
        )
        self._report_by_id[device_action.device_action_id] = report
        self._in_progress.discard(device_action.device_action_id)
        self._active.on_device_action.discard(device_action.device_id)
        self._active.changed.set()

    async def _report(self, device_action: DeviceActionOrder) -> DeviceActionReport:
        try:
            return await self._perform(device_action)
        except FarmError as error:
            reason = error.message
        except Exception as error:
            log.exception("device_action_crashed", device_action_id=device_action.device_action_id)
            reason = f"the agent failed: {error!r}"
        return DeviceActionReport(
            device_action_id=device_action.device_action_id, error=reason[:_REPORT_LIMIT]
        )

    async def _perform(self, device_action: DeviceActionOrder) -> DeviceActionReport:
        device = self._monitor.find(device_action.device_id)
        if device is None:
            raise DeviceOffline(f"{device_action.device_id} went away")
        try:
            return await self._perform_on(device, device_action)
        finally:
            # Cached files may be gone, and the screen may have changed.
            device.memory.forget()

    async def _perform_on(self, device: OnlineDevice, device_action: DeviceActionOrder) -> DeviceActionReport:
        match device_action.kind:
            case DeviceActionKind.IDENTIFY:
                done = await identify(device.adb, device_action.label, show_s=self._show_s)
                return DeviceActionReport(device_action_id=device_action.device_action_id, done=done)
            case DeviceActionKind.CLEAN:
                return await _run_cleanup(device_action, device)
            case (
                DeviceActionKind.CHECK_SETTINGS
                | DeviceActionKind.PROVISION
                | DeviceActionKind.RESTORE_SETTINGS
            ):
                return await _run_settings_action(device_action, device)
            case _:
                assert_never(device_action.kind)


async def _run_settings_action(device_action: DeviceActionOrder, device: OnlineDevice) -> DeviceActionReport:
    """Check, change or restore the settings of a device."""
    on_network = not is_usb(device.adb.serial)
    if device_action.kind is DeviceActionKind.RESTORE_SETTINGS:
        results = await restore_settings(device.adb, device_action.put_back)
    elif device_action.kind is DeviceActionKind.PROVISION:
        results = await apply_settings(device.adb, on_network=on_network)
    else:
        results = await check_settings(device.adb, on_network=on_network)
    done = settings_text(results)
    return DeviceActionReport(
        device_action_id=device_action.device_action_id, done=done[:_REPORT_LIMIT], settings=results
    )


async def _run_cleanup(device_action: DeviceActionOrder, device: OnlineDevice) -> DeviceActionReport:
    freed = await clean_device(device.adb, device.facts.work_root)
    done = f"ended leftover runs and freed {size_text(freed.freed_bytes)} in {freed.files} cached files"
    return DeviceActionReport(
        device_action_id=device_action.device_action_id, done=done, freed_bytes=freed.freed_bytes
    )
