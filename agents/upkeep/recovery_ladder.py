"""Climbs the ladder of recovery with each phone that is not there for work, at that phone's own pace."""

import asyncio
from collections.abc import Collection
from dataclasses import replace
from typing import NoReturn

import structlog

from agents.adb.client import AdbClient
from agents.devices.active import Hand
from agents.devices.inventory import Sighting, device_id, is_usb
from agents.devices.monitor import PhoneWatch
from agents.host.config import AgentConfig
from agents.host.usb_port_names import port_of
from agents.upkeep.recovering_device import Patient, kept_of, recalled
from agents.upkeep.recovery_actions import OFF_S, RecoverySteps
from agents.upkeep.recovery_state import ClimbMemory
from farm.clock import Clock
from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from farm.core.errors import FarmError, HostDiskFull
from farm.core.upkeep.recovery import (
    HARMLESS,
    RESTARTS,
    RULES,
    Climb,
    RecoveryRules,
    RecoveryStep,
    RecoveryTry,
    ailment,
    climbs_again_s,
    next_step,
    seen_as,
    with_patience,
    with_step,
)

log = structlog.get_logger(__name__)

INTERVAL_S = 1.0
#: The farm's leave is as old as its answer; another job may be claimed after that.
LEAVE_S = 20.0


def rules_for(config: AgentConfig, rules: RecoveryRules = RULES) -> RecoveryRules:
    """What an agent's settings allow."""
    paced = with_patience(rules, config.recovery_patience)
    return replace(paced, may_reboot=config.reboot, may_switch_power=config.power_command is not None)


