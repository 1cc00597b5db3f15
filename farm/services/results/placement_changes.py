"""Notices when the same work runs on other hardware than before: a driver was updated, or lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import Digest, SeriesId
from farm.core.operations.alarm import AlarmKind, AlarmSubject
from farm.core.operations.event import DeviceEvent, EventSubject
from farm.core.runs.measurement import UNKNOWN_ACCELERATOR
from farm.core.runs.placement import Placement, placement_text
from farm.services.operations.alarms import clear_alarm, raise_alarm
from farm.store.operations.events import record_event
from farm.store.results import placements
from farm.store.results.measurements import NewMeasurement

_HINT = "`farm placement` shows where series run; `farm attempt show ID` has the proof of one run"


def proven_placement_text(actual_backend: str, accelerator: str, placement: Placement | None) -> str | None:
    """What is compared from one run to the next; None where nothing is proven."""
    if accelerator == UNKNOWN_ACCELERATOR:
        return None
    words = accelerator if placement is None else placement_text(placement)
    return f"{actual_backend} on {words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementChange:
    """A measurement that ran elsewhere than the one before it in its series."""

    measured: NewMeasurement
    series_id: SeriesId
    was: str
    place: str


def detect_placement_changes(connection: Connection, new: Sequence[NewMeasurement], *, now: datetime) -> None:
    """Tell of measurements that ran elsewhere than the last of their series, before they are added."""
    record_placement_changes(connection, placement_changes(connection, new), now=now)


def placement_changes(connection: Connection, new: Sequence[NewMeasurement]) -> list[PlacementChange]:
    """Those of measurements that ran elsewhere than the last of their series; call it before they are added.

    Runs that are on the CPU by construction have no placement, and cost nothing here.
    """
    placed = [each for each in new if each.reading.placement is not None]
    if not placed:
        return []
    last = placements.last_placements(connection, list({each.series.digest for each in placed}))
    before: dict[Digest, str | None] = {
        digest: proven_placement_text(each.actual_backend, each.accelerator, each.placement)
        for digest, each in last.items()
    }
    found = []
    for each in placed:
        digest, reading = each.series.digest, each.reading
        place = proven_placement_text(reading.actual_backend, reading.accelerator, reading.placement)
        was = before.get(digest)
        if place is not None and was is not None and place != was:
            series_id = last[digest].series_id
            found.append(PlacementChange(measured=each, series_id=series_id, was=was, place=place))
        before[digest] = place or was
    return found


def record_placement_changes(
    connection: Connection, changes: Sequence[PlacementChange], *, now: datetime
) -> None:
    """Write down that work moved to other hardware, and raise an alarm."""
    for change in changes:
        _record(connection, change.measured, change.series_id, change.was, change.place, now=now)


def _record(
    connection: Connection,
    measured: NewMeasurement,
    series_id: SeriesId,
    was: str,
    place: str,
    *,
    now: datetime,
) -> None:
    about = measured.series
    name = " ".join(filter(None, [about.model, about.harness, about.backend]))
    record_event(
        connection,
        at=now,
        actor="farm",
        kind=DeviceEvent.PLACEMENT_CHANGED,
        subject=EventSubject.DEVICE,
        subject_id=about.device_id,
        from_state=was,
        to_state=place,
        cause=f"series {series_id} ({name}), attempt {measured.attempt_id}: {measured.reading.proof}",
    )
    # One alarm tells of the newest change: an older one that nobody has seen to is over with it.
    clear_alarm(
        connection,
        AlarmKind.PLACEMENT_CHANGED,
        AlarmSubject.SERIES,
        str(series_id),
        cause="it changed once more",
        now=now,
    )
    raise_alarm(
        connection,
        AlarmKind.PLACEMENT_CHANGED,
        AlarmSubject.SERIES,
        str(series_id),
        message=f"{name} on {about.device_id} ran as {was}, and runs as {place} now",
        hint=_HINT,
        now=now,
    )
