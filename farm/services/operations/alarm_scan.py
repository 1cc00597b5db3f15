"""Looks the farm over for what somebody should see to: raises the alarms, and clears them when it is over."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.devices.device import Admin
from farm.core.operations.alarm import AlarmKey, AlarmKind, AlarmRules, AlarmSubject, DueAlarm
from farm.services.operations.alarms import acknowledged_alarms
from farm.services.operations.missing_devices import CLAIM_CLASH_DURATION, device_findings
from farm.services.operations.missing_hosts import host_findings
from farm.services.operations.stalled_work import overdue_findings, starved_findings
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.operations import alarms as alarm_store
from farm.store.operations.alarms import Alarm
from farm.store.results.recurrence import result_times, series_after

#: How many series one round looks at.
_SERIES_AT_ONCE = 50
_OVER_CAUSE = "it is over"

#: What each round judges anew as a whole; other alarms are cleared by who raises them.
_SCANNED_KINDS = frozenset(
    {
        (AlarmKind.DEVICE_SILENT, AlarmSubject.DEVICE),
        (AlarmKind.DEVICE_UNAUTHORIZED, AlarmSubject.DEVICE),
        (AlarmKind.IDENTITY_CLASH, AlarmSubject.DEVICE),
        (AlarmKind.HOST_INCIDENT, AlarmSubject.HOST),
        (AlarmKind.CELL_SILENT, AlarmSubject.CELL),
    }
)
_SERIES = (AlarmKind.CELL_SILENT, AlarmSubject.SERIES)


@dataclass(slots=True, kw_only=True)
class AlarmScan:
    """The looking over, from round to round; `look` is a service."""

    rules: AlarmRules
    #: The last series that was looked at.
    _series_id: int = 0

    def look(self, connection: Connection, *, now: datetime, up_since: datetime) -> None:
        """One round."""
        phones = devices.list_devices(connection)
        told = {_key(alarm) for alarm in alarm_store.open_alarms(connection)}
        found = [
            *device_findings(connection, phones, self.rules, told=told, now=now, up_since=up_since),
            *host_findings(connection, phones, self.rules, told=told, now=now, up_since=up_since),
            *starved_findings(connection, self.rules, told=told, now=now, up_since=up_since),
        ]
        _clear_others(connection, {each.key for each in found}, now=now, up_since=up_since)
        _clear_of_retired(connection, phones, now=now)
        told = _known_alarms(connection, now)
        for each in found:
            if each.key not in told:
                _raise(connection, each, now=now)
        self._scan_series(connection, now=now)

    def _scan_series(self, connection: Connection, *, now: datetime) -> None:
        """Judge the alarms of series anew, and the next few series. One of a matrix's name is told of."""
        for alarm in alarm_store.open_alarms(connection):
            if (alarm.kind, alarm.subject) == _SERIES and not list(
                overdue_findings(connection, [int(alarm.subject_id)], now=now)
            ):
                alarm_store.clear_alarm(connection, alarm, now=now, actor="farm", cause=_OVER_CAUSE)
        ids = series_after(connection, self._series_id, limit=_SERIES_AT_ONCE)
        self._series_id = ids[-1] if len(ids) == _SERIES_AT_ONCE else 0
        told = self._names_with_alarm(connection, now)
        for series, finding in overdue_findings(connection, ids, now=now):
            if series.matrix_name not in told:
                told.add(series.matrix_name)
                _raise(connection, finding, now=now)

    def _names_with_alarm(self, connection: Connection, now: datetime) -> set[str]:
        of_series = [int(key[2]) for key in _known_alarms(connection, now) if key[:2] == _SERIES]
        found = result_times(connection, of_series, since=now - timedelta(days=365))
        return {each.matrix_name for each in found}


def _raise(connection: Connection, finding: DueAlarm, *, now: datetime) -> None:
    alarm_store.add_alarm(
        connection,
        finding.kind,
        finding.subject,
        finding.subject_id,
        message=finding.message,
        hint=finding.hint,
        now=now,
    )


def _clear_others(
    connection: Connection, keys: Collection[AlarmKey], *, now: datetime, up_since: datetime
) -> None:
    for alarm in alarm_store.open_alarms(connection):
        # While the farm was down, nobody could say that a phone is claimed twice.
        is_unsaid = alarm.kind is AlarmKind.IDENTITY_CLASH and now - up_since < CLAIM_CLASH_DURATION
        if (alarm.kind, alarm.subject) in _SCANNED_KINDS and _key(alarm) not in keys and not is_unsaid:
            alarm_store.clear_alarm(connection, alarm, now=now, actor="farm", cause=_OVER_CAUSE)


def _clear_of_retired(connection: Connection, phones: Sequence[Device], *, now: datetime) -> None:
    """Nobody will check or recover them any more, which is how some of their alarms would end."""
    retired = {device.device_id for device in phones if device.admin is Admin.RETIRED}
    for alarm in alarm_store.open_alarms(connection):
        if alarm.subject is AlarmSubject.DEVICE and alarm.subject_id in retired:
            alarm_store.clear_alarm(connection, alarm, now=now, actor="farm", cause="the phone is retired")


def _known_alarms(connection: Connection, now: datetime) -> set[AlarmKey]:
    """What is told of already: open, or cleared by a person a short while ago."""
    return {*map(_key, alarm_store.open_alarms(connection)), *acknowledged_alarms(connection, now=now)}


def _key(alarm: Alarm) -> AlarmKey:
    return alarm.kind, alarm.subject, alarm.subject_id
