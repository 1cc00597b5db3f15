"""The recovery ladder: steps of increasing severity for each device that cannot be used."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn, assert_never

import structlog

from agents.adb.client import AdbClient
from agents.device.run.run_control import clean_run
from agents.devices.active_attempts import ActiveAttempts
from agents.devices.inventory import TransportObservation, device_id, is_usb
from agents.devices.monitor import DeviceMonitor
from agents.host.config import AgentConfig
from agents.host.usb_ports import (
    USB_PREFIX,
    UsbPort,
    find_port,
    find_ports,
    restore_ports,
    save_ports,
    switch_power,
)
from agents.upkeep.recovery_state import (
    DeviceRecoveryState,
    RecoveryStateStore,
    restore_recovery,
)
from farm.clock import Clock
from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from farm.core.errors import FarmError, HostDiskFull, HostError
from farm.core.upkeep.recovery import (
    DEFAULT_RULES,
    HARMLESS,
    RESTARTS,
    FailureMode,
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
#: Time the farm's permission is valid; another job may be claimed after that.
PERMISSION_S = 20.0


def recovery_rules(config: AgentConfig, rules: RecoveryRules = DEFAULT_RULES) -> RecoveryRules:
    """Return the rules that an agent's settings allow."""
    paced = scale_waits(rules, config.recovery_timeout_factor)
    return replace(paced, may_reboot=config.reboot, may_switch_power=config.power_command is not None)


#: Time a port must be off for a device to notice.
POWER_OFF_S = 5.0
PORTS_FILE = "ports-cycled.json"
_DEADLINE_S = 20.0


@dataclass(eq=False, kw_only=True)
class RecoveryActions:
    """Executes recovery steps: adb commands, or the operator's power command."""

    adb: AdbClient
    monitor: DeviceMonitor
    active: ActiveAttempts
    config: AgentConfig
    off_s: float = POWER_OFF_S

    @property
    def _ports_file(self) -> Path:
        return self.config.data_dir / PORTS_FILE

    async def execute(
        self, step: RecoveryStep, identity: DeviceId, observation: TransportObservation, usb_path: str | None
    ) -> str:
        """Execute one step; return its result as text.

        Raises:
            FarmError: it could not be executed, or did not end as it should.
        """
        device = self.adb.device(observation.serial)
        match step:
            case RecoveryStep.REPROBE:
                self.monitor.reprobe(identity, when_away=True)
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
        facts, fence = observation.facts, self.active.fence_by_device.get(identity, 0)
        if facts is None or fence == 0:
            return "no run of ours is known there"
        await clean_run(self.adb.device(observation.serial, facts.work_root), fence)
        return f"ended the runs up to {fence}"

    async def _power_cycle(self, port: UsbPort) -> str:
        listed = await self.adb.list_transports()
        if port.usb_path and any(
            row.usb_path == port.usb_path and port.serial not in (row.serial, f"{USB_PREFIX}{row.usb_path}")
            for row in listed
        ):
            raise HostError(f"another device is at {port.usb_path} now")
        command = self.config.power_command or ()
        left_off = await find_ports(self._ports_file)
        await save_ports(self._ports_file, [port, *(other for other in left_off if other != port)])
        try:
            await switch_power(command, port, "off")
            await asyncio.sleep(self.off_s)
        finally:
            still_off = await restore_ports(self._ports_file, command)
        if port in still_off:
            raise HostError(
                f"the power command did not switch the port of {port.serial} on again",
                hint="the agent's log has the reason; it tries again when it starts, and with the next port",
            )
        return f"its port was off for {self.off_s:g} s"


