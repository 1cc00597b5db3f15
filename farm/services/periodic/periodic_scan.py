"""What the farm looks over once a minute: phones that are due for a check, and what is an alarm."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.checks.check_schedule import CheckRules
from farm.core.operations.alarm import AlarmRules
from farm.services.checks.periodic import queue_due_checks
from farm.services.operations.alarm_scan import AlarmScan

SCAN_INTERVAL = timedelta(minutes=1)


@dataclass(slots=True, kw_only=True)
class PeriodicScan:
    """Rounds of one process; only the one that has the duties makes them."""

    checks: CheckRules = field(default_factory=CheckRules)
    alarms: AlarmScan = field(default_factory=lambda: AlarmScan(rules=AlarmRules()))
    _made_at: datetime | None = None

    def make(self, connection: Connection, *, now: datetime, up_since: datetime) -> None:
        """Make a round, unless one was made within the minute; a clock that went back makes it due."""
        if self._made_at is not None and timedelta(0) <= now - self._made_at < SCAN_INTERVAL:
            return
        queue_due_checks(connection, self.checks, now=now)
        self.alarms.look(connection, now=now, up_since=up_since)
        self._made_at = now
