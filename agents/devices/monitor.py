"""The monitor of this host's devices: it probes them, reads their facts, and tells when they can be used."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random

import structlog

from agents.adb.client import AdbClient, AdbDevice
from agents.device.state.state_cache import DeviceStateCache
from agents.devices.active import ActiveAttempts
from agents.devices.inventory import TransportObservation, device_id, find_conflicts, select_transports
from agents.devices.readiness import DeviceReadiness
from agents.host.backoff import Backoff
from farm.clock import Clock
from farm.core.base.ids import DeviceId
from farm.core.devices.device import DeviceFacts, Presence
from farm.phone.adb.listing import SEVERAL
from farm.phone.adb.state import presence

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
    memory: DeviceStateCache


@dataclass(slots=True, kw_only=True)
class TransportTask:
    """One row of adb's listing, with the task that probes it."""

    observation: TransportObservation
    #: adb's state of it, and how often that changed: a short change must not be missed.
    state: str = ""
    changes: int = 0
    activity: asyncio.Event = field(default_factory=asyncio.Event)
    #: Set while it is online without a break: another device may come back in its place.
    device: OnlineDevice | None = None


class DeviceMonitor:
    """All transports that adb lists, each probed by a task of its own: a bad device delays no other.

    Invariant: a device is probed again after each change of its transport, before it counts as online.
    """

    def __init__(
        self,
        *,
        adb: AdbClient,
        active: ActiveAttempts,
        clock: Clock,
        random: Random,
        tasks: asyncio.TaskGroup,
        find_key: Callable[[], str | None] = lambda: None,
        names: Mapping[str, str] | None = None,
        interval_s: float = CONDITION_INTERVAL_S,
    ) -> None:
        """Monitor nothing yet; `find_key` returns the fingerprint that devices show when they ask for
        approval.

        `names` are the names of devices by port or address, keyed by what adb calls the place.
        """
        self._interval_s = interval_s
        self.names = names or {}
        self._find_key = find_key
        self._adb = adb
        self._active = active
        self._random = random
        self._readiness = DeviceReadiness(adb=adb, active=active, clock=clock)
        self._clock = clock
        self._tasks = tasks
        self._transport_by_serial: dict[str, TransportTask] = {}
        self._arrival = asyncio.Event()
        self._conflicts: Mapping[DeviceId, tuple[str, ...]] = {}
        self._claimed_elsewhere: tuple[TransportObservation, ...] = ()

    def observations(self) -> dict[DeviceId, TransportObservation]:
        """Return every device that adb lists, with the transport to use."""
        # Where our server lists such a device too, and cannot use it, the other explains why.
        observations = select_transports([*self._claimed_elsewhere, *self.transports()])
        for identity, reason in self._active.unclean_by_device.items():
            if identity in observations and observations[identity].presence is Presence.ONLINE:
                observations[identity] = replace(observations[identity], detail=reason)
        for identity, note in self._active.charging_by_device.items():
            if identity in observations and (condition := observations[identity].condition) is not None:
                noted = replace(condition, charging_note=note)
                observations[identity] = replace(observations[identity], condition=noted)
        return observations

    def record_unclean(self, identity: DeviceId, reason: str) -> None:
        """Show why an online device cannot be cleaned; until it is clean."""
        self._active.record_unclean(identity, reason)

    def find(self, identity: DeviceId) -> OnlineDevice | None:
        """Return a device that is online; None when it is not."""
        observation = self.observations().get(identity)
        if observation is None or observation.presence is not Presence.ONLINE or observation.facts is None:
            return None
        transport = self._transport_by_serial[observation.serial]
        if transport.device is None:
            transport.device = OnlineDevice(
                adb=self._adb.device(observation.serial),
                facts=observation.facts,
                boot_id=observation.boot_id,
                memory=DeviceStateCache(),
            )
        return transport.device

    async def wait(self, identity: DeviceId) -> OnlineDevice:
        """Return the device as soon as it is online, however long that takes."""
        while (device := self.find(identity)) is None:
            await self._arrival.wait()
        return device

    def reprobe(self, identity: DeviceId) -> None:
        """Have an online device probed again: it may hang, or hold something of a run."""
        observation = self.observations().get(identity)
        if observation is not None and observation.presence is Presence.ONLINE:
            self._transport_by_serial[observation.serial].activity.set()

    def probe_again(self, identity: DeviceId) -> None:
        """Have a listed device probed now, whatever its back-off."""
        observation = self.observations().get(identity)
        if observation is not None and observation.serial in self._transport_by_serial:
            self._transport_by_serial[observation.serial].activity.set()

    @property
    def is_server_down(self) -> bool:
        """Return whether no device's state is known, because adb's server is down."""
        return any(transport.state == _SERVER_DOWN for transport in self._transport_by_serial.values())

    def recoverable_devices(self) -> dict[DeviceId, TransportObservation]:
        """Return the devices whose state is their own: not claimed by another server, nor a duplicate."""
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
        self._log_changes(before)

    def record_server_down(self) -> None:
        """Mark all devices as unknown until adb's server is back."""
        for transport in self._transport_by_serial.values():
            if transport.state:
                self._apply_state(transport, _SERVER_DOWN)

    def transports(self) -> list[TransportObservation]:
        """Return every row of adb's listing; a device on two transports appears twice."""
        return [transport.observation for transport in self._transport_by_serial.values() if transport.state]

    def _transport(self, serial: str) -> TransportTask:
        transport = self._transport_by_serial.get(serial)
        if transport is None:
            seen = TransportObservation(serial=serial, presence=Presence.ABSENT, name=self.names.get(serial))
            transport = TransportTask(observation=seen)
            self._transport_by_serial[serial] = transport
            self._tasks.create_task(self._probe_repeatedly(transport), name=f"watch {serial}")
        return transport

    def _apply_state(self, transport: TransportTask, state: str) -> None:
        if state == transport.state:
            return
        before = self._presences()
        transport.state = state
        transport.changes += 1
        transport.device = None
        transport.activity.set()
        now = presence(state or None)
        detail = f"adb state: {state}"
        if now is Presence.UNAUTHORIZED and (key := self._find_key()) is not None:
            detail = f"{detail}; allow the key {key} on its screen"
        serial = transport.observation.serial
        claimants = (serial, serial) if state == SEVERAL else ()
        transport.observation = replace(
            transport.observation, presence=now, detail=detail, claimants=claimants
        )
        self._log_changes(before)

    async def _probe_repeatedly(self, transport: TransportTask) -> None:
        """Probe the device whenever its transport changes, and with back-off while it does not answer."""
        backoff = Backoff(self._random, cap_s=60.0)
        while True:
            transport.activity.clear()
            if transport.state != _REACHABLE:
                await transport.activity.wait()
                continue
            changes = transport.changes
            observation = await self._readiness.check(transport.observation)
            if transport.changes == changes:
                self._apply_observation(transport, observation)
                await self._await_next_probe(transport, backoff)
            # However often it comes and goes, it is probed at most once in a second.
            await asyncio.sleep(1.0)

    async def _await_next_probe(self, transport: TransportTask, backoff: Backoff) -> None:
        """Wait until the device must be probed again; read the condition of a healthy one periodically."""
        if transport.observation.presence is not Presence.ONLINE:
            await _wait_for_activity(transport, backoff.next_s())
            return
        backoff.reset()
        while not await _wait_for_activity(transport, self._interval_s):
            if self._may_read_condition(transport.observation):
                condition = await self._readiness.condition(transport.observation)
                if condition is None or condition.boot_id != transport.observation.boot_id:
                    return
                transport.observation = replace(transport.observation, condition=condition)

    def _may_read_condition(self, observation: TransportObservation) -> bool:
        """Return whether reading the condition disturbs no run, here or on the same CPU."""
        identity = device_id(observation)
        if identity is None or self._active.holds(identity):
            return False
        domain = observation.facts.cpu_domain if observation.facts else None
        return domain is None or domain not in self.measured_cpu_domains()

    def measured_cpu_domains(self) -> set[str]:
        """Return the CPUs that are being measured and shared with others on this host."""
        observations = self.observations()
        measuring = [observations.get(identity) for identity in self._active.measuring()]
        facts = [observation.facts for observation in measuring if observation is not None]
        return {fact.cpu_domain for fact in facts if fact is not None and fact.cpu_domain is not None}

    def _apply_observation(self, transport: TransportTask, observation: TransportObservation) -> None:
        before = self._presences()
        transport.observation = observation
        transport.device = None
        self._log_changes(before)

    def _presences(self) -> dict[DeviceId, Presence]:
        return {identity: observation.presence for identity, observation in self.observations().items()}

    def _log_changes(self, before: Mapping[DeviceId, Presence]) -> None:
        after = self.observations()
        for identity in before.keys() | after.keys():
            now = after[identity].presence if identity in after else Presence.ABSENT
            if now is not before.get(identity, Presence.ABSENT):
                detail = after[identity].detail if identity in after else None
                log.info("presence_changed", device_id=identity, presence=now, detail=detail)
                self._active.changed.set()
        self._log_conflicts()
        self._arrival.set()
        self._arrival = asyncio.Event()

    def _log_conflicts(self) -> None:
        conflicts = find_conflicts(self.transports())
        for identity, serials in conflicts.items():
            if self._conflicts.get(identity) != serials:
                log.error("identity_claimed_twice", device_id=identity, serials=serials)
        self._conflicts = conflicts


async def _wait_for_activity(transport: TransportTask, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await transport.activity.wait()
    return False
