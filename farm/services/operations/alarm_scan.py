"""Looks the farm over for what somebody should see to: raises the alarms, and clears them when it is over."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.devices.device import Admin
from farm.core.operations.alarm import AlarmFinding, AlarmKey, AlarmKind, AlarmRules, AlarmSubject
from farm.services.operations.alarms import seen_to
from farm.services.operations.missing_devices import CLASH_LASTS, device_findings
from farm.services.operations.missing_hosts import host_findings
from farm.services.operations.stalled_work import overdue_findings, starved_findings
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.operations import alarms
from farm.store.operations.alarms import Alarm
from farm.store.results.recurrence import results_of, series_after

#: How many series one round looks at.
_SERIES_AT_ONCE = 50
_OVER = "it is over"

#: What each round judges anew as a whole; other alarms are cleared by who raises them.
_JUDGED = frozenset(
    {
        (AlarmKind.DEVICE_SILENT, AlarmSubject.DEVICE),
        (AlarmKind.DEVICE_UNAUTHORIZED, AlarmSubject.DEVICE),
        (AlarmKind.IDENTITY_CLASH, AlarmSubject.DEVICE),
        (AlarmKind.HOST_TROUBLE, AlarmSubject.HOST),
        (AlarmKind.CELL_SILENT, AlarmSubject.CELL),
    }
)
_SERIES = (AlarmKind.CELL_SILENT, AlarmSubject.SERIES)


@dataclass(slots=True, kw_only=True)
class AlarmRounds:
    """The looking over, from round to round; `look` is a service."""

    rules: AlarmRules
    #: The last series that was looked at.
    _series_id: int = 0

    def look(self, connection: Connection, *, now: datetime, up_since: datetime) -> None:
        """One round."""
        phones = devices.list_devices(connection)
        told = {_key(alarm) for alarm in alarms.open_alarms(connection)}
        found = [
            *device_findings(connection, phones, self.rules, told=told, now=now, up_since=up_since),
            *host_findings(connection, phones, self.rules, told=told, now=now, up_since=up_since),
            *starved_findings(connection, self.rules, told=told, now=now, up_since=up_since),
        ]
        _clear_others(connection, {each.key for each in found}, now=now, up_since=up_since)
        _clear_of_retired(connection, phones, now=now)
        told = _known(connection, now)
        for each in found:
            if each.key not in told:
                _raise(connection, each, now=now)
        self._look_at_series(connection, now=now)

    def _look_at_series(self, connection: Connection, *, now: datetime) -> None:
        """Judge the alarms of series anew, and the next few series. One of a matrix's name is told of."""
        for alarm in alarms.open_alarms(connection):
            if (alarm.kind, alarm.subject) == _SERIES and not list(
                overdue_findings(connection, [int(alarm.subject_id)], now=now)
            ):
                alarms.clear_alarm(connection, alarm, now=now, actor="farm", cause=_OVER)
        ids = series_after(connection, self._series_id, limit=_SERIES_AT_ONCE)
        self._series_id = ids[-1] if len(ids) == _SERIES_AT_ONCE else 0
        told = self._names_told_of(connection, now)
        for series, finding in overdue_findings(connection, ids, now=now):
            if series.matrix_name not in told:
                told.add(series.matrix_name)
                _raise(connection, finding, now=now)

    def _names_told_of(self, connection: Connection, now: datetime) -> set[str]:
        of_series = [int(key[2]) for key in _known(connection, now) if key[:2] == _SERIES]
        found = results_of(connection, of_series, since=now - timedelta(days=365))
        return {each.matrix_name for each in found}


def _raise(connection: Connection, finding: AlarmFinding, *, now: datetime) -> None:
    alarms.add_alarm(
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
    for alarm in alarms.open_alarms(connection):
        # While the farm was down, nobody could say that a phone is claimed twice.
        is_unsaid = alarm.kind is AlarmKind.IDENTITY_CLASH and now - up_since < CLASH_LASTS
        if (alarm.kind, alarm.subject) in _JUDGED and _key(alarm) not in keys and not is_unsaid:
            alarms.clear_alarm(connection, alarm, now=now, actor="farm", cause=_OVER)


def _clear_of_retired(connection: Connection, phones: Sequence[Device], *, now: datetime) -> None:
    """Nobody will check or recover them any more, which is how some of their alarms would end."""
    retired = {device.device_id for device in phones if device.admin is Admin.RETIRED}
    for alarm in alarms.open_alarms(connection):
        if alarm.subject is AlarmSubject.DEVICE and alarm.subject_id in retired:
            alarms.clear_alarm(connection, alarm, now=now, actor="farm", cause="the phone is retired")


def _known(connection: Connection, now: datetime) -> set[AlarmKey]:
    """What is told of already: open, or cleared by a person a short while ago."""
    return {*map(_key, alarms.open_alarms(connection)), *seen_to(connection, now=now)}


def _key(alarm: Alarm) -> AlarmKey:
    return alarm.kind, alarm.subject, alarm.subject_id
