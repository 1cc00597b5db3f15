"""The recovery ladder: steps of increasing severity for each device that cannot be used."""

import asyncio
from collections.abc import Collection
from dataclasses import replace
from typing import NoReturn

import structlog

from agents.adb.client import AdbClient
from agents.devices.active import ActiveAttempts
from agents.devices.inventory import TransportObservation, device_id, is_usb
from agents.devices.monitor import DeviceMonitor
from agents.host.config import AgentConfig
from agents.host.usb_port_names import find_port
from agents.upkeep.recovering_device import RecoveringDevice, restore_recovery, saved_recoveries
from agents.upkeep.recovery_actions import POWER_OFF_S, RecoveryActions
from agents.upkeep.recovery_state import RecoveryStateStore
from farm.clock import Clock
from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from farm.core.errors import FarmError, HostDiskFull
from farm.core.upkeep.recovery import (
    DEFAULT_RULES,
    HARMLESS,
    RESTARTS,
    RecoveryAttempt,
    RecoveryEpisode,
    RecoveryRules,
    RecoveryStep,
    episode_cooldown_s,
    failure_mode,
    next_step,
    observe,
    record_step,
    scale_waits,
)

log = structlog.get_logger(__name__)

INTERVAL_S = 1.0
#: How long the farm's permission is valid; another job may be claimed after that.
PERMISSION_S = 20.0


def recovery_rules(config: AgentConfig, rules: RecoveryRules = DEFAULT_RULES) -> RecoveryRules:
    """Return the rules that an agent's settings allow."""
    paced = scale_waits(rules, config.recovery_timeout_factor)
    return replace(paced, may_reboot=config.reboot, may_switch_power=config.power_command is not None)


