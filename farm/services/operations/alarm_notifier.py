"""Notify people of alarms, by all channels that the farm's settings name."""

from collections import defaultdict
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
    that channel, some times; it gets the later ones at the next call. A channel that hangs therefore delays
    what is raised in the meantime by one attempt, not by one for each alarm. A farm that is killed after a
    channel took an alarm and before that was noted tells twice.
    """

    database: Database
    channels: Sequence[AlarmChannel]
    clock: Clock
    #: The address of the farm's pages; None where no setting says it.
    pages_url: str | None = None
    #: By alarm: the channels that took one that another channel did not take yet.
    _taken: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def __call__(self) -> None:
        """Tell of each alarm that is due, oldest first."""
        due = list(iter(self._claim, None))
        if not due:
            return
        # Chosen before any channel takes one: what all have taken is forgotten.
        untaken = [
            [alarm for alarm in due if channel.name not in self._taken[alarm.alarm_id]]
            for channel in self.channels
        ]
        with ThreadPoolExecutor(len(self.channels)) as threads:
            ends = list(threads.map(self._tell, self.channels, untaken))
        failed = [alarm_id for alarm_id in ends if alarm_id is not None]
        left = [alarm.alarm_id for alarm in due if failed and alarm.alarm_id > min(failed)]
        if untried := set(left).difference(failed):
            self.database.write(alarms.release_alarms_to_notify, untried)

    def _claim(self) -> Alarm | None:
        return self.database.write(bind_tx(alarms.claim_alarm_to_notify, now=self.clock.now()))

    def _tell(self, channel: AlarmChannel, due: Sequence[Alarm]) -> int | None:
        """Tell of alarms by one channel until it does not take one; return the id of that one.

        The last channel that takes an alarm notes it.
        """
        for alarm in due:
            if not self._take(channel, alarm):
                return alarm.alarm_id
            taken = self._taken[alarm.alarm_id]
            taken.add(channel.name)
            if len(taken) == len(self.channels):
                self._taken.pop(alarm.alarm_id, None)
                self.database.write(bind_tx(alarms.record_notified, now=self.clock.now()), alarm.alarm_id)
        return None

    def _take(self, channel: AlarmChannel, alarm: Alarm) -> bool:
        link = None if self.pages_url is None else f"{self.pages_url.rstrip('/')}{alarm.page}"
        try:
            channel.send(AlarmMessage(**asdict(alarm), link=link))
        except AlarmNotTakenError as error:
            _log.warning(f"alarm_{channel.name}_failed", alarm_id=alarm.alarm_id, error=str(error))
            return False
        return True
