"""The monitor of this host's devices: it probes them, reads their facts, and tells when they can be used."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random

import structlog

from agents.adb.client import AdbClient, AdbDevice
from agents.device.conditions import DeviceStateCache, read_condition
from agents.device.control.controls import restore_controls
from agents.device.facts import read_facts
from agents.device.probe import probe, read_fence, read_identity_marker
from agents.device.run.gates import restore_screen_state
from agents.device.run.run_control import RunStatus, clean_run, reset_fence, run_status
from agents.devices.active_attempts import ActiveAttempts
from agents.devices.inventory import TransportObservation, device_id, find_conflicts, select_transports
from agents.host.retry import Backoff
from farm.clock import Clock
from farm.core.base.ids import DeviceId
from farm.core.devices.condition import Condition
from farm.core.devices.device import DeviceFacts, Presence
from farm.core.errors import FarmError
from farm.phone.adb.listing import SEVERAL, presence

log = structlog.get_logger(__name__)

#: Between readings of an idle device's condition.
CONDITION_INTERVAL_S = 60.0
_REACHABLE = "device"
_SERVER_DOWN = "adb server down"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineDevice:
    """A device that can be used now."""

    adb: AdbDevice
    facts: DeviceFacts
    boot_id: str | None
    state_cache: DeviceStateCache


@dataclass(slots=True, kw_only=True)
class Transport:
    """The state of one adb transport, shared with the task that probes it."""

    observation: TransportObservation
    #: adb's state of it, and how often that changed: a short change must not be missed.
    state: str = ""
    changes: int = 0
    activity: asyncio.Event = field(default_factory=asyncio.Event)
    #: Set while it is online without a break: another device may come back in its place.
    device: OnlineDevice | None = None


@dataclass(eq=False, kw_only=True)
class DeviceMonitor:
    """All transports that adb lists, each probed by a task of its own: a bad device delays no other.

    Invariant: a device is probed again after each change of its transport, before it counts as online.
    """

    adb: AdbClient
    active: ActiveAttempts
    clock: Clock
    random: Random
    tasks: asyncio.TaskGroup
    #: The fingerprint that devices show when they ask for approval.
    find_key: Callable[[], str | None] = lambda: None
    #: Names of devices by port or address, keyed by what adb calls the place.
    names: Mapping[str, str] = field(default_factory=dict)
    interval_s: float = CONDITION_INTERVAL_S

    def __post_init__(self) -> None:
        self._transport_by_serial: dict[str, Transport] = {}
        self._arrival = asyncio.Event()
        self._conflicts: Mapping[DeviceId, tuple[str, ...]] = {}
        self._claimed_elsewhere: tuple[TransportObservation, ...] = ()

    def observations(self) -> dict[DeviceId, TransportObservation]:
        """Return every device that adb lists, with the transport to use."""
        # Claimed transports come first: if our server lists one too but cannot use it, the claimed entry's
        # detail is the one shown.
        observations = select_transports([*self._claimed_elsewhere, *self.transports()])
        for identity, reason in self.active.unclean_by_device.items():
            if identity in observations and observations[identity].presence is Presence.ONLINE:
                observations[identity] = replace(observations[identity], detail=reason)
        for identity, note in self.active.charging_by_device.items():
            if identity in observations and (condition := observations[identity].condition) is not None:
                noted = replace(condition, charging_note=note)
                observations[identity] = replace(observations[identity], condition=noted)
        return observations

    def find(self, identity: DeviceId) -> OnlineDevice | None:
        """Return a device that is online; None when it is not."""
        observation = self.observations().get(identity)
        if observation is None or observation.presence is not Presence.ONLINE or observation.facts is None:
            return None
        transport = self._transport_by_serial[observation.serial]
        if transport.device is None:
            transport.device = OnlineDevice(
                adb=self.adb.device(observation.serial, observation.facts.work_root),
                facts=observation.facts,
                boot_id=observation.boot_id,
                state_cache=DeviceStateCache(),
            )
        return transport.device

    async def wait(self, identity: DeviceId) -> OnlineDevice:
        """Return the device as soon as it is online, however long that takes."""
        while (device := self.find(identity)) is None:
            await self._arrival.wait()
        return device

    def reprobe(self, identity: DeviceId, *, when_away: bool = False) -> None:
        """Have an online device probed again: it may hang, or hold something of a run.

        `when_away` probes any listed device, whatever its back-off.
        """
        observation = self.observations().get(identity)
        if observation is None or not (when_away or observation.presence is Presence.ONLINE):
            return
        if (transport := self._transport_by_serial.get(observation.serial)) is not None:
            transport.activity.set()

    @property
    def is_server_down(self) -> bool:
        """Return whether no device's state is known, because adb's server is down."""
        return any(transport.state == _SERVER_DOWN for transport in self._transport_by_serial.values())

    def recoverable_devices(self) -> dict[DeviceId, TransportObservation]:
        """Return the devices that recovery may act on.

        Our own adb server lists them, and there is no conflict over their identity.
        """
        ours = {serial for serial, transport in self._transport_by_serial.items() if transport.state}
        return {
            identity: observation
            for identity, observation in self.observations().items()
            if observation.serial in ours and not observation.claimants
        }

    def apply_listing(self, state_by_serial: Mapping[str, str]) -> None:
        """Apply a complete listing of adb: a missing row is gone."""
        for serial, state in state_by_serial.items():
            self._apply_state(self._transport(serial), state)
        for serial in self._transport_by_serial.keys() - state_by_serial.keys():
            # Its task stays: a device that comes and goes is the same transport.
            self._apply_state(self._transport_by_serial[serial], "")

    def record_claimed(self, serials: Iterable[str], detail: str) -> None:
        """Show the devices that another adb server claims, in place of those recorded before."""
        before = self._presences()
        self._claimed_elsewhere = tuple(
            TransportObservation(serial=serial, presence=Presence.OFFLINE, detail=detail)
            for serial in sorted(serials)
        )
        self._publish_changes(before)

    def record_server_down(self) -> None:
        """Mark all listed devices as offline until the next listing.

        Their detail is `adb state: adb server down`.
        """
        for transport in self._transport_by_serial.values():
            if transport.state:
                self._apply_state(transport, _SERVER_DOWN)

    def transports(self) -> list[TransportObservation]:
        """Return every row of adb's listing; a device on two transports appears twice."""
        return [transport.observation for transport in self._transport_by_serial.values() if transport.state]

    def _transport(self, serial: str) -> Transport:
        transport = self._transport_by_serial.get(serial)
        if transport is None:
            name = self.names.get(serial)
            observation = TransportObservation(serial=serial, presence=Presence.ABSENT, name=name)
            transport = Transport(observation=observation)
            self._transport_by_serial[serial] = transport
            self.tasks.create_task(self._probe_repeatedly(transport), name=f"watch {serial}")
        return transport

    def _apply_state(self, transport: Transport, state: str) -> None:
        if state == transport.state:
            return
        before = self._presences()
        transport.state = state
        transport.changes += 1
        transport.device = None
        transport.activity.set()
        new_presence = presence(state or None)
        detail = f"adb state: {state}"
        if new_presence is Presence.UNAUTHORIZED and (key := self.find_key()) is not None:
            detail = f"{detail}; allow the key {key} on its screen"
        previous = transport.observation
        claimants = (previous.serial, previous.serial) if state == SEVERAL else ()
        transport.observation = replace(previous, presence=new_presence, detail=detail, claimants=claimants)
        self._publish_changes(before)

    async def _probe_repeatedly(self, transport: Transport) -> None:
        """Probe the device whenever its transport changes, and with back-off while it does not answer."""
        backoff = Backoff(self.random, cap_s=60.0)
        while True:
            transport.activity.clear()
            if transport.state != _REACHABLE:
                await transport.activity.wait()
                continue
            changes = transport.changes
            observation = await self._probe_safely(transport.observation)
            if transport.changes == changes:
                before = self._presences()
                transport.observation, transport.device = observation, None
                self._publish_changes(before)
                await self._await_next_probe(transport, backoff)
            # However often it comes and goes, it is probed at most once in a second.
            await asyncio.sleep(1.0)

    async def _await_next_probe(self, transport: Transport, backoff: Backoff) -> None:
        """Wait until the device must be probed again; read the condition of a healthy one periodically."""
        if transport.observation.presence is not Presence.ONLINE:
            await _wait_for_activity(transport, backoff.next_s())
            return
        backoff.reset()
        while not await _wait_for_activity(transport, self.interval_s):
            if self._may_read_condition(transport.observation):
                condition = await self._read_condition(transport.observation)
                if condition is None or condition.boot_id != transport.observation.boot_id:
                    return
                transport.observation = replace(transport.observation, condition=condition)

    def _may_read_condition(self, observation: TransportObservation) -> bool:
        """Return whether reading the condition disturbs no run, here or on the same CPU."""
        identity = device_id(observation)
        if identity is None or self.active.holds(identity):
            return False
        domain = observation.facts.cpu_domain if observation.facts else None
        return domain is None or domain not in self.measured_cpu_domains()

    def measured_cpu_domains(self) -> set[str]:
        """Return the CPUs that are being measured and shared with others on this host."""
        observations = self.observations()
        measuring = [observations.get(identity) for identity in self.active.measuring()]
        facts = [observation.facts for observation in measuring if observation is not None]
        return {fact.cpu_domain for fact in facts if fact is not None and fact.cpu_domain is not None}

    def _presences(self) -> dict[DeviceId, Presence]:
        return {identity: observation.presence for identity, observation in self.observations().items()}

    def _publish_changes(self, before: Mapping[DeviceId, Presence]) -> None:
        """Log presence changes and new identity conflicts, and wake everyone who waits for a change."""
        after = self.observations()
        for identity in before.keys() | after.keys():
            new_presence = after[identity].presence if identity in after else Presence.ABSENT
            if new_presence is not before.get(identity, Presence.ABSENT):
                detail = after[identity].detail if identity in after else None
                log.info("presence_changed", device_id=identity, presence=new_presence, detail=detail)
                self.active.changed.set()
        conflicts = find_conflicts(self.transports())
        for identity, serials in conflicts.items():
            if self._conflicts.get(identity) != serials:
                log.error("identity_claimed_twice", device_id=identity, serials=serials)
        self._conflicts = conflicts
        self._arrival.set()
        self._arrival = asyncio.Event()

    async def _probe_safely(self, observation: TransportObservation) -> TransportObservation:
        """Probe a device end to end, read its state, clean up after inactive runs; never raises."""
        try:
            return await self._probe(observation)
        except FarmError as error:
            log.debug("device_not_ready", serial=observation.serial, code=error.code, reason=error.message)
            return replace(observation, presence=Presence.OFFLINE, detail=error.message)
        except Exception as error:
            log.exception("device_probe_crashed", serial=observation.serial)
            return replace(observation, presence=Presence.OFFLINE, detail=f"the agent failed: {error!r}")

    async def _read_condition(self, observation: TransportObservation) -> Condition | None:
        """Return the condition of an online device; None when it does not answer."""
        if observation.facts is None:
            return None
        device = self.adb.device(observation.serial, observation.facts.work_root)
        try:
            return await read_condition(device, self.clock.now())
        except FarmError as error:
            serial = observation.serial
            log.debug("condition_unreadable", serial=serial, code=error.code, reason=error.message)
            return None

    async def _probe(self, observation: TransportObservation) -> TransportObservation:
        device = self.adb.device(observation.serial)
        new_presence = await probe(device)
        if new_presence is not Presence.ONLINE:
            is_booting = new_presence is Presence.BOOTING
            detail = "Android is still booting" if is_booting else "its shell does not respond"
            return replace(observation, presence=new_presence, detail=detail)
        if observation.facts is not None and device_id(observation) in self.active.measuring():
            # It was away for a moment; any other call would disturb the run.
            return replace(observation, presence=Presence.ONLINE, detail=None)
        ready = await self._read_state(device, observation)
        await self._clean(device, ready)
        return replace(ready, presence=Presence.ONLINE, detail=None)

    async def _read_state(self, device: AdbDevice, observation: TransportObservation) -> TransportObservation:
        """Read its facts, once per boot, and its condition."""
        if observation.facts is not None:
            device.work_root = observation.facts.work_root
            condition = await read_condition(device, self.clock.now())
            if condition.boot_id == observation.boot_id:
                return replace(observation, condition=condition)
        facts = await read_facts(device)
        condition = await read_condition(device, self.clock.now())
        # Only on TCP can two transports of a kind lead to one device.
        mark = await read_identity_marker(device) if observation.is_tcp else None
        return replace(observation, facts=facts, condition=condition, boot_id=condition.boot_id, mark=mark)

    async def _clean(self, device: AdbDevice, observation: TransportObservation) -> None:
        """Remove what earlier processes or other hosts left; an active attempt cleans up itself."""
        identity = device_id(observation)
        if identity is None or observation.facts is None or self.active.holds(identity):
            return
        if (token := self.active.fence_to_reset_by_device.get(identity)) is not None:
            await reset_fence(device, token)
            log.warning("fence_reset", device_id=identity, fence=token)
            self.active.record_reset(identity, token)
        reported = await read_fence(device)
        wanted = self.active.fence_to_clean_by_device.get(identity, 0)
        self.active.record_fence(identity, reported)
        # The device does not know an attempt that ended before its run began.
        fence = max(reported, wanted)
        is_at_work = fence > wanted and await run_status(device, fence) is RunStatus.RUNNING
        if is_at_work:
            # It may be another host's run, on TCP. If it is no host's, the farm requests its end.
            fence -= 1
        else:
            # Also those of an attempt that ended before its run began, on any host.
            await restore_controls(device)
        if fence > 0:
            await clean_run(device, fence)
        if not is_at_work:
            await restore_screen_state(device)
        self.active.record_cleaned(identity, fence)


async def _wait_for_activity(transport: Transport, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await transport.activity.wait()
    return False
