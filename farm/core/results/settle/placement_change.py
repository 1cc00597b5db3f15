"""Detect that the same work runs on other hardware than before: a driver was updated, or lost."""

from dataclasses import dataclass
from datetime import datetime

from farm.core.base.ids import SeriesId
from farm.core.operations.alarm import AlarmKind, AlarmSubject
from farm.core.results.settle.effects import ClearAlarm, RaiseAlarm, RecordPlacementChange, RowEffect
from farm.core.results.settle.new_measurement import NewMeasurement
from farm.core.runs.measurement import UNKNOWN_ACCELERATOR
from farm.core.runs.placement import Placement, placement_text

_PLACEMENT_HINT = "`farm placement` shows where series run; `farm attempt show ID` has the proof of one run"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastPlacement:
    """The placement of the newest accepted measurement of a series that shows one."""

    series_id: SeriesId
    actual_backend: str
    accelerator: str
    placement: Placement | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementChange:
    """A measurement that ran elsewhere than the one before it in its series."""

    measured: NewMeasurement
    series_id: SeriesId
    was: str
    place: str


def place_in_words(actual_backend: str, accelerator: str, placement: Placement | None) -> str | None:
    """Return what is compared from one run to the next; None where nothing is proven."""
    if accelerator == UNKNOWN_ACCELERATOR:
        return None
    words = accelerator if placement is None else placement_text(placement)
    return f"{actual_backend} on {words}"


def placement_change(measured: NewMeasurement, last: LastPlacement | None) -> PlacementChange | None:
    """Return how a measurement ran elsewhere than the last one of its series; None where it did not.

    Runs that are on the CPU by construction have no placement, and are not compared.
    """
    reading = measured.reading
    if last is None or reading.placement is None:
        return None
    place = place_in_words(reading.actual_backend, reading.accelerator, reading.placement)
    was = place_in_words(last.actual_backend, last.accelerator, last.placement)
    if place is None or was is None or place == was:
        return None
    return PlacementChange(measured=measured, series_id=last.series_id, was=was, place=place)


def placement_effects(
    measured: NewMeasurement, last: LastPlacement | None, *, now: datetime
) -> tuple[RowEffect, ...]:
    """Record that work moved to other hardware, and raise an alarm."""
    change = placement_change(measured, last)
    if change is None:
        return ()
    about, series_id = measured.series, change.series_id
    name = " ".join(filter(None, [about.model, about.harness, about.backend]))
    proof = measured.reading.proof
    kind, subject = AlarmKind.PLACEMENT_CHANGED, AlarmSubject.SERIES
    return (
        RecordPlacementChange(
            at=now,
            device_id=about.device_id,
            was=change.was,
            place=change.place,
            cause=f"series {series_id} ({name}), attempt {measured.attempt_id}: {proof}",
        ),
        # One alarm tells of the newest change: an older one that nobody has seen to is over with it.
        ClearAlarm(
            at=now, kind=kind, subject=subject, subject_id=str(series_id), cause="it changed once more"
        ),
        RaiseAlarm(
            at=now,
            kind=kind,
            subject=subject,
            subject_id=str(series_id),
            message=f"{name} on {about.device_id} ran as {change.was}, and runs as {change.place} now",
            hint=_PLACEMENT_HINT,
        ),
    )
