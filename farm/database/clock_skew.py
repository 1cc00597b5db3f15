"""Comparison of this machine's clock with the database server's."""

from datetime import UTC, datetime, timedelta

import structlog
from sqlalchemy.engine import Connection

from farm.clock import ADOPT_AFTER_S, Clock
from farm.core.errors import FarmBusy
from farm.core.jobs.timeouts import CLOCK_TOLERANCE

_log = structlog.get_logger(__name__)


def clock_offset(connection: Connection, clock: Clock) -> timedelta:
    """Return how far this machine's clock is at least ahead of the database server's; 0 on SQLite.

    The round trip of the query counts in favour of agreement.
    """
    if connection.dialect.name == "sqlite":
        return timedelta(0)
    before = clock.now()
    epoch_s = connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())").scalar_one()
    server_time = datetime.fromtimestamp(float(epoch_s), UTC)
    if server_time < before:
        return before - server_time
    return min(timedelta(0), clock.now() - server_time)


class ClockCheck:
    """The result of the last comparison of both clocks.

    Farm processes on several machines record times by their own clocks. Where one is wrong, the leases of its
    agents would end too early or too late, so a process that is too far off writes nothing until the clocks
    agree again.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ahead = timedelta(0)
        self._off_since_s: float | None = None

    @property
    def agrees(self) -> bool:
        """True if times of this process can be compared with times of other processes."""
        return abs(self.ahead) <= CLOCK_TOLERANCE

    def look(self, connection: Connection) -> bool:
        """Compare the clocks and return True if they agree."""
        did_agree, self.ahead = self.agrees, clock_offset(connection, self._clock)
        now_s = self._clock.monotonic()
        if self.agrees or self._off_since_s is None:
            self._off_since_s = None if self.agrees else now_s
        elif now_s - self._off_since_s >= ADOPT_AFTER_S:
            # The wall clock may have been corrected, or this machine was suspended. Not at once: the database
            # may be on this machine, and its wall clock wrong for a moment.
            self._clock.adopt_step()
            self.ahead = clock_offset(connection, self._clock)
        if did_agree and not self.agrees:
            _log.error("clock_off", ahead_s=self.ahead.total_seconds(), hint=_HINT)
        elif self.agrees and not did_agree:
            _log.info("clock_agrees_again", ahead_s=self.ahead.total_seconds())
        return self.agrees

    def compare(self, connection: Connection) -> None:
        """Compare the clocks at the beginning of a transaction that writes.

        Raises:
            FarmBusy: the clocks disagree.
        """
        self.look(connection)
        self.demand()

    def demand(self) -> None:
        """Refuse to record times while the clocks disagree.

        Raises:
            FarmBusy: the clocks disagree.
        """
        if not self.agrees:
            raise FarmBusy(
                f"this farm process's clock is {self.ahead.total_seconds():+.0f} s off its database's",
                hint=_HINT,
            )


_HINT = "synchronize the clocks of the farm's machines and of the database server by NTP; this process waits"
