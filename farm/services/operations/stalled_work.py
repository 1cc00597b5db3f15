"""Work that does not go on though its phone could: queues nobody works on, series that were regular."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.base.units import elapsed_text
from farm.core.devices.device import Blocker, blockers
from farm.core.operations.alarm import AlarmKey, AlarmKind, AlarmRules, AlarmSubject, DueAlarm
from farm.core.results.recurrence import find_overdue_interval
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.operations.event_history import health_since
from farm.store.results.recurrence import SeriesResults, result_times, starved_devices

#: How far back a habit is looked for.
_LOOK_BACK = timedelta(days=90)
#: What a phone does while it works.
_AT_WORK_BLOCKERS = frozenset({Blocker.BUSY, Blocker.NOT_CLEANED})


def starved_findings(
    connection: Connection,
    rules: AlarmRules,
    *,
    told: Collection[AlarmKey],
    now: datetime,
    up_since: datetime,
) -> Iterator[DueAlarm]:
    """Cells at the head of a queue that does not move, on phones that could have worked all the time.

    Of those that are `told` of already, all that do not move yet.
    """
    before = now - rules.work_after
    for each in starved_devices(connection, queued_before=before):
        device = devices.get_device(connection, each.device_id)
        good_since = health_since(connection, each.device_id)
        if not could_work(device) or good_since is None or good_since > before:
            continue
        lasts = elapsed_text((now - each.queued_at).total_seconds())
        finding = DueAlarm(
            kind=AlarmKind.CELL_SILENT,
            subject=AlarmSubject.CELL,
            subject_id=str(each.cell_id),
            message=f"{each.label} on {device.name} waits for {lasts}, and nothing ended there meanwhile",
            hint=f"farm job show {each.job_id} says what it waits for",
        )
        if up_since <= before or finding.key in told:
            yield finding


def overdue_findings(
    connection: Connection, series_ids: Sequence[int], *, now: datetime
) -> Iterator[tuple[SeriesResults, DueAlarm]]:
    """Those of some series that had results regularly and are overdue, though their phones could work."""
    could: dict[DeviceId, bool] = {}
    for found in result_times(connection, series_ids, since=now - _LOOK_BACK):
        usual = find_overdue_interval(found.results_at, now=now)
        if usual is None:
            continue
        device = devices.find_device(connection, found.device_id)
        if device is None or not could.setdefault(found.device_id, could_work(device)):
            # Its phone is told of.
            continue
        every, lasts = (elapsed_text(each.total_seconds()) for each in (usual, now - max(found.results_at)))
        had = f"{found.label} on {device.name} had a result every {every}, and none for {lasts}"
        yield (
            found,
            DueAlarm(
                kind=AlarmKind.CELL_SILENT,
                subject=AlarmSubject.SERIES,
                subject_id=str(found.series_id),
                message=f"matrix {found.matrix_name}: {had}",
                hint="is it still submitted, and its cell not excluded? farm matrix list; others of that"
                " matrix may be overdue, too",
            ),
        )


def could_work(device: Device) -> bool:
    """Whether a phone can be given work, or is at it."""
    return not set(blockers(device.state(), check=False)) - _AT_WORK_BLOCKERS