@dataclass(eq=False, kw_only=True)
class RecoveryLadder:
    """Checks all devices every second; the check itself makes no adb call.

    Invariants: every step outside `HARMLESS` needs a fresh permission of the farm, and no unacknowledged
    attempt of this host on the device. At most `rules.max_concurrent_restarts` devices restart at once. A
    restart is written to disk before it begins, so that the next process does not repeat it.
    """

    adb: AdbClient
    monitor: DeviceMonitor
    active: ActiveAttempts
    clock: Clock
    tasks: asyncio.TaskGroup
    state_store: RecoveryStateStore
    rules: RecoveryRules
    config: AgentConfig
    off_s: float = POWER_OFF_S
    interval_s: float = INTERVAL_S

    def __post_init__(self) -> None:
        self._actions = RecoveryActions(
            adb=self.adb, monitor=self.monitor, active=self.active, config=self.config, off_s=self.off_s
        )
        self._state_by_id: dict[DeviceId, DeviceRecoveryState] = {}

    async def load(self) -> None:
        """Load the state of an earlier process; call it before anything else."""
        now_s, now = self.clock.monotonic(), self.clock.now()
        for saved in await self.state_store.load():
            state = restore_recovery(saved, self.rules, now_s=now_s, now=now)
            self._state_by_id[saved.device_id] = state
            log.info("recovery_loaded", device_id=saved.device_id, steps=len(state.tries))

    async def run(self) -> NoReturn:
        """Recover devices until cancelled."""
        # An earlier process, killed in between, may have left a port off.
        await restore_ports(self.config.data_dir / PORTS_FILE, self.config.power_command)
        while True:
            await self._record_ports()
            self.run_once()
            try:
                await self._save()
            except (HostDiskFull, OSError) as error:
                log.debug("recovery_state_not_saved", reason=str(error))
            await asyncio.sleep(self.interval_s)

    def observations(self) -> dict[DeviceId, TransportObservation]:
        """Return the monitor's devices with their recovery; also those that are gone and to be recovered."""
        observations, unnamed = self.monitor.observations(), self._unidentified()
        for identity, state in self._state_by_id.items():
            if (recovery := state.reported()) is None:
                continue
            serial = state.observation.serial
            observation = observations.get(identity) or unnamed.get(serial)
            if observation is None:
                detail = "adb does not list it"
                observation = TransportObservation(serial=serial, presence=Presence.ABSENT, detail=detail)
            observations[identity] = replace(observation, recovery=recovery)
        return observations

    def record_permission(self, allowed: Collection[DeviceId], sent_at_s: float) -> None:
        """Record the permissions in the answer to an exchange sent at that time."""
        for identity, state in self._state_by_id.items():
            state.permission_at_s = sent_at_s if identity in allowed else None

    def run_once(self) -> None:
        """Observe every device, and start the steps that are due."""
        now_s = self.clock.monotonic()
        if self.monitor.is_server_down:
            # Not the devices' fault: their times restart.
            for state in self._state_by_id.values():
                state.episode = state.episode and replace(state.episode, since_s=now_s)
            return
        recoverable = self.monitor.recoverable_devices()
        for identity, observation in recoverable.items():
            state = self._state_by_id.setdefault(identity, DeviceRecoveryState(observation=observation))
            state.observation = observation
        listed, unnamed = self.monitor.observations(), self._unidentified()
        for identity, state in self._state_by_id.items():
            if identity in listed and identity not in recoverable:
                continue
            current = recoverable.get(identity) or unnamed.get(state.observation.serial)
            if current is not None:
                self._observe(identity, state, current.presence, now_s)
            elif now_s >= state.restart_deadline_s:
                self._observe(identity, state, Presence.ABSENT, now_s)

    def _unidentified(self) -> dict[str, TransportObservation]:
        """Return TCP devices that this process could not identify; an earlier process may know them."""
        return {row.serial: row for row in self.monitor.transports() if device_id(row) is None}

    def _observe(
        self, identity: DeviceId, state: DeviceRecoveryState, presence: Presence, now_s: float
    ) -> None:
        mode = failure_mode(presence, is_unclean=identity in self.active.unclean_by_device)
        if mode is None:
            self._end_recovery(identity, state, presence)
            return
        episode = state.episode = self._observed_episode(state, mode, now_s)
        if state.escalated_at_s is None:
            self._start_due_step(identity, state, episode, now_s)

    def _observed_episode(
        self, state: DeviceRecoveryState, mode: FailureMode, now_s: float
    ) -> RecoveryEpisode:
        if state.escalated_at_s is None:
            return observe(state.episode, mode, now_s=now_s)
        # An operator was called: begin a new episode only after the cooldown.
        if now_s - state.escalated_at_s < episode_cooldown_s(state.escalations, self.rules):
            return observe(state.episode, mode, now_s=now_s)
        state.escalated_at_s = None
        state.tries.clear()
        return RecoveryEpisode(failure_mode=mode, since_s=now_s)

    def _start_due_step(
        self, identity: DeviceId, state: DeviceRecoveryState, episode: RecoveryEpisode, now_s: float
    ) -> None:
        step = next_step(episode, self._rules_of(state, now_s), now_s=now_s)
        if state.due_step is not step:
            state.due_step = step
            self.active.changed.set()
        if step is not None and state.running_step is None and self._is_allowed(identity, state, now_s):
            state.running_step, state.running_since_s = step, now_s
            self.tasks.create_task(self._execute_step(identity, state, step), name=f"recover {identity}")

    def _end_recovery(self, identity: DeviceId, state: DeviceRecoveryState, presence: Presence) -> None:
        if state.reported() is not None:
            log.info("recovery_over", device_id=identity, presence=presence, steps=len(state.tries))
            self.active.changed.set()
        state.episode = state.due_step = state.escalated_at_s = None
        state.tries.clear()
        if presence is Presence.ONLINE:
            state.escalations = 0

    def _rules_of(self, state: DeviceRecoveryState, now_s: float) -> RecoveryRules:
        """Return the rules for a device in its present episode."""
        at_s, episode = state.restarted_at_s, state.episode
        has_no_restart = episode is not None and not RESTARTS & set(episode.steps)
        # An earlier episode restarted it less than `cooldown_s` ago: do not restart it again.
        is_early = at_s is not None and has_no_restart and now_s - at_s < self.rules.cooldown_s
        return replace(self.rules, may_reboot=False, may_switch_power=False) if is_early else self.rules

    def _is_allowed(self, identity: DeviceId, state: DeviceRecoveryState, now_s: float) -> bool:
        if identity in self.active.on_device_action:
            return False
        if state.due_step in HARMLESS:
            return True
        if state.permission_at_s is None or now_s - state.permission_at_s > PERMISSION_S:
            return False
        attempts = self.active.attempt_by_id.values()
        if any(attempt.record.device_id == identity and not attempt.acknowledged for attempt in attempts):
            return False
        others = self._state_by_id.values()
        restarting = sum(other.is_restarting(self.rules, now_s) for other in others)
        return state.due_step not in RESTARTS or restarting < self.rules.max_concurrent_restarts

    async def _execute_step(self, identity: DeviceId, state: DeviceRecoveryState, step: RecoveryStep) -> None:
        is_disturbing = step not in HARMLESS
        if is_disturbing:
            # Nothing else may begin on the device during the step.
            self.active.on_device_action.add(identity)
        try:
            if step in RESTARTS:
                await self._save()
            result = await self._actions.execute(step, identity, state.observation, state.usb_path or None)
        except FarmError as error:
            result = f"failed: {error.message}"
        except Exception as error:
            log.exception("recovery_crashed", device_id=identity, step=step)
            result = f"the agent failed: {error!r}"
        else:
            if step in RESTARTS:
                state.restarted_at_s = self.clock.monotonic()
        finally:
            state.running_step = None
            if is_disturbing:
                self.active.on_device_action.discard(identity)
        now_s = self.clock.monotonic()
        log.info("recovery_step_taken", device_id=identity, step=step, result=result)
        state.due_step = state.permission_at_s = None
        state.tries.append(RecoveryAttempt(step=step, at=self.clock.now(), result=result[:500]))
        if step is RecoveryStep.HUMAN:
            state.escalations, state.escalated_at_s = state.escalations + 1, now_s
        if state.episode is not None:
            state.episode = record_step(state.episode, step, now_s=now_s)
        self.active.changed.set()

    async def _save(self) -> None:
        now_s, rules = self.clock.monotonic(), self.rules
        states = self._state_by_id.items()
        found = (state.find_saved_recovery(identity, rules, now_s) for identity, state in states)
        await self.state_store.save([saved for saved in found if saved is not None])

    async def _record_ports(self) -> None:
        """Record the USB ports of devices, while adb still lists them."""
        new = {
            state.observation.serial: state
            for state in self._state_by_id.values()
            if state.usb_path is None and is_usb(state.observation.serial)
        }
        if self.config.power_command is None or not new or self.monitor.is_server_down:
            return
        try:
            listed = await self.adb.list_transports()
        except FarmError as error:
            log.debug("ports_unknown", reason=error.message)
            return
        for serial, state in new.items():
            state.usb_path = find_port(serial, listed) or ""