class Ladder:
    """Looks at all phones every second; that alone asks nothing of adb.

    Invariant: a step that may disturb somebody is taken with the farm's fresh leave only, while this host has
    no run on the phone that its farm has not heard the end of; restarts one phone after the other, and each
    only once it is on disk, so that a life that ends then and the next do not take one each.
    """

    def __init__(
        self,
        *,
        adb: AdbClient,
        watch: PhoneWatch,
        hand: Hand,
        clock: Clock,
        tasks: asyncio.TaskGroup,
        memory: ClimbMemory,
        rules: RecoveryRules,
        config: AgentConfig,
        off_s: float = OFF_S,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._adb = adb
        self._watch = watch
        self._hand = hand
        self._clock = clock
        self._tasks = tasks
        self._memory = memory
        self._rules = rules
        self._power = config.power_command
        self._steps = RecoverySteps(adb=adb, watch=watch, hand=hand, config=config, off_s=off_s)
        self._interval_s = interval_s
        self._patient_by_id: dict[DeviceId, Patient] = {}

    async def recall(self) -> None:
        """Take up what an earlier life was at; before anything else."""
        now_s, now = self._clock.monotonic(), self._clock.now()
        for kept in await self._memory.recall():
            patient = recalled(kept, self._rules, now_s=now_s, now=now)
            self._patient_by_id[kept.device_id] = patient
            log.info("recovery_recalled", device_id=kept.device_id, steps=len(patient.tries))

    async def run(self) -> NoReturn:
        """Look after phones until cancelled."""
        await self._steps.mend_ports()
        while True:
            await self._learn_ports()
            self.look()
            try:
                await self._keep()
            except (HostDiskFull, OSError) as error:
                log.debug("climbs_not_kept", reason=str(error))
            await asyncio.sleep(self._interval_s)

    def sightings(self) -> dict[DeviceId, Sighting]:
        """The watch's phones with what is done for them; those too that are gone and are to be had back."""
        found, unnamed = self._watch.sightings(), self._unnamed()
        for identity, patient in self._patient_by_id.items():
            if (recovery := patient.shown()) is None:
                continue
            serial = patient.sighting.serial
            gone = Sighting(serial=serial, presence=Presence.ABSENT, detail="adb does not list it")
            known = found.get(identity) or unnamed.get(serial, gone)
            found[identity] = replace(known, recovery=recovery)
        return found

    def note_leave(self, allowed: Collection[DeviceId], sent_at_s: float) -> None:
        """What the farm allowed in its answer to an exchange that was sent then."""
        for identity, patient in self._patient_by_id.items():
            patient.leave_at_s = sent_at_s if identity in allowed else None

    def look(self) -> None:
        """See how each phone is, and begin what is due."""
        now_s = self._clock.monotonic()
        if self._watch.is_blind:
            # Not the phones' doing: their time begins anew.
            for patient in self._patient_by_id.values():
                patient.climb = patient.climb and replace(patient.climb, since_s=now_s)
            return
        found = self._watch.mendable()
        for identity, sighting in found.items():
            self._patient_by_id.setdefault(identity, Patient(sighting=sighting)).sighting = sighting
        listed, unnamed = self._watch.sightings(), self._unnamed()
        for identity, patient in self._patient_by_id.items():
            if identity in listed and identity not in found:
                continue
            seen = found.get(identity) or unnamed.get(patient.sighting.serial)
            if seen is not None:
                self._see(identity, patient, seen.presence, now_s)
            elif now_s >= patient.awaited_until_s:
                self._see(identity, patient, Presence.ABSENT, now_s)

    def _unnamed(self) -> dict[str, Sighting]:
        """Phones on TCP that did not answer in this life; where one is known from another, it is that."""
        return {each.serial: each for each in self._watch.transports() if device_id(each) is None}

    def _see(self, identity: DeviceId, patient: Patient, presence: Presence, now_s: float) -> None:
        what = ailment(presence, is_unclean=identity in self._hand.unclean_by_device)
        if what is None:
            self._is_over(identity, patient, presence)
            return
        patient.climb = seen_as(patient.climb, what, now_s=now_s)
        if patient.failed_at_s is not None:
            if now_s - patient.failed_at_s < climbs_again_s(patient.failures, self._rules):
                return
            patient.failed_at_s, patient.climb = None, Climb(ailment=what, since_s=now_s)
            patient.tries.clear()
        rules = self._rules_of(patient, now_s)
        before, patient.next = patient.next, next_step(patient.climb, rules, now_s=now_s)
        if patient.next is not before:
            self._hand.changed.set()
        if patient.next is not None and patient.now is None and self._may(identity, patient, now_s):
            patient.now, patient.now_since_s = patient.next, now_s
            self._tasks.create_task(self._take(identity, patient, patient.next), name=f"recover {identity}")

    def _is_over(self, identity: DeviceId, patient: Patient, presence: Presence) -> None:
        if patient.shown() is not None:
            log.info("recovery_over", device_id=identity, presence=presence, steps=len(patient.tries))
            self._hand.changed.set()
        patient.climb = patient.next = patient.failed_at_s = None
        patient.tries.clear()
        if presence is Presence.ONLINE:
            patient.failures = 0

    def _rules_of(self, patient: Patient, now_s: float) -> RecoveryRules:
        """A phone that comes back and goes again is not restarted each time."""
        at_s, climb = patient.restarted_at_s, patient.climb
        is_other_climb = climb is not None and not RESTARTS & set(climb.taken)
        is_early = at_s is not None and is_other_climb and now_s - at_s < self._rules.again_s
        return replace(self._rules, may_reboot=False, may_switch_power=False) if is_early else self._rules

    def _may(self, identity: DeviceId, patient: Patient, now_s: float) -> bool:
        if identity in self._hand.on_errand:
            return False
        if patient.next in HARMLESS:
            return True
        if patient.leave_at_s is None or now_s - patient.leave_at_s > LEAVE_S:
            return False
        held = self._hand.held_by_id.values()
        if any(each.entry.device_id == identity and not each.acknowledged for each in held):
            return False
        away = [each for each in self._patient_by_id.values() if each.is_restarting(self._rules, now_s)]
        return patient.next not in RESTARTS or len(away) < self._rules.restarts_at_once

    async def _take(self, identity: DeviceId, patient: Patient, step: RecoveryStep) -> None:
        is_disturbing = step not in HARMLESS
        if is_disturbing:
            # Nothing may begin there meanwhile.
            self._hand.on_errand.add(identity)
        try:
            if step in RESTARTS:
                await self._keep()
            said = await self._steps.take(step, identity, patient.sighting, patient.usb_path or None)
        except FarmError as error:
            said = f"failed: {error.message}"
        except Exception as error:
            log.exception("recovery_crashed", device_id=identity, step=step)
            said = f"the agent failed: {error!r}"
        else:
            if step in RESTARTS:
                patient.restarted_at_s = self._clock.monotonic()
        finally:
            patient.now = None
            if is_disturbing:
                self._hand.on_errand.discard(identity)
        self._note(identity, patient, step, said)

    def _note(self, identity: DeviceId, patient: Patient, step: RecoveryStep, said: str) -> None:
        now_s = self._clock.monotonic()
        log.info("recovery_step_taken", device_id=identity, step=step, said=said)
        patient.next = patient.leave_at_s = None
        patient.tries.append(RecoveryTry(step=step, at=self._clock.now(), said=said[:500]))
        if step is RecoveryStep.HUMAN:
            patient.failures, patient.failed_at_s = patient.failures + 1, now_s
        if patient.climb is not None:
            patient.climb = with_step(patient.climb, step, now_s=now_s)
        self._hand.changed.set()

    async def _keep(self) -> None:
        patients, now_s = self._patient_by_id, self._clock.monotonic()
        await self._memory.keep(tuple(kept_of(patients, self._rules, now_s)))

    async def _learn_ports(self) -> None:
        """Where phones are plugged in, while adb still lists them."""
        new = {
            patient.sighting.serial: patient
            for patient in self._patient_by_id.values()
            if patient.usb_path is None and is_usb(patient.sighting.serial)
        }
        if self._power is None or not new or self._watch.is_blind:
            return
        try:
            listed = await self._adb.listed()
        except FarmError as error:
            log.debug("ports_unknown", reason=error.message)
            return
        for serial, patient in new.items():
            patient.usb_path = port_of(serial, listed) or ""
