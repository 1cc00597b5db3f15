"""The poll loop: report the state of this host to the farm, apply its answers, resend reports it has lost."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NoReturn

import structlog

from agents.attempts.attempts import AttemptController
from agents.attempts.reconcile import AttemptDecision, SentExchange, reconcile
from agents.devices.active_attempts import ActiveAttempts
from agents.devices.backpressure import Backpressure, UsbCapacity
from agents.devices.inventory import DeliveredState, TransportObservation, device_reports, update_delivered
from agents.farm_api import FarmApi
from agents.host.atomic_file import DiskThread, write_file_durably
from agents.host.data_dir import find_file
from agents.host.retry import Backoff
from agents.link.clock_comparison import ClockComparison
from agents.link.lease import LeaseMonitor
from agents.outbox.damaged_files import DamagedFiles
from agents.upkeep.device_actions import DeviceActionRunner
from farm.clock import Clock
from farm.core.base.ids import DeviceId, Digest
from farm.core.errors import (
    AuthError,
    Blame,
    FarmError,
    FarmFault,
    Forbidden,
    HostDiskFull,
    InvalidInput,
    NotFound,
    SessionFenced,
)
from farm.wire.agents.protocol import Exchange, ExchangeAnswer, SessionAnswer, SessionOpening

log = structlog.get_logger(__name__)

#: In the data folder: the epoch of the farm's database that this agent reported to last.
EPOCH_FILE = "database-epoch"
#: The farm assigns no new work before it has these reports; a limit keeps it from blocking all work.
_REPLAY_TIMEOUT_S = 20.0
#: Refusals that last longer are final: a proxy, or a farm being restored, may refuse a good credential for a
#: while.
REFUSED_CREDENTIAL_S = 60.0
#: After a session that lasted longer, the pauses before the next ones begin short again.
_STABLE_SESSION_S = 60.0
#: Time the farm may hold a call. Changes on this host end it sooner.
_MAX_HOLD_S = 5.0
#: Between exchanges when the farm answers at once without news.
_MIN_INTERVAL_S = 1.0
#: Pause before a call while news of an attempt is about to come. The call would be dropped then, which costs
#: the farm as much as an answered one.
_NEWS_PAUSE_S = 0.2
#: Dropped calls in a row: devices that come and go faster than the farm answers, such as thirty on a loose
#: hub, must not keep this host from getting an answer.
_MAX_DROPPED_CALLS = 4
#: Errors by which the farm ends a session, or refuses it.
_SESSION_ENDED = (SessionFenced, NotFound, Forbidden, AuthError)


class CredentialRefused(FarmError):
    """The farm goes on refusing this host's credential; runs on its devices continue."""

    code = "host.credential_refused"
    blame = Blame.HOST
    default_hint = (
        "if the host was retired, join again: `farm agent join`; else look at the farm or its proxy"
    )


class ReportReplay:
    """Resends reports that the farm's database may have lost, as after a restore.

    Invariant: a new epoch is recorded only after every kept report is queued again.
    """

    def __init__(self, attempts: AttemptController, data_dir: Path, disk: DiskThread) -> None:
        self._attempts = attempts
        self._path = data_dir / EPOCH_FILE
        self._disk = disk

    async def resend_lost_reports(self, session: SessionAnswer) -> None:
        """Resend the reports that the farm asks for, and wait for its answers.

        If the database has a new epoch, also resend every report that is still kept. The farm refuses reports
        of attempts it does not know; these are kept as refused, and the jobs run again.
        """
        if session.reports_wanted:
            await self._attempts.resend_requested(session.reports_wanted, within_s=_REPLAY_TIMEOUT_S)
        try:
            previous = await self._disk.call(find_file, self._path)
        except InvalidInput as error:
            log.warning("database_epoch_unreadable", reason=error.message, hint=error.hint)
            return
        epoch = session.database_epoch.encode()
        if not epoch or previous == epoch:
            return
        if previous is not None:
            count = await self._attempts.resend()
            log.warning("database_restored", reports=count, database_epoch=session.database_epoch)
        try:
            await self._disk.call(write_file_durably, self._path, epoch)
        except HostDiskFull as error:
            # The next session sends them again, which changes nothing.
            log.warning("database_epoch_not_saved", reason=error.message)


