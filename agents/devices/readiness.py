"""What has to be known of a phone, and gone from it, before it counts as online."""

from dataclasses import replace

import structlog

from agents.adb.client import AdbClient, AdbDevice
from agents.device.control.controls import restore_controls
from agents.device.run.gates import restore_awake
from agents.device.run.run_control import RunStatus, clean_run, run_status
from agents.device.state.conditions import read_condition
from agents.device.state.facts import read_facts
from agents.device.state.fencing import read_fence
from agents.device.state.identity_marker import read_mark
from agents.device.state.probe import probe
from agents.devices.active import Hand
from agents.devices.inventory import Sighting, device_id
from farm.clock import Clock
from farm.core.devices.condition import Condition
from farm.core.devices.device import Presence
from farm.core.errors import FarmError

log = structlog.get_logger(__name__)


class Admission:
    """Looks at phones that have just come, or come back."""

    def __init__(self, *, adb: AdbClient, hand: Hand, clock: Clock) -> None:
        self._adb = adb
        self._hand = hand
        self._clock = clock

    async def look(self, sighting: Sighting) -> Sighting:
        """Probe a phone end to end, read what it is, clean up what nobody has in hand; never raises."""
        try:
            return await self._look(sighting)
        except FarmError as error:
            log.debug("phone_not_admitted", serial=sighting.serial, code=error.code, reason=error.message)
            return replace(sighting, presence=Presence.OFFLINE, detail=error.message)
        except Exception as error:
            log.exception("phone_look_crashed", serial=sighting.serial)
            return replace(sighting, presence=Presence.OFFLINE, detail=f"the agent failed: {error!r}")

    async def condition(self, sighting: Sighting) -> Condition | None:
        """What an online phone is like now; None when it does not say."""
        if sighting.facts is None:
            return None
        device = self._adb.device(sighting.serial)
        try:
            return await read_condition(device, sighting.facts.work_root, self._clock.now())
        except FarmError as error:
            log.debug("condition_unread", serial=sighting.serial, code=error.code, reason=error.message)
            return None

    async def _look(self, sighting: Sighting) -> Sighting:
        device = self._adb.device(sighting.serial)
        found = await probe(device)
        if found is not Presence.ONLINE:
            detail = "Android is not up yet" if found is Presence.BOOTING else "its shell does not answer"
            return replace(sighting, presence=found, detail=detail)
        if sighting.facts is not None and device_id(sighting) in self._hand.measuring():
            # It was away for a moment; whatever else there is to ask disturbs the run.
            return replace(sighting, presence=Presence.ONLINE, detail=None)
        known = await self._known(device, sighting)
        await self._clean(device, known)
        return replace(known, presence=Presence.ONLINE, detail=None)

    async def _known(self, device: AdbDevice, sighting: Sighting) -> Sighting:
        """Its facts, read once for each boot, and its condition."""
        if sighting.facts is not None:
            condition = await read_condition(device, sighting.facts.work_root, self._clock.now())
            if condition.boot_id == sighting.boot_id:
                return replace(sighting, condition=condition)
        facts = await read_facts(device)
        condition = await read_condition(device, facts.work_root, self._clock.now())
        # Only on TCP can there be two transports of a kind that are one phone.
        mark = await read_mark(device, facts.work_root) if sighting.is_tcp else None
        return replace(sighting, facts=facts, condition=condition, boot_id=condition.boot_id, mark=mark)

    async def _clean(self, device: AdbDevice, sighting: Sighting) -> None:
        """Remove what earlier lives, or other hosts, left; not where an attempt in hand sees to it."""
        identity = device_id(sighting)
        if identity is None or sighting.facts is None or self._hand.holds(identity):
            return
        work_root = sighting.facts.work_root
        known, wanted = (
            await read_fence(device, work_root),
            self._hand.fence_to_clean_by_device.get(identity, 0),
        )
        self._hand.note_fence(identity, known)
        # The phone never heard of an attempt that ended before its run began.
        fence = max(known, wanted)
        is_at_work = fence > wanted and await run_status(device, work_root, fence) is RunStatus.RUNNING
        if is_at_work:
            # On TCP another host may be, with its settings. Where nobody is, the farm asks for the run's end.
            fence -= 1
        else:
            # Of an attempt that ended before its run began, too, whoever's that was.
            await restore_controls(device, work_root)
        if fence > 0:
            await clean_run(device, work_root, fence)
        if not is_at_work:
            await restore_awake(device, work_root)
        self._hand.note_cleaned(identity, fence)
