"""Notify people of alarms, by all channels that the farm's settings name."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field

import structlog

from farm.clock import Clock
from farm.core.operations.alarm import Alarm, AlarmMessage
from farm.database.engine import Database
from farm.database.transaction import bind_tx
from farm.services.operations.alarm_channels import AlarmChannel, AlarmNotTakenError
from farm.store.operations import alarms

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AlarmNotifier:
    """Calling it tells of what is due, by all channels at the same time. It blocks until the slowest is done.

    An alarm that all channels took is never told again. One that a channel did not take is tried again by
    that channel, some times. A farm that is killed after a channel took an alarm and before that was noted
    tells twice.
    """

    database: Database
    channels: Sequence[AlarmChannel]
    clock: Clock
    #: The address of the farm's pages; None where no setting says it.
    pages_url: str | None = None
    #: By alarm: the channels that took one that another channel did not take yet.
    _taken: dict[int, set[str]] = field(default_factory=dict)

    def __call__(self) -> None:
        """Tell of each alarm that is due, oldest first."""
        due = list(iter(self._claim, None))
        if not due:
            return
        with ThreadPoolExecutor(len(self.channels)) as threads:
            # Reading the results raises what a thread raised.
            list(threads.map(lambda channel: self._tell(channel, due), self.channels))

    def _claim(self) -> Alarm | None:
        return self.database.write(bind_tx(alarms.claim_alarm_to_notify, now=self.clock.now()))

    def _tell(self, channel: AlarmChannel, due: Sequence[Alarm]) -> None:
        """Tell of alarms by one channel. The last channel that takes an alarm notes it."""
        for alarm in due:
            taken = self._taken.setdefault(alarm.alarm_id, set())
            if channel.name in taken or not self._take(channel, alarm):
                continue
            taken.add(channel.name)
            if len(taken) == len(self.channels):
                self._taken.pop(alarm.alarm_id, None)
                self.database.write(bind_tx(alarms.record_notified, now=self.clock.now()), alarm.alarm_id)

    def _take(self, channel: AlarmChannel, alarm: Alarm) -> bool:
        link = None if self.pages_url is None else f"{self.pages_url.rstrip('/')}{alarm.page}"
        try:
            channel.send(AlarmMessage(**asdict(alarm), link=link))
        except AlarmNotTakenError as error:
            _log.warning(f"alarm_{channel.name}_failed", alarm_id=alarm.alarm_id, error=str(error))
            return False
        return True
