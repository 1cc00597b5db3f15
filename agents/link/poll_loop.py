"""The poll loop: report the state of this host to the farm, and apply its answers."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from random import Random
from typing import NoReturn

import structlog

from agents.attempts.attempts import AttemptController
from agents.attempts.reconcile import AttemptDecision, SentExchange, reconcile
from agents.devices.active import ActiveAttempts
from agents.devices.backpressure import Backpressure
from agents.devices.inventory import DeliveredState, TransportObservation, device_reports, update_delivered
from agents.devices.usb_capacity import UsbCapacity
from agents.farm_api import FarmApi
from agents.host.backoff import Backoff
from agents.link.lease import LeaseMonitor
from agents.link.replay import ReportReplay
from agents.upkeep.device_actions import DeviceActionRunner
from farm.clock import Clock
from farm.core.base.ids import DeviceId, Digest
from farm.core.errors import AuthError, FarmError, FarmFault, Forbidden, NotFound, SessionFenced
from farm.wire.agents.protocol import Exchange, ExchangeAnswer, SessionAnswer, SessionOpening

log = structlog.get_logger(__name__)

#: How long the farm may hold a call. Changes on this host end it sooner.
WAIT_S = 5.0
#: Between exchanges when the farm answers at once without news.
MIN_INTERVAL_S = 1.0
#: A call that would be dropped within this time is not made: it costs the farm as much as an answered one.
SOON_S = 0.2
#: Dropped calls in a row: devices that come and go faster than the farm answers, such as thirty on a loose
#: hub, must not keep this host from getting an answer.
MAX_DROPPED_CALLS = 4


class ExchangeLoop:
    """Calls the farm in a loop, in session after session.

    A pending call is dropped as soon as there is news (a run ended, a device came): the next one is sent at
    once, and its full list replaces what the dropped answer said. So no time is lost between jobs.
    """

    def __init__(
        self,
        *,
        api: FarmApi,
        attempts: AttemptController,
        device_actions: DeviceActionRunner,
        active: ActiveAttempts,
        devices: Callable[[], Mapping[DeviceId, TransportObservation]],
        reprobe: Callable[[DeviceId], None],
        record_permission: Callable[[Collection[DeviceId], float], None],
        prefetch: Callable[[Iterable[Digest]], None],
        pressure: Backpressure,
        usb_capacity: UsbCapacity,
        lease: LeaseMonitor,
        replay: ReportReplay,
        clock: Clock,
        random: Random,
        boot_id: str,
        agent_version: str,
        adb_port: Callable[[], int | None],
        ready: Callable[[], None],
        wants_provisioning: bool = False,
    ) -> None:
        """Start nothing yet; `wants_provisioning` asks the farm to provision new devices."""
        self._wants_provisioning = wants_provisioning
        self._api = api
        self._attempts = attempts
        self._device_actions = device_actions
        self._active = active
        self._devices = devices
        self._reprobe = reprobe
        self._record_permission = record_permission
        self._prefetch = prefetch
        self._pressure = pressure
        self._usb_capacity = usb_capacity
        self._lease = lease
        self._replay = replay
        self._database_epoch = ""
        self._clock = clock
        self._random = random
        self._boot_id = boot_id
        self._agent_version = agent_version
        self._adb_port = adb_port
        self._ready = ready

    async def run(self) -> NoReturn:
        """Keep a session open.

        Raises:
            AuthError: the farm does not accept our credential.
            FarmError: it will not open a session for us, and trying again would not help.
        """
        reopening = Backoff(self._random, first_s=0.25, cap_s=30.0)
        while True:
            session = await self._open_session()
            log.info("session_opened", session_id=session.session_id, epoch=session.epoch)
            self._database_epoch = session.database_epoch
            self._attempts.apply_orders(session.orders)
            await self._replay.apply_session(session)
            began_s = self._clock.monotonic()
            try:
                await self._exchange_until_fenced(session)
            except (SessionFenced, NotFound, Forbidden) as error:
                log.warning(
                    "session_ended",
                    session_id=session.session_id,
                    reason=error.message,
                    hint=error.hint,
                )
            # Two agents with one credential would fence each other without a pause.
            if self._clock.monotonic() - began_s > 60.0:
                reopening.reset()
            await asyncio.sleep(reopening.next_s())

    async def _open_session(self) -> SessionAnswer:
        backoff = Backoff(self._random, first_s=0.25, cap_s=10.0)
        while True:
            opening = SessionOpening(
                boot_id=self._boot_id,
                agent_version=self._agent_version,
                adb_port=self._adb_port(),
                attempts=self._active.reports(),
            )
            try:
                return await self._api.open_session(opening)
            except FarmFault as error:
                log.info("farm_unreachable", code=error.code, reason=error.message)
                await asyncio.sleep(backoff.next_s())

    async def _exchange_until_fenced(self, session: SessionAnswer) -> NoReturn:
        backoff = Backoff(self._random, first_s=0.25, cap_s=min(10.0, session.heartbeat_s))
        delivered: Mapping[DeviceId, DeliveredState] = {}
        seq = dropped = 0
        while True:
            seq += 1
            wait_s = min(WAIT_S, session.heartbeat_s / 2) if dropped < MAX_DROPPED_CALLS else 0.0
            sent = self._compose(seq, wait_s, delivered)
            try:
                answer = await self._exchange_unless_changed(session, sent.exchange)
            except (SessionFenced, NotFound, AuthError, Forbidden):
                raise
            except FarmError as error:
                log.info("exchange_failed", code=error.code, reason=error.message)
                await asyncio.sleep(backoff.next_s())
                continue
            backoff.reset()
            dropped = dropped + 1 if answer is None else 0
            if answer is not None:
                self._report_ready_once()
                self._lease.record(sent.at_s, answer.lost_after_s)
                delivered = update_delivered(delivered, sent.exchange.devices, answer.facts_wanted)
                await self._act(sent, answer)

    def _compose(self, seq: int, wait_s: float, delivered: Mapping[DeviceId, DeliveredState]) -> SentExchange:
        self._active.changed.clear()
        exchange = Exchange(
            seq=seq,
            wait_s=wait_s,
            database_epoch=self._database_epoch,
            devices=device_reports(
                self._devices(),
                self._active.cleaned_fence_by_device,
                delivered,
                known_fence_by_id=self._active.fence_by_device,
                wants_provisioning=self._wants_provisioning,
            ),
            attempts=self._active.reports(),
            device_actions=self._device_actions.reports(),
            device_actions_in_progress=self._device_actions.in_progress(),
            pressure=self._pressure.reason,
            full_controllers=self._usb_capacity.full,
        )
        return SentExchange(exchange=exchange, at_s=self._clock.monotonic())

    async def _exchange_unless_changed(
        self, session: SessionAnswer, exchange: Exchange
    ) -> ExchangeAnswer | None:
        """Return the answer; None when something changed here first and the call was dropped.

        A call without a wait is never dropped.
        """
        if exchange.wait_s == 0.0:
            return await self._api.exchange(session.session_id, exchange)
        call = asyncio.create_task(self._api.exchange(session.session_id, exchange))
        change = asyncio.create_task(self._active.changed.wait())
        try:
            await asyncio.wait((call, change), return_when=asyncio.FIRST_COMPLETED)
        finally:
            call.cancel()
            change.cancel()
            await asyncio.wait((call, change))
        return None if call.cancelled() else call.result()

    def _report_ready_once(self) -> None:
        ready, self._ready = self._ready, lambda: None
        ready()

    async def _act(self, sent: SentExchange, answer: ExchangeAnswer) -> None:
        now_s = self._clock.monotonic()
        decision = reconcile(sent, answer, self._active.start_blockers(), now_s=now_s)
        self._attempts.apply(decision)
        if answer.seq == sent.exchange.seq:
            self._device_actions.apply(sent.exchange.device_actions, answer.device_actions)
        for clean_up in answer.clean_ups:
            if self._active.request_cleanup(clean_up.device_id, clean_up.fence):
                self._reprobe(clean_up.device_id)
        self._record_permission(answer.may_recover, sent.at_s)
        self._prefetch(answer.prefetch)
        # A farm that answers at once without news must not be polled without a pause.
        await self._pause(MIN_INTERVAL_S - (now_s - sent.at_s) if decision == AttemptDecision() else 0.0)

    async def _pause(self, seconds: float) -> None:
        """Wait before the next call, until something changes; longer where a change is about to come."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, SOON_S if self._active.has_pending_news() else 0.0)):
                await self._active.changed.wait()
