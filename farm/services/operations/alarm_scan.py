"""Scan the farm for what an operator should see to: raise alarms, and clear them when it is over."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.devices.device import Admin
from farm.core.operations.alarm import AlarmKey, AlarmKind, AlarmRules, AlarmSubject
from farm.database.transaction import Tx
from farm.services.operations.missing import CLAIM_CLASH_DURATION, device_findings, host_findings
from farm.services.operations.stalled_work import overdue_findings, standing_findings, starved_findings
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.operations import alarms as alarm_store
from farm.store.results.recurrence import result_times, series_after

#: The number of series that one round examines.
_SERIES_AT_ONCE = 50
_OVER_CAUSE = "it is over"

#: Alarms that each round evaluates as a whole; others are cleared by the code that raises them.
_SCANNED_KINDS = frozenset(
    {
        (AlarmKind.DEVICE_SILENT, AlarmSubject.DEVICE),
        (AlarmKind.DEVICE_UNAUTHORIZED, AlarmSubject.DEVICE),
        (AlarmKind.IDENTITY_CLASH, AlarmSubject.DEVICE),
        (AlarmKind.HOST_INCIDENT, AlarmSubject.HOST),
        (AlarmKind.CELL_SILENT, AlarmSubject.CELL),
        (AlarmKind.CELL_SILENT, AlarmSubject.STANDING_MATRIX),
    }
)
_SERIES = (AlarmKind.CELL_SILENT, AlarmSubject.SERIES)


@dataclass(slots=True, kw_only=True)
class AlarmScan:
    """The looking over, from round to round; `look` is a service."""

    rules: AlarmRules
    #: The last series that was examined.
    _series_id: int = 0

    def look(self, connection: Connection, *, now: datetime, up_since: datetime) -> None:
        """Make one round."""
        fleet = devices.list_devices(connection)
        open_keys = {alarm.key for alarm in alarm_store.open_alarms(connection)}
        findings = [
            *device_findings(Tx(connection, now), fleet, self.rules, raised=open_keys, up_since=up_since),
            *host_findings(Tx(connection, now), fleet, self.rules, raised=open_keys, up_since=up_since),
            *starved_findings(Tx(connection, now), self.rules, raised=open_keys, up_since=up_since),
            *standing_findings(connection),
        ]
        _clear_others(Tx(connection, now), {finding.key for finding in findings}, up_since=up_since)
        _clear_of_retired(Tx(connection, now), fleet)
        open_keys = _known_alarms(Tx(connection, now))
        for finding in findings:
            if finding.key not in open_keys:
                alarm_store.add_alarm(Tx(connection, now), finding)
        self._scan_series(connection, now=now)

    def _scan_series(self, connection: Connection, *, now: datetime) -> None:
        """Evaluate the alarms of series, and the next few series. At most one per matrix name is raised."""
        for alarm in alarm_store.open_alarms(connection):
            if (alarm.kind, alarm.subject) == _SERIES and not list(
                overdue_findings(Tx(connection, now), [int(alarm.subject_id)])
            ):
                alarm_store.clear_alarm(Tx(connection, now), alarm.key, cause=_OVER_CAUSE)
        ids = series_after(connection, self._series_id, limit=_SERIES_AT_ONCE)
        self._series_id = ids[-1] if len(ids) == _SERIES_AT_ONCE else 0
        names = self._names_with_alarm(connection, now)
        for series, finding in overdue_findings(Tx(connection, now), ids):
            if series.matrix_name not in names:
                names.add(series.matrix_name)
                alarm_store.add_alarm(Tx(connection, now), finding)

    def _names_with_alarm(self, connection: Connection, now: datetime) -> set[str]:
        of_series = [int(key[2]) for key in _known_alarms(Tx(connection, now)) if key[:2] == _SERIES]
        results = result_times(connection, of_series, since=now - timedelta(days=365))
        return {series.matrix_name for series in results}


def _clear_others(tx: Tx, keys: Collection[AlarmKey], *, up_since: datetime) -> None:
    for alarm in alarm_store.open_alarms(tx.connection):
        # While the farm was down, no host could report that a phone is claimed twice.
        is_unsaid = alarm.kind is AlarmKind.IDENTITY_CLASH and tx.now - up_since < CLAIM_CLASH_DURATION
        if (alarm.kind, alarm.subject) in _SCANNED_KINDS and alarm.key not in keys and not is_unsaid:
            alarm_store.clear_alarm(tx.by("farm"), alarm.key, cause=_OVER_CAUSE)


def _clear_of_retired(tx: Tx, fleet: Sequence[Device]) -> None:
    """Clear the alarms of what is retired: no check or recovery would end them any more."""
    retired = {device.device_id for device in fleet if device.admin is Admin.RETIRED}
    for alarm in alarm_store.open_alarms(tx.connection):
        if alarm.subject is AlarmSubject.DEVICE and alarm.subject_id in retired:
            alarm_store.clear_alarm(tx.by("farm"), alarm.key, cause="the phone is retired")


def _known_alarms(tx: Tx) -> set[AlarmKey]:
    """Return the alarms that are raised already: open, or cleared by a person a short while ago."""
    acknowledged = alarm_store.acknowledged_alarms(tx)
    return {alarm.key for alarm in alarm_store.open_alarms(tx.connection)} | acknowledged
