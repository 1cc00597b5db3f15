"""What operators ask of phones, carried out while no attempt has them."""

import asyncio
from collections.abc import Sequence
from typing import assert_never

import structlog

from agents.device.control.device_settings import check_settings, set_settings, undo_settings
from agents.device.control.identify import SHOW_S, identify
from agents.device.run.cleanup import clean_phone
from agents.devices.active import Hand
from agents.devices.inventory import is_usb
from agents.devices.monitor import Phone, PhoneWatch
from farm.core.base.units import size_text
from farm.core.errors import DeviceOffline, FarmError
from farm.core.upkeep.device_action import ErrandKind
from farm.core.upkeep.device_settings import settings_words
from farm.wire.agents.protocol import Errand, ErrandReport

log = structlog.get_logger(__name__)

_REPORT_LIMIT = 2000


class Errands:
    """Does each errand in a task of its own, and reports it until the farm lists it no longer.

    Invariant: a phone has an attempt in hand or an errand, never both. Nothing is written down: what an
    earlier life did not report is done again, which does no harm.
    """

    def __init__(
        self, *, hand: Hand, phones: PhoneWatch, tasks: asyncio.TaskGroup, show_s: float = SHOW_S
    ) -> None:
        self._hand = hand
        self._phones = phones
        self._tasks = tasks
        self._show_s = show_s
        self._in_hand: set[int] = set()
        self._report_by_id: dict[int, ErrandReport] = {}

    def in_hand(self) -> tuple[int, ...]:
        """The errands that are being done."""
        return tuple(sorted(self._in_hand))

    def reports(self) -> tuple[ErrandReport, ...]:
        """How errands ended, as far as the farm is not known to have heard of it."""
        return tuple(self._report_by_id.values())

    def apply(self, reported: Sequence[ErrandReport], listed: Sequence[Errand]) -> None:
        """Forget what the farm took note of, and begin what it lists on phones that are free.

        Args:
            reported: what the exchange said that is answered now.
            listed: the answer's full list.
        """
        wanted = {errand.errand_id for errand in listed}
        for report in reported:
            if report.errand_id not in wanted:
                self._report_by_id.pop(report.errand_id, None)
        for errand in listed:
            if self._is_new(errand) and not self._hand.is_taken(errand.device_id):
                self._in_hand.add(errand.errand_id)
                self._hand.on_errand.add(errand.device_id)
                self._tasks.create_task(self._carry_out(errand), name=f"errand {errand.errand_id}")

    def _is_new(self, errand: Errand) -> bool:
        return errand.errand_id not in self._in_hand and errand.errand_id not in self._report_by_id

    async def _carry_out(self, errand: Errand) -> None:
        report = await self._report(errand)
        log.info(
            "errand_ended",
            errand_id=errand.errand_id,
            device_id=errand.device_id,
            kind=errand.kind,
            done=report.done,
            reason=report.error,
        )
        self._report_by_id[errand.errand_id] = report
        self._in_hand.discard(errand.errand_id)
        self._hand.on_errand.discard(errand.device_id)
        self._hand.changed.set()

    async def _report(self, errand: Errand) -> ErrandReport:
        try:
            return await self._done(errand)
        except FarmError as error:
            reason = error.message
        except Exception as error:
            log.exception("errand_crashed", errand_id=errand.errand_id)
            reason = f"the agent failed: {error!r}"
        return ErrandReport(errand_id=errand.errand_id, error=reason[:_REPORT_LIMIT])

    async def _done(self, errand: Errand) -> ErrandReport:
        phone = self._phones.find(errand.device_id)
        if phone is None:
            raise DeviceOffline(f"{errand.device_id} went away")
        try:
            return await self._done_on(phone, errand)
        finally:
            # The files that were there may be gone, and the screen is as the errand left it.
            phone.memory.forget()

    async def _done_on(self, phone: Phone, errand: Errand) -> ErrandReport:
        match errand.kind:
            case ErrandKind.IDENTIFY:
                done = await identify(phone.device, errand.label, show_s=self._show_s)
                return ErrandReport(errand_id=errand.errand_id, done=done)
            case ErrandKind.CLEAN:
                return await _cleaned(errand, phone)
            case ErrandKind.CHECK_SETTINGS | ErrandKind.SET_UP | ErrandKind.UNDO_SETTINGS:
                return await _settings(errand, phone)
            case _:
                assert_never(errand.kind)


async def _settings(errand: Errand, phone: Phone) -> ErrandReport:
    """Look at the settings of a phone, change them, or put them back."""
    on_network = not is_usb(phone.device.serial)
    if errand.kind is ErrandKind.UNDO_SETTINGS:
        found = await undo_settings(phone.device, errand.put_back)
    elif errand.kind is ErrandKind.SET_UP:
        found = await set_settings(phone.device, on_network=on_network)
    else:
        found = await check_settings(phone.device, on_network=on_network)
    done = settings_words(found)
    return ErrandReport(errand_id=errand.errand_id, done=done[:_REPORT_LIMIT], settings=found)


async def _cleaned(errand: Errand, phone: Phone) -> ErrandReport:
    freed = await clean_phone(phone.device, phone.facts.work_root)
    done = f"ended what runs had left and freed {size_text(freed.freed_bytes)} in {freed.files} cached files"
    return ErrandReport(errand_id=errand.errand_id, done=done, freed_bytes=freed.freed_bytes)
