"""Check whether what ran before, or how late in its block, shows in the times that a device measures."""

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.clock import Clock
from farm.core.base.ids import CellId, DeviceId, MatrixId, SeriesId
from farm.core.operations.alarm import AlarmKind, AlarmSubject, DueAlarm
from farm.core.results.pairing import BlockKey, block_key
from farm.core.results.statistics.order_effect import MIN_BLOCKS, OrderedStart, OrderEffect, OrderEffectKind
from farm.core.results.statistics.pair_distance import restarted_between
from farm.core.runs.measurement import COUNTED
from farm.database.engine import Database
from farm.database.transaction import Tx
from farm.store.devices.devices import find_device
from farm.store.jobs.run_order import PastRun, last_runs, measured_devices
from farm.store.operations import alarms as alarm_store

#: The newest matrices and runs of a device that count.
MATRICES, RUNS = 3, 2000
#: A device is checked so often at most, and so many of them one after another.
EVERY = timedelta(hours=1)
DEVICES_AT_ONCE = 5
#: Measurements that are looked through for devices that measured.
_MEASUREMENTS = 5000
_HINT = (
    "let it cool down before each run: lower `max_skin_c` or `max_battery_c` below `gates:` in the matrix,"
    " and raise `wait_s`; or measure what heats it in a matrix of its own"
)


@dataclass(slots=True, kw_only=True)
class OrderCheck:
    """Calling it checks the next devices that measured something since their last check, and blocks.

    Runs are read, and tested, outside of the transaction that raises or clears an alarm.
    """

    database: Database
    clock: Clock
    #: So many of the newest of a device count.
    matrices: int = MATRICES
    _newest_measurement: int = 0
    #: Those that measured since their last check, longest waiting first.
    _waiting: dict[DeviceId, None] = field(default_factory=dict)
    _checked_at: dict[DeviceId, datetime] = field(default_factory=dict)

    def __call__(self) -> None:
        """Check the next few devices."""
        # It imports numpy, which no other service needs.
        from farm.core.results.statistics.carry_over import order_effects

        now = self.clock.now()
        self._newest_measurement, measured = self.database.read(
            measured_devices, after=self._newest_measurement, at_most=_MEASUREMENTS
        )
        self._waiting |= dict.fromkeys(measured)
        due = [device_id for device_id in self._waiting if self._is_due(device_id, now)]
        for device_id in due[:DEVICES_AT_ONCE]:
            del self._waiting[device_id]
            self._checked_at[device_id] = now
            runs = self.database.read(last_runs, device_id, limit=RUNS)
            effects = order_effects(starts_of(runs, matrices=self.matrices))
            if effects:
                self.database.write(_apply, now, device_id, effects, _labels(runs))

    def _is_due(self, device_id: DeviceId, now: datetime) -> bool:
        checked_at = self._checked_at.get(device_id)
        # A clock that went back makes it due.
        return checked_at is None or not timedelta(0) <= now - checked_at < EVERY


def starts_of(runs: Sequence[PastRun], *, matrices: int = MATRICES) -> list[OrderedStart]:
    """Return the benchmarks among runs; those of the newest matrices with enough blocks have times."""
    blocks: defaultdict[MatrixId, set[BlockKey]] = defaultdict(set)
    series_by_cell: dict[CellId, SeriesId] = {}
    for run in runs:
        if run.matrix_id is not None:
            blocks[run.matrix_id].add(block_key(run))
        if run.cell_id is not None and run.series_id is not None:
            series_by_cell[run.cell_id] = run.series_id
    large = sorted(matrix_id for matrix_id, own in blocks.items() if len(own) >= MIN_BLOCKS)
    newest = large[-matrices:]
    starts = []
    for before, run in zip([None, *runs], runs, strict=False):
        if run.matrix_id is not None and run.cell_id is not None:
            starts.append(
                OrderedStart(
                    matrix=run.matrix_id,
                    cell=run.cell_id,
                    series=series_by_cell.get(run.cell_id),
                    block=block_key(run),
                    log=_log(run) if run.matrix_id in newest else None,
                    follows=before is not None and _is_right_before(before, run),
                )
            )
    return starts


def _log(run: PastRun) -> float | None:
    is_counted = run.quality in COUNTED and run.value_ns is not None and run.value_ns > 0
    return math.log(run.value_ns) if is_counted and run.value_ns is not None else None


def _is_right_before(before: PastRun, run: PastRun) -> bool:
    return before.matrix_id is not None and not restarted_between(before.boot_id, run.boot_id)


def _labels(runs: Sequence[PastRun]) -> dict[Hashable, str]:
    """Return by series the label and matrix of its newest cell; of duplicates that of their baseline."""
    newest: dict[SeriesId, tuple[MatrixId, str]] = {}
    for run in runs:
        if run.series_id is not None and run.matrix_id is not None and run.label is not None:
            matrix_id, label = newest.get(run.series_id, (run.matrix_id, run.label))
            if run.matrix_id > matrix_id or len(run.label) < len(label):
                matrix_id, label = run.matrix_id, run.label
            newest[run.series_id] = matrix_id, label
    return {series: f"{label} (matrix {matrix_id})" for series, (matrix_id, label) in newest.items()}


def _apply(
    connection: Connection,
    now: datetime,
    device_id: DeviceId,
    effects: Sequence[OrderEffect],
    labels: Mapping[Hashable, str],
) -> None:
    """Raise the alarm of a device, or clear it."""
    tx = Tx(connection, now)
    device = find_device(connection, device_id)
    alarming = next((effect for effect in effects if effect.is_alarming), None)
    if alarming is not None and device is not None:
        alarm = DueAlarm(
            kind=AlarmKind.ORDER_SHOWS,
            subject=AlarmSubject.DEVICE,
            subject_id=device_id,
            message=f"{device.name}: {effect_text(alarming, labels)}",
            hint=_HINT,
        )
        # A person who cleared it knows of it.
        if alarm.key not in alarm_store.acknowledged_alarms(tx):
            alarm_store.add_alarm(tx, alarm)
    elif all(effect.is_over for effect in effects):
        cause = "the newest matrices do not show it any more"
        key = AlarmKind.ORDER_SHOWS, AlarmSubject.DEVICE, device_id
        alarm_store.clear_alarm(tx.by("farm"), key, cause=cause)


def effect_text(effect: OrderEffect, labels: Mapping[Hashable, str]) -> str:
    """Return `runs after int8 (matrix 7) take 3.1 % longer (2.4 to 3.8 %, 30 runs)`."""
    size = f"{100 * abs(effect.effect):.1f} % {'longer' if effect.effect > 0 else 'less'}"
    low, high = sorted(
        100 * abs(end) if end * effect.effect > 0 else 0.0 for end in (effect.low, effect.high)
    )
    bounds = f"{low:.1f} to {high:.1f} %"
    if effect.kind is OrderEffectKind.PLACE:
        longer = f"the last runs of a block take {size} than its first ({bounds}, {effect.count} blocks)"
        return f"{longer}, which moves ratios by up to {100 * abs(effect.moved):.1f} %"
    label = labels.get(effect.series, "one series")
    return f"runs after {label} take {size} than after others ({bounds}, {effect.count} runs)"
