"""Periodic work of the farm, done by one of its processes at a time."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.clock import Clock
from farm.core.checks.check_schedule import CheckRules
from farm.core.jobs.timeouts import DEFAULT_TIMEOUTS, AgentTimeouts
from farm.core.operations.alarm import AlarmRules
from farm.core.operations.leader_lease import LeaseDecision
from farm.database.transaction import Tx
from farm.services.checks.periodic import queue_due_checks
from farm.services.devices.admin import cancel_jobs_of_retired
from farm.services.devices.reservations import end_overdue_reservations
from farm.services.operations.alarm_scan import AlarmScan
from farm.services.operations.alarms import report_step
from farm.services.periodic.reaper import reap
from farm.services.upkeep.device_actions import expire_device_actions
from farm.store.matrices.search import index_names
from farm.store.operations.leader_leases import acquire_lease, release_lease

LEASE_NAME = "periodic"
#: Matrices whose names one tick makes searchable; after an upgrade, there may be many.
_NAMES_AT_ONCE = 500
#: A tick that is later than this many intervals tells that the farm, or its database, stood still.
_MISSED_TICKS = 3
#: A holder that missed this many ticks is replaced.
_LEASE_TICKS = 3


def serving_period_since(up_since: datetime, *, every_s: float) -> "ServingPeriod":
    """Return the serving period of a process that serves since a moment, and ticks at this interval."""
    return ServingPeriod(up_since, up_since, timedelta(seconds=_MISSED_TICKS * every_s))


@dataclass(slots=True)
class ServingPeriod:
    """The time since when agents could reach the farm without a break: before that, none was late (I10).

    A process that was stopped, a database that was locked and a wall clock that jumped all look alike: too
    much, or less than no, time between two ticks that got through.
    """

    since: datetime
    at: datetime
    longest_gap: timedelta

    def reached(self, now: datetime) -> datetime:
        """Note a tick; since when the farm has been serving."""
        if not timedelta(0) <= now - self.at <= self.longest_gap:
            self.since = now
        self.at = now
        return self.since


SCAN_INTERVAL = timedelta(minutes=1)


@dataclass(slots=True, kw_only=True)
class PeriodicScan:
    """Periodic scans of one process; only the leader makes them."""

    checks: CheckRules = field(default_factory=CheckRules)
    alarms: AlarmScan = field(default_factory=lambda: AlarmScan(rules=AlarmRules()))
    _made_at: datetime | None = None

    def make(self, connection: Connection, *, now: datetime, up_since: datetime) -> None:
        """Make a round, unless one was made within the minute; a clock that went back makes it due."""
        if self._made_at is not None and timedelta(0) <= now - self._made_at < SCAN_INTERVAL:
            return
        queue_due_checks(Tx(connection, now), self.checks)
        self.alarms.look(connection, now=now, up_since=up_since)
        self._made_at = now


@dataclass(slots=True, kw_only=True)
class PeriodicLeader:
    """The part of one farm process in the periodic work; `tick` is a service, run every `every_s` seconds.

    A leader that lets its lease lapse served agents, too, and stopped: so its successor counts the time it
    serves from the moment it takes over (I10). Two that both believe they are the leader do no harm: what is
    done is done by compare-and-set, in transactions that are put in an order.
    """

    #: Unique to each life of a process.
    process: str
    clock: Clock
    every_s: float
    serving: ServingPeriod
    timeouts: AgentTimeouts = DEFAULT_TIMEOUTS
    rounds: PeriodicScan = field(default_factory=PeriodicScan)
    _held_until_s: float | None = None
    #: As reported; None before the first tick, because an earlier process may have left an alarm.
    _is_clock_stepped: bool | None = None

    @property
    def is_leader(self) -> bool:
        """Tell whether this process is the leader, as far as it knows."""
        return self._held_until_s is not None and self.clock.monotonic() < self._held_until_s

    def tick(self, connection: Connection) -> LeaseDecision:
        """Acquire or renew the lease, and do what is due; only note the time where another process has it."""
        # On the writer's thread: the time a tick had to wait for the database counts as a break.
        now = self.clock.now()
        up_since = self.serving.reached(now)
        self._watch_clock(Tx(connection, now))
        lease = timedelta(seconds=_LEASE_TICKS * self.every_s)
        decision = acquire_lease(Tx(connection, now), LEASE_NAME, self.process, duration=lease)
        if decision is LeaseDecision.ELSEWHERE:
            self._held_until_s = None
            return decision
        self._held_until_s = self.clock.monotonic() + lease.total_seconds()
        if decision is LeaseDecision.ACQUIRED:
            self.serving.since = up_since = now
        self.do(connection, now, up_since)
        return decision

    def resign(self, connection: Connection) -> None:
        """Release the lease, so that another process can have it at once."""
        release_lease(Tx(connection, self.clock.now()), LEASE_NAME, self.process)
        self._held_until_s = None

    def _watch_clock(self, tx: Tx) -> None:
        """Report the step of this machine's clock, whichever process is the leader, when it changes."""
        step_s = self.clock.step_s()
        if bool(step_s) is not self._is_clock_stepped:
            report_step(tx, self.process.partition(":")[0], step_s)
            self._is_clock_stepped = bool(step_s)

    def do(self, connection: Connection, now: datetime, up_since: datetime) -> None:
        """Do what is due, whichever process is the leader."""
        reap(Tx(connection, now), up_since=up_since, timeouts=self.timeouts)
        expire_device_actions(Tx(connection, now), up_since=up_since)
        end_overdue_reservations(Tx(connection, now))
        cancel_jobs_of_retired(Tx(connection, now))
        index_names(Tx(connection, now), limit=_NAMES_AT_ONCE)
        self.rounds.make(connection, now=now, up_since=up_since)
