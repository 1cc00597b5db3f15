"""Record changes, each with one alarm at most; list them; and store what people say of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from statistics import median

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId
from farm.core.base.microseconds import to_microseconds
from farm.core.errors import NotFound
from farm.core.operations.alarm import AlarmKind, AlarmSubject, DueAlarm
from farm.core.operations.event import EventSubject, RetractionEvent
from farm.core.results.history.change_evidence import EvidencePoint, SeriesLevels, new_version
from farm.core.results.history.change_text import change_text, effect_bounds
from farm.core.results.history.confirmation import Confirmation, ConfirmationOutcome
from farm.core.results.history.recorded_change import (
    ChangeCause,
    ChangedSeries,
    ChangeState,
    FoundChange,
    RecordedChange,
)
from farm.core.results.statistics.interval import bounded_exp
from farm.database.transaction import Tx
from farm.services.results.history.change_sessions import DAY_US, levels_around
from farm.services.results.history.chosen_cells import candidate_filter
from farm.store.devices.devices import device_labels
from farm.store.matrices.search import MatrixFilter, with_few_matches
from farm.store.operations.alarms import add_alarm, clear_alarm
from farm.store.operations.event_log import last_events
from farm.store.operations.events import record_event
from farm.store.results.history import changes as change_store
from farm.store.results.history.changes import ChangeFilter
from farm.store.results.history.confirmations import end_confirmation, find_confirmation
from farm.store.results.history.detection_points import PointNames
from farm.store.results.history.trends import PointCell, SeriesIdentity, cells_of_points
from farm.wire.documents.results.changes import (
    MAX_CHANGED_SERIES,
    MAX_CHANGES_PAGE,
    ChangeDecision,
    ChangeDetail,
    ChangedSeriesView,
    ChangeStateRequest,
    ChangeView,
    CommonSetup,
    ConfirmationView,
)

#: Of a change that was told longer ago, as in the history of a farm that is upgraded, no alarm is raised.
ALARM_WITHIN = timedelta(days=7)
#: Decisions on one change that are shown, the newest.
_MOST_DECISIONS = 100
_LIST_HINT = "`farm regressions --all` lists the changes"


def record_change(tx: Tx, change: FoundChange) -> int | None:
    """Record a change, and raise its alarm if it makes something slower; None if it is recorded already."""
    change_id = change_store.add_change(tx, change)
    is_old = tx.now - change.told_at > ALARM_WITHIN
    if change_id is None or not change.is_slower or change.is_noise or is_old:
        return change_id
    devices = f"{change.devices} of {change.of_devices} devices"
    text = change_text(change.scope, change.delta, change.se_delta, change.versions)
    alarm = DueAlarm(
        kind=AlarmKind.REGRESSION,
        subject=AlarmSubject.CHANGE,
        subject_id=str(change_id),
        message=f"{text}; cause: {change.cause}; {devices}, since {change.since_at:%Y-%m-%d}",
        hint=f"`farm regressions show {change_id}` has the evidence,"
        f" `farm regressions set {change_id} STATE --reason TEXT` says what it is",
    )
    add_alarm(tx, alarm)
    return change_id


def update_change(tx: Tx, change_id: int, change: FoundChange) -> None:
    """Replace the numbers and the evidence of a change; its alarm was raised.

    Where they are those of another change, that one is it, and this one is shown by nothing any more.
    """
    if not change_store.update_change(tx, change_id, change):
        record_gone(tx, change_id)
    elif change.is_noise:
        _clear(tx, change_id, cause="noise: it soon went back")


def record_gone(tx: Tx, change_id: int) -> None:
    """Say that the points show a change no more, and clear its alarm."""
    if change_store.set_gone(tx, change_id):
        _clear(tx, change_id, cause="what was measured shows it no more")


def record_confirmation(
    tx: Tx,
    change_id: int,
    outcome: ConfirmationOutcome,
    *,
    delta: float | None,
    half_width: float | None,
) -> None:
    """Store what the confirmation of a change shows; if that is noise, its alarm is cleared."""
    end_confirmation(tx, change_id, outcome, delta=delta, half_width=half_width)
    if _get(tx.connection, change_id).cause is ChangeCause.NOISE:
        _clear(tx, change_id, cause="noise: old and new side by side do not show it")


def decide(tx: Tx, change_id: int, request: ChangeStateRequest) -> ChangeView:
    """Store what a person says of a change, for ever; its alarm is cleared, unless the change counts as new.

    Raises:
        NotFound: there is no such change.
    """
    change = _get(tx.connection, change_id)
    change_store.set_state(tx, change_id, request.state)
    record_event(
        tx,
        RetractionEvent.CHANGE_DECIDED,
        change_id,
        from_state=change.state,
        to_state=request.state,
        cause=request.reason,
    )
    if request.state is not ChangeState.NEW:
        _clear(tx, change_id, cause=f"{request.state}: {request.reason}")
    return _views(tx.connection, [_get(tx.connection, change_id)])[0]


def _clear(tx: Tx, change_id: int, *, cause: str) -> None:
    clear_alarm(tx.by("farm"), (AlarmKind.REGRESSION, AlarmSubject.CHANGE, str(change_id)), cause=cause)


def list_changes(
    connection: Connection,
    *,
    since: datetime | None = None,
    device: str | None = None,
    model: str | None = None,
    cause: ChangeCause | None = None,
    state: ChangeState | None = None,
    which: MatrixFilter | None = None,
    all: bool = False,
    after: int | None = None,
    limit: int = MAX_CHANGES_PAGE,
) -> list[ChangeView]:
    """Return a page of changes, those told last first.

    Args:
        connection: the database.
        since: only those that were told at this time or later.
        device: only those that this device shows: its id, its label, or the beginning of either.
        model: only those that a series of this model shows.
        cause: only those with this cause.
        state: only those of which this was said.
        which: only those that a series shows which a matrix of this name or person measured.
        all: improvements, too, and what the points show no more.
        after: only changes behind this one.
        limit: the most changes to return.

    Raises:
        NotFound: there is no such device or model, or `after` is no change.
        InvalidInput: several devices begin so.
    """
    among = candidate_filter(connection, device=device, model=model)
    wanted = ChangeFilter(
        since=since,
        device_id=among.device_id,
        model=among.model,
        cause=cause,
        state=state,
        matrices=with_few_matches(connection, which),
        all=all,
    )
    before = None if after is None else _get(connection, after)
    return _views(connection, change_store.list_changes(connection, wanted, before=before, limit=limit))


def change_detail(connection: Connection, change_id: int) -> ChangeDetail:
    """Return a change with its evidence, as what is measured up to now shows it.

    Raises:
        NotFound: there is no such change.
    """
    change = _get(connection, change_id)
    changed = change_store.series_of_change(connection, change_id, limit=MAX_CHANGED_SERIES)
    day = to_microseconds(change.since_at) // DAY_US
    names = PointNames(connection)
    levels = levels_around(
        connection,
        names,
        {own.pair for own in changed},
        cause=change.found_cause,
        day=day,
        version=new_version(change.versions, change.found_cause),
    )
    by_pair = {own.pair: own for own in levels}
    cells = cells_of_points(connection, [own.after[0].cell_id for own in levels])
    confirmation = find_confirmation(connection, change_id)
    tested = [] if confirmation is None or confirmation.device_id is None else [confirmation.device_id]
    labels = device_labels(connection, {*tested, *(own.after[0].device_id for own in levels)})
    decisions = last_events(
        connection,
        EventSubject.CHANGE,
        change_id,
        kinds=[RetractionEvent.CHANGE_DECIDED],
        limit=_MOST_DECISIONS,
    )
    return ChangeDetail(
        change=_views(connection, [change])[0],
        confirmation=_confirmation_view(confirmation, labels),
        evidence=tuple(
            _series_view(own, by_pair[own.pair], names, cells, labels)
            for own in changed
            if own.pair in by_pair
        ),
        decisions=tuple(
            ChangeDecision(
                state=ChangeState(event.to_state or ChangeState.NEW),
                reason=event.cause or "",
                decided_by=event.actor,
                decided_at=event.at,
            )
            for event in decisions
        ),
    )


def _confirmation_view(
    confirmation: Confirmation | None, labels: Mapping[DeviceId, str]
) -> ConfirmationView | None:
    if confirmation is None:
        return None
    delta, half = confirmation.delta, confirmation.half_width
    low, ratio, high = (
        None if delta is None or half is None else bounded_exp(delta + reach * half) for reach in (-1, 0, 1)
    )
    label = None if confirmation.device_id is None else labels.get(confirmation.device_id)
    return ConfirmationView.of(confirmation, device_label=label, ratio=ratio, ratio_low=low, ratio_high=high)


def _get(connection: Connection, change_id: int) -> RecordedChange:
    change = change_store.find_change(connection, change_id)
    if change is None:
        raise NotFound(f"there is no change {change_id}", hint=_LIST_HINT)
    return change


def _views(connection: Connection, changes: Sequence[RecordedChange]) -> list[ChangeView]:
    labels = device_labels(
        connection, {DeviceId(change.scope["device"]) for change in changes if "device" in change.scope}
    )
    numbers = [change.change_id for change in changes]
    counts = change_store.count_series(connection, numbers)
    identities = change_store.identities_of_changes(connection, numbers, of_baselines=False)
    baselines = change_store.identities_of_changes(connection, numbers, of_baselines=True)
    views = []
    for change in changes:
        low, high = effect_bounds(change.delta, change.se_delta)
        views.append(
            ChangeView(
                **{field.name: getattr(change, field.name) for field in fields(change)},
                device_label=labels.get(DeviceId(change.scope.get("device", ""))),
                ratio=bounded_exp(change.delta),
                ratio_low=bounded_exp(low),
                ratio_high=bounded_exp(high),
                series=counts.get(change.change_id, 0),
                setup=_common_setup(identities[change.change_id]),
                baseline_setup=_common_setup(baselines[change.change_id])
                if change.change_id in baselines
                else None,
            )
        )
    return views


def _common_setup(identities: Sequence[SeriesIdentity]) -> CommonSetup:
    setups = [identity.setup() for identity in identities]
    return CommonSetup(
        **{
            name: setups[0][name] if setups and all(own[name] == setups[0][name] for own in setups) else None
            for name in CommonSetup.model_fields
        }
    )


def _series_view(
    changed: ChangedSeries,
    levels: SeriesLevels,
    names: PointNames,
    cells: Mapping[CellId, PointCell],
    labels: Mapping[DeviceId, str],
) -> ChangedSeriesView:
    first = levels.after[0]
    cell = cells[first.cell_id]
    model, harness = names.model_and_harness(changed.series_id)
    return ChangedSeriesView(
        series_id=changed.series_id,
        baseline_series_id=changed.baseline_series_id,
        device_id=first.device_id,
        device_label=labels.get(first.device_id),
        model=model,
        harness=harness,
        label=cell.label,
        baseline=cell.baseline_label if changed.baseline_series_id is not None else None,
        delta=changed.delta,
        before_sessions=len(levels.before),
        after_sessions=len(levels.after),
        before_ns=_median_time(levels.before),
        after_ns=_median_time(levels.after),
        before_speedup=_median_speedup(levels.before),
        after_speedup=_median_speedup(levels.after),
        before_matrix_id=levels.before[-1].matrix_id if levels.before else None,
        after_matrix_ids=tuple(point.matrix_id for point in levels.after),
    )


def _median_time(points: Sequence[EvidencePoint]) -> float | None:
    return math.exp(median(point.log_time for point in points)) if points else None


def _median_speedup(points: Sequence[EvidencePoint]) -> float | None:
    values = [-point.log_slowdown for point in points if point.log_slowdown is not None]
    return math.exp(median(values)) if values else None
