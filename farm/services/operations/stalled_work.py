"""Find work that does not go on though its phone could: idle queues, and series that were regular."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from shlex import quote

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.base.units import elapsed_text
from farm.core.devices.device import Blocker, blockers
from farm.core.operations.alarm import AlarmKey, AlarmKind, AlarmRules, AlarmSubject, DueAlarm
from farm.core.results.recurrence import find_overdue_interval
from farm.database.transaction import Tx
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.matrices.standing import blocked_standing_matrices
from farm.store.operations.event_log import health_since
from farm.store.results.recurrence import SeriesResults, result_times, starved_devices

#: The period in which regular results are searched for.
_LOOK_BACK = timedelta(days=90)
#: Events of a phone that works.
_AT_WORK_BLOCKERS = frozenset({Blocker.BUSY, Blocker.NOT_CLEANED})


def starved_findings(
    tx: Tx, rules: AlarmRules, *, raised: Collection[AlarmKey], up_since: datetime
) -> Iterator[DueAlarm]:
    """Yield the cells at the head of a queue that does not move, on devices that could have worked.

    of those in `raised`, all that do not move yet.
    """
    before = tx.now - rules.work_after
    for starved in starved_devices(tx.connection, queued_before=before):
        device = devices.get_device(tx.connection, starved.device_id)
        good_since = health_since(tx.connection, starved.device_id)
        if not could_work(device) or good_since is None or good_since > before:
            continue
        lasts = elapsed_text((tx.now - starved.queued_at).total_seconds())
        finding = DueAlarm(
            kind=AlarmKind.CELL_SILENT,
            subject=AlarmSubject.CELL,
            subject_id=str(starved.cell_id),
            message=f"{starved.label} on {device.name} waits for {lasts}, and nothing ended there since",
            hint=f"farm job show {starved.job_id} says what it waits for",
        )
        if up_since <= before or finding.key in raised:
            yield finding


def standing_findings(connection: Connection) -> Iterator[DueAlarm]:
    """Yield the standing matrices that cannot go on."""
    for blocked in blocked_standing_matrices(connection):
        yield DueAlarm(
            kind=AlarmKind.CELL_SILENT,
            subject=AlarmSubject.STANDING_MATRIX,
            subject_id=str(blocked.standing_id),
            message=f"standing matrix {blocked.name}: {blocked.problem}",
            hint=f"`farm matrix standing {quote(blocked.name)}` says what it has, and with --end ends it;"
            " `farm matrix stand FILE` replaces it",
        )


def overdue_findings(tx: Tx, series_ids: Sequence[int]) -> Iterator[tuple[SeriesResults, DueAlarm]]:
    """Yield those of some series with regular results that are overdue, though their devices could work."""
    could: dict[DeviceId, bool] = {}
    for results in result_times(tx.connection, series_ids, since=tx.now - _LOOK_BACK):
        usual = find_overdue_interval(results.results_at, now=tx.now)
        if usual is None:
            continue
        device = devices.find_device(tx.connection, results.device_id)
        if device is None or not could.setdefault(results.device_id, could_work(device)):
            # The alarm of its phone is enough.
            continue
        every, lasts = (
            elapsed_text(duration.total_seconds()) for duration in (usual, tx.now - max(results.results_at))
        )
        had = f"{results.label} on {device.name} had a result every {every}, and none for {lasts}"
        yield (
            results,
            DueAlarm(
                kind=AlarmKind.CELL_SILENT,
                subject=AlarmSubject.SERIES,
                subject_id=str(results.series_id),
                message=f"matrix {results.matrix_name}: {had}",
                hint="is it still submitted, and its cell not excluded? farm matrix list; others of that"
                " matrix may be overdue, too",
            ),
        )


def could_work(device: Device) -> bool:
    """Tell whether a device can be given work, or has some."""
    return not set(blockers(device.state(), check=False)) - _AT_WORK_BLOCKERS