class RecoveryLadder:
    """Checks all devices every second; the check itself makes no adb call.

    Invariant: a step that may disturb somebody is taken only with the farm's fresh permission, while this
    host has no unfinished run on the device; restarts happen one device at a time, and each only once it is
    on disk, so that two processes in a row do not restart a device twice.
    """

    def __init__(
        self,
        *,
        adb: AdbClient,
        monitor: DeviceMonitor,
        active: ActiveAttempts,
        clock: Clock,
        tasks: asyncio.TaskGroup,
        state_store: RecoveryStateStore,
        rules: RecoveryRules,
        config: AgentConfig,
        off_s: float = POWER_OFF_S,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._adb = adb
        self._monitor = monitor
        self._active = active
        self._clock = clock
        self._tasks = tasks
        self._state_store = state_store
        self._rules = rules
        self._power = config.power_command
        self._steps = RecoveryActions(adb=adb, monitor=monitor, active=active, config=config, off_s=off_s)
        self._interval_s = interval_s
        self._recovering_by_id: dict[DeviceId, RecoveringDevice] = {}

    async def load(self) -> None:
        """Load the state of an earlier process; call it before anything else."""
        now_s, now = self._clock.monotonic(), self._clock.now()
        for saved in await self._state_store.load():
            recovering_device = restore_recovery(saved, self._rules, now_s=now_s, now=now)
            self._recovering_by_id[saved.device_id] = recovering_device
            log.info("recovery_loaded", device_id=saved.device_id, steps=len(recovering_device.tries))

    async def run(self) -> NoReturn:
        """Recover devices until cancelled."""
        await self._steps.restore_left_port()
        while True:
            await self._record_ports()
            self.run_once()
            try:
                await self._save()
            except (HostDiskFull, OSError) as error:
                log.debug("recovery_state_not_saved", reason=str(error))
            await asyncio.sleep(self._interval_s)

    def observations(self) -> dict[DeviceId, TransportObservation]:
        """Return the monitor's devices with their recovery; also those that are gone and to be recovered."""
        observations, unnamed = self._monitor.observations(), self._unidentified()
        for identity, recovering_device in self._recovering_by_id.items():
            if (recovery := recovering_device.reported()) is None:
                continue
            serial = recovering_device.observation.serial
            absent = TransportObservation(
                serial=serial, presence=Presence.ABSENT, detail="adb does not list it"
            )
            observation = observations.get(identity) or unnamed.get(serial, absent)
            observations[identity] = replace(observation, recovery=recovery)
        return observations

    def record_permission(self, allowed: Collection[DeviceId], sent_at_s: float) -> None:
        """Record the permissions in the answer to an exchange sent at that time."""
        for identity, recovering_device in self._recovering_by_id.items():
            recovering_device.permission_at_s = sent_at_s if identity in allowed else None

    def run_once(self) -> None:
        """Observe every device, and start the steps that are due."""
        now_s = self._clock.monotonic()
        if self._monitor.is_server_down:
            # Not the devices' fault: their times restart.
            for recovering_device in self._recovering_by_id.values():
                recovering_device.episode = recovering_device.episode and replace(
                    recovering_device.episode, since_s=now_s
                )
            return
        recoverable = self._monitor.recoverable_devices()
        for identity, observation in recoverable.items():
            self._recovering_by_id.setdefault(
                identity, RecoveringDevice(observation=observation)
            ).observation = observation
        listed, unnamed = self._monitor.observations(), self._unidentified()
        for identity, recovering_device in self._recovering_by_id.items():
            if identity in listed and identity not in recoverable:
                continue
            current = recoverable.get(identity) or unnamed.get(recovering_device.observation.serial)
            if current is not None:
                self._observe(identity, recovering_device, current.presence, now_s)
            elif now_s >= recovering_device.restart_deadline_s:
                self._observe(identity, recovering_device, Presence.ABSENT, now_s)

    def _unidentified(self) -> dict[str, TransportObservation]:
        """Return TCP devices that this process could not identify; an earlier process may know them."""
        return {row.serial: row for row in self._monitor.transports() if device_id(row) is None}

    def _observe(
        self, identity: DeviceId, recovering_device: RecoveringDevice, presence: Presence, now_s: float
    ) -> None:
        mode = failure_mode(presence, is_unclean=identity in self._active.unclean_by_device)
        if mode is None:
            self._end_recovery(identity, recovering_device, presence)
            return
        recovering_device.episode = observe(recovering_device.episode, mode, now_s=now_s)
        if recovering_device.failed_at_s is not None:
            if now_s - recovering_device.failed_at_s < episode_cooldown_s(
                recovering_device.failures, self._rules
            ):
                return
            recovering_device.failed_at_s, recovering_device.episode = (
                None,
                RecoveryEpisode(failure_mode=mode, since_s=now_s),
            )
            recovering_device.tries.clear()
        rules = self._rules_of(recovering_device, now_s)
        before, recovering_device.next = (
            recovering_device.next,
            next_step(recovering_device.episode, rules, now_s=now_s),
        )
        if recovering_device.next is not before:
            self._active.changed.set()
        if (
            recovering_device.next is not None
            and recovering_device.now is None
            and self._is_allowed(identity, recovering_device, now_s)
        ):
            recovering_device.now, recovering_device.step_running_since_s = recovering_device.next, now_s
            self._tasks.create_task(
                self._take_step(identity, recovering_device, recovering_device.next),
                name=f"recover {identity}",
            )

    def _end_recovery(
        self, identity: DeviceId, recovering_device: RecoveringDevice, presence: Presence
    ) -> None:
        if recovering_device.reported() is not None:
            log.info(
                "recovery_over", device_id=identity, presence=presence, steps=len(recovering_device.tries)
            )
            self._active.changed.set()
        recovering_device.episode = recovering_device.next = recovering_device.failed_at_s = None
        recovering_device.tries.clear()
        if presence is Presence.ONLINE:
            recovering_device.failures = 0

    def _rules_of(self, recovering_device: RecoveringDevice, now_s: float) -> RecoveryRules:
        """Return the rules for a device; one that fails again soon after a restart is not restarted."""
        at_s, episode = recovering_device.restarted_at_s, recovering_device.episode
        is_other_episode = episode is not None and not RESTARTS & set(episode.taken)
        is_early = at_s is not None and is_other_episode and now_s - at_s < self._rules.cooldown_s
        return replace(self._rules, may_reboot=False, may_switch_power=False) if is_early else self._rules

    def _is_allowed(self, identity: DeviceId, recovering_device: RecoveringDevice, now_s: float) -> bool:
        if identity in self._active.on_device_action:
            return False
        if recovering_device.next in HARMLESS:
            return True
        if (
            recovering_device.permission_at_s is None
            or now_s - recovering_device.permission_at_s > PERMISSION_S
        ):
            return False
        attempts = self._active.attempt_by_id.values()
        if any(attempt.record.device_id == identity and not attempt.acknowledged for attempt in attempts):
            return False
        restarting = [
            device for device in self._recovering_by_id.values() if device.is_restarting(self._rules, now_s)
        ]
        return recovering_device.next not in RESTARTS or len(restarting) < self._rules.max_concurrent_restarts

    async def _take_step(
        self, identity: DeviceId, recovering_device: RecoveringDevice, step: RecoveryStep
    ) -> None:
        is_disturbing = step not in HARMLESS
        if is_disturbing:
            # Nothing else may begin on the device meanwhile.
            self._active.on_device_action.add(identity)
        try:
            if step in RESTARTS:
                await self._save()
            result = await self._steps.take(
                step, identity, recovering_device.observation, recovering_device.usb_path or None
            )
        except FarmError as error:
            result = f"failed: {error.message}"
        except Exception as error:
            log.exception("recovery_crashed", device_id=identity, step=step)
            result = f"the agent failed: {error!r}"
        else:
            if step in RESTARTS:
                recovering_device.restarted_at_s = self._clock.monotonic()
        finally:
            recovering_device.now = None
            if is_disturbing:
                self._active.on_device_action.discard(identity)
        self._record_step(identity, recovering_device, step, result)

    def _record_step(
        self, identity: DeviceId, recovering_device: RecoveringDevice, step: RecoveryStep, result: str
    ) -> None:
        now_s = self._clock.monotonic()
        log.info("recovery_step_taken", device_id=identity, step=step, result=result)
        recovering_device.next = recovering_device.permission_at_s = None
        recovering_device.tries.append(RecoveryAttempt(step=step, at=self._clock.now(), said=result[:500]))
        if step is RecoveryStep.HUMAN:
            recovering_device.failures, recovering_device.failed_at_s = recovering_device.failures + 1, now_s
        if recovering_device.episode is not None:
            recovering_device.episode = record_step(recovering_device.episode, step, now_s=now_s)
        self._active.changed.set()

    async def _save(self) -> None:
        recovering_devices, now_s = self._recovering_by_id, self._clock.monotonic()
        await self._state_store.save(tuple(saved_recoveries(recovering_devices, self._rules, now_s)))

    async def _record_ports(self) -> None:
        """Record the USB ports of devices, while adb still lists them."""
        new = {
            recovering_device.observation.serial: recovering_device
            for recovering_device in self._recovering_by_id.values()
            if recovering_device.usb_path is None and is_usb(recovering_device.observation.serial)
        }
        if self._power is None or not new or self._monitor.is_server_down:
            return
        try:
            listed = await self._adb.list_transports()
        except FarmError as error:
            log.debug("ports_unknown", reason=error.message)
            return
        for serial, recovering_device in new.items():
            recovering_device.usb_path = find_port(serial, listed) or ""
