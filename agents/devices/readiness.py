"""Readiness checks of a device before it counts as online."""

from dataclasses import replace

import structlog

from agents.adb.client import AdbClient, AdbDevice
from agents.device.control.controls import restore_controls
from agents.device.run.gates import restore_screen_state
from agents.device.run.run_control import RunStatus, clean_run, run_status
from agents.device.state.conditions import read_condition
from agents.device.state.facts import read_facts
from agents.device.state.fencing import read_fence
from agents.device.state.identity_marker import read_identity_marker
from agents.device.state.probe import probe
from agents.devices.active import ActiveAttempts
from agents.devices.inventory import TransportObservation, device_id
from farm.clock import Clock
from farm.core.devices.condition import Condition
from farm.core.devices.device import Presence
from farm.core.errors import FarmError

log = structlog.get_logger(__name__)


class DeviceReadiness:
    """Checks devices that have just been connected."""

    def __init__(self, *, adb: AdbClient, active: ActiveAttempts, clock: Clock) -> None:
        self._adb = adb
        self._active = active
        self._clock = clock

    async def check(self, observation: TransportObservation) -> TransportObservation:
        """Probe a device end to end, read its state, clean up after inactive runs; never raises."""
        try:
            return await self._check(observation)
        except FarmError as error:
            log.debug("device_not_ready", serial=observation.serial, code=error.code, reason=error.message)
            return replace(observation, presence=Presence.OFFLINE, detail=error.message)
        except Exception as error:
            log.exception("device_check_crashed", serial=observation.serial)
            return replace(observation, presence=Presence.OFFLINE, detail=f"the agent failed: {error!r}")

    async def condition(self, observation: TransportObservation) -> Condition | None:
        """Return the condition of an online device; None when it does not answer."""
        if observation.facts is None:
            return None
        device = self._adb.device(observation.serial)
        try:
            return await read_condition(device, observation.facts.work_root, self._clock.now())
        except FarmError as error:
            log.debug(
                "condition_unreadable", serial=observation.serial, code=error.code, reason=error.message
            )
            return None

    async def _check(self, observation: TransportObservation) -> TransportObservation:
        device = self._adb.device(observation.serial)
        presence = await probe(device)
        if presence is not Presence.ONLINE:
            detail = (
                "Android is still booting" if presence is Presence.BOOTING else "its shell does not respond"
            )
            return replace(observation, presence=presence, detail=detail)
        if observation.facts is not None and device_id(observation) in self._active.measuring():
            # It was away for a moment; any other call would disturb the run.
            return replace(observation, presence=Presence.ONLINE, detail=None)
        ready = await self._read_state(device, observation)
        await self._clean(device, ready)
        return replace(ready, presence=Presence.ONLINE, detail=None)

    async def _read_state(self, device: AdbDevice, observation: TransportObservation) -> TransportObservation:
        """Read its facts, once per boot, and its condition."""
        if observation.facts is not None:
            condition = await read_condition(device, observation.facts.work_root, self._clock.now())
            if condition.boot_id == observation.boot_id:
                return replace(observation, condition=condition)
        facts = await read_facts(device)
        condition = await read_condition(device, facts.work_root, self._clock.now())
        # Only on TCP can two transports of a kind lead to one device.
        mark = await read_identity_marker(device, facts.work_root) if observation.is_tcp else None
        return replace(observation, facts=facts, condition=condition, boot_id=condition.boot_id, mark=mark)

    async def _clean(self, device: AdbDevice, observation: TransportObservation) -> None:
        """Remove what earlier processes or other hosts left; an active attempt cleans up itself."""
        identity = device_id(observation)
        if identity is None or observation.facts is None or self._active.holds(identity):
            return
        work_root = observation.facts.work_root
        known, wanted = (
            await read_fence(device, work_root),
            self._active.fence_to_clean_by_device.get(identity, 0),
        )
        self._active.record_fence(identity, known)
        # The device does not know an attempt that ended before its run began.
        fence = max(known, wanted)
        is_at_work = fence > wanted and await run_status(device, work_root, fence) is RunStatus.RUNNING
        if is_at_work:
            # It may be another host's run, on TCP. If it is nobody's, the farm requests its end.
            fence -= 1
        else:
            # Also those of an attempt that ended before its run began, on any host.
            await restore_controls(device, work_root)
        if fence > 0:
            await clean_run(device, work_root, fence)
        if not is_at_work:
            await restore_screen_state(device, work_root)
        self._active.record_cleaned(identity, fence)
