"""The lease on devices that other hosts can reach: how long attempts may run without the farm."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from agents.attempts.reconcile import STOPPABLE
from agents.devices.active_attempts import ActiveAttempts
from agents.devices.inventory import TransportObservation
from agents.outbox.attempt_journal import JournalRecord
from farm.clock import Clock
from farm.core.base.ids import AttemptId, DeviceId
from farm.core.errors import HostError

#: For stopping runs and cleaning up: the supervisor's time to kill them, and a slow device.
STOP_S = 60.0
#: The largest share of a short lease reserved for that.
_STOP_SHARE = 0.5
TICK_S = 1.0


class LeaseEndedError(HostError):
    """The farm was unreachable so long that it may have given the device to another host."""

    code = "host.lease_ended"
    default_hint = "check the connection from this host to the farm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The validity of the farm's last answer, on the agent's monotonic clock."""

    #: Time the answered exchange was sent: the farm counts from a later time.
    asked_at_s: float
    lost_after_s: float

    @property
    def stop_at_s(self) -> float:
        """Return when to stop, early enough to be done before the farm gives the device away."""
        return self.asked_at_s + self.lost_after_s - min(STOP_S, self.lost_after_s * _STOP_SHARE)


def overdue_attempts(
    records: Iterable[JournalRecord],
    device_by_id: Mapping[DeviceId, TransportObservation],
    lease: Lease,
    *,
    now_s: float,
) -> list[AttemptId]:
    """Return the attempts that must stop without an order: those on devices that other hosts can reach.

    A device on USB, or on this host's loopback, cannot be reached by others: its runs continue however long
    the farm is unreachable.
    """
    if now_s < lease.stop_at_s:
        return []
    shared = {device_id for device_id, row in device_by_id.items() if row.is_reachable_elsewhere}
    stoppable = (record for record in records if record.phase in STOPPABLE)
    return [record.attempt_id for record in stoppable if record.device_id in shared]


@dataclass(eq=False, kw_only=True)
class LeaseMonitor:
    """Stops attempts whose lease has ended. Before the first answer there is no lease."""

    active: ActiveAttempts
    devices: Callable[[], Mapping[DeviceId, TransportObservation]]
    stop: Callable[[AttemptId, LeaseEndedError], None]
    clock: Clock
    _lease: Lease | None = None

    def record(self, asked_at_s: float, lost_after_s: float | None) -> None:
        """Record the answer to an exchange; a farm that sends no lease is never waited out."""
        if lost_after_s is not None:
            self._lease = Lease(asked_at_s=asked_at_s, lost_after_s=lost_after_s)

    async def run(self) -> NoReturn:
        """Check every second."""
        while True:
            self.run_once()
            await asyncio.sleep(TICK_S)

    def run_once(self) -> None:
        """Stop overdue attempts."""
        if (lease := self._lease) is None:
            return
        now_s = self.clock.monotonic()
        records = [attempt.record for attempt in self.active.attempt_by_id.values() if not attempt.stopping]
        for attempt_id in overdue_attempts(records, self.devices(), lease, now_s=now_s):
            silent_s = now_s - lease.asked_at_s
            self.stop(attempt_id, LeaseEndedError(f"the farm has not answered for {silent_s:.0f} s"))