@dataclass(eq=False, kw_only=True)
class ExchangeLoop:
    """Calls the farm in a loop, in session after session.

    A pending call is dropped as soon as there is news (a run ended, a device came): the next one is sent at
    once, and its full list replaces what the dropped answer said. So no time is lost between jobs.
    """

    api: FarmApi
    attempts: AttemptController
    device_actions: DeviceActionRunner
    active: ActiveAttempts
    devices: Callable[[], Mapping[DeviceId, TransportObservation]]
    reprobe: Callable[[DeviceId], None]
    record_recovery_permission: Callable[[Collection[DeviceId], float], None]
    prefetch: Callable[[Iterable[Digest]], None]
    pressure: Backpressure
    usb_capacity: UsbCapacity
    damaged_files: DamagedFiles
    lease: LeaseMonitor
    replay: ReportReplay
    clock_comparison: ClockComparison
    clock: Clock
    random: Random
    boot_id: str
    agent_version: str
    #: Of the adb server, for `farm adb` on this machine; None for a server of another machine.
    adb_address: str | None
    ready: Callable[[], None]
    #: Set after the first session was opened.
    session_opened: asyncio.Event = field(default_factory=asyncio.Event)
    #: Ask the farm to provision new devices.
    wants_provisioning: bool = False
    _database_epoch: str = ""
    _is_ready: bool = False

    async def run(self) -> NoReturn:
        """Keep a session open.

        Raises:
            CredentialRefused: the farm does not accept our credential.
            FarmError: it will not open a session for us, and trying again would not help.
        """
        reopening = Backoff(self.random, first_s=0.25, cap_s=30.0)
        while True:
            session = await self._open_session()
            log.info("session_opened", session_id=session.session_id, session_epoch=session.epoch)
            self.session_opened.set()
            self.clock_comparison.request()
            self._database_epoch = session.database_epoch
            self.attempts.apply_orders(session.orders)
            await self.replay.resend_lost_reports(session)
            began_s = self.clock.monotonic()
            try:
                await self._exchange_until_session_ends(session)
            except _SESSION_ENDED as error:
                session_id = session.session_id
                log.warning("session_ended", session_id=session_id, reason=error.message, hint=error.hint)
            if self.clock.monotonic() - began_s > _STABLE_SESSION_S:
                reopening.reset()
            # Two agents with one credential fence each other: without a pause they would do so in a tight
            # loop.
            await asyncio.sleep(reopening.next_s())

    async def _open_session(self) -> SessionAnswer:
        backoff = Backoff(self.random, first_s=0.25, cap_s=10.0)
        refused_since_s = self.clock.monotonic()
        while True:
            opening = SessionOpening(
                boot_id=self.boot_id,
                agent_version=self.agent_version,
                adb_address=self.adb_address,
                attempts=self.active.reports(),
            )
            try:
                return await self.api.open_session(opening)
            except FarmFault as error:
                log.info("farm_unreachable", code=error.code, reason=error.message)
                refused_since_s = self.clock.monotonic()
            except AuthError as error:
                log.warning("credential_refused", reason=error.message)
                if self.clock.monotonic() - refused_since_s > REFUSED_CREDENTIAL_S:
                    raise CredentialRefused(
                        f"the farm refuses this host's credential: {error.message}"
                    ) from error
            await asyncio.sleep(backoff.next_s())

    async def _exchange_until_session_ends(self, session: SessionAnswer) -> NoReturn:
        """Exchange until the farm ends or refuses this session; other failures are retried."""
        backoff = Backoff(self.random, first_s=0.25, cap_s=min(10.0, session.heartbeat_s))
        delivered: Mapping[DeviceId, DeliveredState] = {}
        seq = dropped = 0
        while True:
            seq += 1
            wait_s = min(_MAX_HOLD_S, session.heartbeat_s / 2) if dropped < _MAX_DROPPED_CALLS else 0.0
            # From here on: what changes later drops this call.
            self.active.changed.clear()
            sent = self._compose(seq, wait_s, delivered)
            try:
                answer = await self._exchange_unless_changed(session, sent.exchange)
            except _SESSION_ENDED:
                raise
            except FarmError as error:
                log.info("exchange_failed", code=error.code, reason=error.message)
                await asyncio.sleep(backoff.next_s())
                continue
            backoff.reset()
            dropped = dropped + 1 if answer is None else 0
            if answer is not None:
                if not self._is_ready:
                    self._is_ready = True
                    self.ready()
                self.clock_comparison.record_answer()
                self.lease.record(sent.at_s, answer.lost_after_s)
                delivered = update_delivered(delivered, sent.exchange.devices, answer.facts_wanted)
                decision = self._apply(sent, answer)
                # An answer that came at once and changes no attempt must not make this a busy loop.
                rest_s = _MIN_INTERVAL_S - (self.clock.monotonic() - sent.at_s)
                await self._pause(rest_s if decision.is_empty else 0.0)

    def _compose(self, seq: int, wait_s: float, delivered: Mapping[DeviceId, DeliveredState]) -> SentExchange:
        exchange = Exchange(
            seq=seq,
            wait_s=wait_s,
            database_epoch=self._database_epoch,
            devices=device_reports(
                self.devices(),
                self.active.cleaned_fence_by_device,
                delivered,
                known_fence_by_id=self.active.fence_by_device,
                wants_provisioning=self.wants_provisioning,
            ),
            attempts=self.active.reports(),
            device_actions=self.device_actions.reports(),
            device_actions_in_progress=self.device_actions.in_progress(),
            pressure=self.pressure.reason,
            full_controllers=self.usb_capacity.full,
            damaged_files=self.damaged_files.notice,
        )
        return SentExchange(exchange=exchange, at_s=self.clock.monotonic())

    async def _exchange_unless_changed(
        self, session: SessionAnswer, exchange: Exchange
    ) -> ExchangeAnswer | None:
        """Return the answer; None when something changed here first and the call was dropped.

        A call without a wait is never dropped.
        """
        if exchange.wait_s == 0.0:
            return await self.api.exchange(session.session_id, exchange)
        call = asyncio.create_task(self.api.exchange(session.session_id, exchange))
        change = asyncio.create_task(self.active.changed.wait())
        try:
            await asyncio.wait((call, change), return_when=asyncio.FIRST_COMPLETED)
        finally:
            call.cancel()
            change.cancel()
            await asyncio.wait((call, change))
        return None if call.cancelled() else call.result()

    def _apply(self, sent: SentExchange, answer: ExchangeAnswer) -> AttemptDecision:
        """Apply an answer; return what it changed of the attempts."""
        decision = reconcile(sent, answer, self.active.start_blockers(), now_s=self.clock.monotonic())
        self.attempts.apply(decision)
        if answer.seq == sent.exchange.seq:
            self.device_actions.apply(sent.exchange.device_actions, answer.device_actions)
        for clean_up in answer.clean_ups:
            if self.active.request_cleanup(clean_up.device_id, clean_up.fence, resets=clean_up.resets):
                self.reprobe(clean_up.device_id)
        self.record_recovery_permission(answer.may_recover, sent.at_s)
        self.prefetch(answer.prefetch)
        return decision

    async def _pause(self, seconds: float) -> None:
        """Wait before the next call, until something changes; longer where a change is about to come."""
        least_s = _NEWS_PAUSE_S if self.active.has_pending_news() else 0.0
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, least_s)):
                await self.active.changed.wait()
