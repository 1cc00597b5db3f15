"""What the farm does by itself every few seconds: in one process of it at a time."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.clock import Clock
from farm.core.jobs.leader_lease import LeaseDecision
from farm.core.jobs.timeouts import DEFAULT_TIMEOUTS, AgentTimeouts
from farm.database.clock_skew import ClockCheck
from farm.services.devices.admin import cancel_jobs_of_retired
from farm.services.devices.reservations import end_overdue_reservations
from farm.services.periodic.periodic_scan import PeriodicScan
from farm.services.periodic.reaper import reap
from farm.services.upkeep.device_actions import expire_device_actions
from farm.store.operations.leader_leases import acquire_lease, release_lease

LEASE_NAME = "periodic"
#: A tick that is later than this many intervals tells that the farm, or its database, stood still.
_MISSED_TICKS = 3
#: A holder that missed this many ticks is replaced.
_LEASE_TICKS = 3


def serving_period_since(up_since: datetime, *, every_s: float) -> "ServingPeriod":
    """For a process that has been serving since a moment, and ticks every so often."""
    return ServingPeriod(up_since, up_since, timedelta(seconds=_MISSED_TICKS * every_s))


@dataclass(slots=True)
class ServingPeriod:
    """Since when agents could reach the farm without a break: before that, nobody was late (I10).

    A process that was stopped, a database that was locked and a wall clock that jumped all look alike: too
    much, or less than no, time between two ticks that got through.
    """

    since: datetime
    at: datetime
    patience: timedelta

    def reached(self, now: datetime) -> datetime:
        """Note a tick; since when the farm has been serving."""
        if not timedelta(0) <= now - self.at <= self.patience:
            self.since = now
        self.at = now
        return self.since


@dataclass(slots=True, kw_only=True)
class PeriodicLeader:
    """The part of one farm process in the periodic duties; `tick` is a service, run every `every_s` seconds.

    Whoever lets the duty lapse served agents, too, and stopped: so its successor counts the time that it
    serves from the moment it takes over (I10). Two that both believe they hold the duty do no harm: what is
    done is done by compare-and-set, in transactions that are put in an order.
    """

    #: Unique to each life of a process.
    process: str
    clock: Clock
    every_s: float
    serving: ServingPeriod
    patience: AgentTimeouts = DEFAULT_TIMEOUTS
    clock_check: ClockCheck = field(default_factory=ClockCheck)
    rounds: PeriodicScan = field(default_factory=PeriodicScan)
    _held_until: datetime | None = None

    @property
    def is_leader(self) -> bool:
        """Whether this process has the duties, for all it knows."""
        return self._held_until is not None and self.clock.now() < self._held_until

    def tick(self, connection: Connection) -> LeaseDecision:
        """Take the duties or keep them, and do what is due; only note the time where another has them."""
        # On the writer's thread: the time a tick had to wait for the database counts as a break.
        now = self.clock.now()
        up_since = self.serving.reached(now)
        whose = self._turn(connection, now)
        if whose is LeaseDecision.ELSEWHERE:
            self._held_until = None
            return whose
        self._held_until = now + self._lease
        if whose is LeaseDecision.TAKEN:
            self.serving.since = up_since = now
        self.do(connection, now, up_since)
        return whose

    def resign(self, connection: Connection) -> None:
        """Let another process have the duties at once."""
        release_lease(connection, LEASE_NAME, self.process, now=self.clock.now())
        self._held_until = None

    @property
    def _lease(self) -> timedelta:
        return timedelta(seconds=_LEASE_TICKS * self.every_s)

    def _turn(self, connection: Connection, now: datetime) -> LeaseDecision:
        if not self.clock_check.look(connection, self.clock):
            return LeaseDecision.ELSEWHERE
        return acquire_lease(connection, LEASE_NAME, self.process, now=now, duration=self._lease)

    def do(self, connection: Connection, now: datetime, up_since: datetime) -> None:
        """Do what is due, whoever has the duties."""
        reap(connection, now=now, up_since=up_since, patience=self.patience)
        expire_device_actions(connection, now=now, up_since=up_since)
        end_overdue_reservations(connection, now=now)
        cancel_jobs_of_retired(connection, now=now)
        self.rounds.make(connection, now=now, up_since=up_since)
