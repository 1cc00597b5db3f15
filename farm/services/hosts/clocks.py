"""The clocks of hosts: how far they are from the farm's, and the alarm of one that is too far off."""

from farm.clock import ADOPT_AFTER_S
from farm.core.base.ids import HostId
from farm.core.base.units import elapsed_text
from farm.core.operations.alarm import AlarmKind, AlarmSubject, DueAlarm
from farm.core.operations.host_clock import ClockDifference
from farm.database.transaction import Tx
from farm.store.hosts import hosts
from farm.store.operations.alarms import acknowledged_alarms, add_alarm, clear_alarm

_KIND, _SUBJECT = AlarmKind.CLOCK_STEPPED, AlarmSubject.HOST


def record_host_clock(tx: Tx, host_id: HostId, difference: ClockDifference) -> None:
    """Record how far a host's clock is from the farm's; raise the alarm where it is off, or clear it."""
    hosts.put_host_clock(tx, host_id, difference)
    if not difference.is_off:
        end_clock_alarm(tx, host_id, cause="its clock agrees with the farm's")
        return
    alarm = _alarm(host_id, difference)
    if alarm.key not in acknowledged_alarms(tx):
        add_alarm(tx, alarm)


def end_clock_alarm(tx: Tx, host_id: HostId, *, cause: str) -> None:
    """Clear the alarm of a host's clock, if one is open."""
    clear_alarm(tx.by("farm"), (_KIND, _SUBJECT, host_id), cause=cause)


def _alarm(host_id: HostId, difference: ClockDifference) -> DueAlarm:
    way = "ahead of" if difference.ahead_s > 0 else "behind"
    lag = f"{elapsed_text(abs(difference.ahead_s))} {way} the farm's"
    return DueAlarm(
        kind=_KIND,
        subject=_SUBJECT,
        subject_id=host_id,
        message=f"{host_id}: its clock is {lag}; times in its reports are off, and nothing else is",
        hint=f"run NTP on {host_id} and on the farm's machine. An agent takes a new time over after"
        f" {elapsed_text(ADOPT_AFTER_S)}, or when it is started, and the alarm ends within a minute of that",
    )
