"""Whether this machine's clock and the database server's agree."""

from datetime import UTC, datetime, timedelta

import structlog
from sqlalchemy.engine import Connection

from farm.clock import Clock
from farm.core.errors import FarmBusy
from farm.core.jobs.timeouts import CLOCK_TOLERANCE

_log = structlog.get_logger(__name__)


def clock_offset(connection: Connection, clock: Clock) -> timedelta:
    """How far this machine's clock is ahead of the database server's, for certain; SQLite has no other clock.

    What the question may have taken on its way is in favour of agreement.
    """
    if connection.dialect.name == "sqlite":
        return timedelta(0)
    before = clock.now()
    epoch_s = connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())").scalar_one()
    theirs = datetime.fromtimestamp(float(epoch_s), UTC)
    if theirs < before:
        return before - theirs
    return min(timedelta(0), clock.now() - theirs)


class ClockCheck:
    """What the last look at both clocks came to.

    Farm processes on several machines date what they do with clocks of their own. Where one is wrong, its
    agents' leases would end too early or too late, so a process that is too far off serves no agents and does
    no duties until the clocks agree again.
    """

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    @property
    def agrees(self) -> bool:
        """Whether what this process dates can be compared with what others date."""
        return abs(self.ahead) <= CLOCK_TOLERANCE

    def look(self, connection: Connection, clock: Clock) -> bool:
        """Compare the clocks; whether they agree."""
        did_agree = self.agrees
        self.ahead = clock_offset(connection, clock)
        if not self.agrees:
            _log.error("clock_off", ahead_s=self.ahead.total_seconds(), hint=_HINT)
        elif not did_agree:
            _log.info("clock_agrees_again", ahead_s=self.ahead.total_seconds())
        return self.agrees

    def demand(self) -> None:
        """Refuse to date anything while the clocks disagree.

        Raises:
            FarmBusy: they do.
        """
        if not self.agrees:
            raise FarmBusy(
                f"this farm process's clock is {self.ahead.total_seconds():+.0f} s off its database's",
                hint=_HINT,
            )


_HINT = "have NTP set the clocks of the farm's machines and of the database's; agents wait meanwhile"
