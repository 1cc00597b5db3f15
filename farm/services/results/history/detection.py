"""Find the changes in the stored points, with their evidence, and tell which of them are recorded already.

Detection is a function of points that goes from day to day, so each run begins at the first day and finds
what earlier ones found; nothing is kept between two runs that a killed process could leave half done. It runs
in a process of its own, `python -m farm.services.results.history.detection`: it computes for seconds.
"""

import math
import os
import pickle
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId, SeriesId
from farm.core.base.microseconds import from_microseconds, to_microseconds
from farm.core.devices.controls import ControlLevel
from farm.core.errors import FarmError
from farm.core.results.history.attribution import (
    may_pass,
    passing_changes,
    possible_causes,
    recorded_cause,
    went_back,
)
from farm.core.results.history.change_evidence import SeriesLevels, evidence_of
from farm.core.results.history.changes.detect import Detector
from farm.core.results.history.changes.points import BASELINE, Change, Point
from farm.core.results.history.joined_changes import files_joined
from farm.core.results.history.recorded_change import (
    ChangeCause,
    DetectedChanges,
    FoundChange,
    KnownChange,
    SeriesPair,
    SoughtChange,
    same_changes,
)
from farm.database.engine import Database
from farm.services.results.history.change_sessions import DAY_US, levels_around
from farm.store.results.history.changes import known_changes
from farm.store.results.history.detection_points import (
    PointNames,
    devices_measured_since,
    first_matrix_of_newest,
    points_in_order,
)

#: A run reads so many points, the newest: what it costs does not grow with the history.
MOST_POINTS = 1_000_000
#: Of a history that is not read whole, changes of this share of its days are recorded, the newest: before
#: them too little is known of the noise.
_TRUSTED_SHARE = 0.5
#: A search computes between two reads of points: on a large farm for longer than the farm lets any process
#: be idle in a transaction, which is to keep none from writing. A search keeps none.
_IDLE_MS = 3_600_000
#: Lower than all work of the farm.
_NICENESS = 10
_METHODS = {level.value: level.word for level in ControlLevel}


@dataclass(frozen=True, slots=True)
class _Replay:
    """What a replay of the points found, and from which day on it is complete."""

    changes: Sequence[Change]
    #: None: the whole history was read.
    trusted_from: int | None


def detect_recorded(
    connection: Connection, *, now: datetime, most_points: int = MOST_POINTS
) -> DetectedChanges:
    """Return the changes in the newest points, as what is to be recorded of them."""
    names = PointNames(connection)
    replay = _replay(connection, names, most_points)
    trusted = (
        datetime.min.replace(tzinfo=UTC)
        if replay.trusted_from is None
        else _begin_of_day(replay.trusted_from)
    )
    known = known_changes(connection, since=None)
    passing = passing_changes(replay.changes)
    sought = [_sought(change) for change in replay.changes]
    same = same_changes(sought, known)
    added: list[FoundChange] = []
    updated: list[tuple[int, FoundChange]] = []
    reader = _EvidenceReader(connection, names, now)
    for place, change in enumerate(replay.changes):
        recorded = same.get(place)
        if _end_of_day(change.told) < trusted:
            continue
        is_passing = place in passing or reader.went_back(change)
        if recorded is not None and _is_as_recorded(sought[place], recorded, is_passing=is_passing):
            continue
        found = reader.found(change, is_passing=is_passing)
        if found is not None and recorded is None:
            added.append(found)
        elif found is not None and recorded is not None:
            updated.append((recorded.change_id, found))
    found_again = {change.change_id for change in same.values()}
    gone = [
        change.change_id
        for change in known
        if change.change_id not in found_again and not change.is_gone and change.told_at >= trusted
    ]
    return DetectedChanges(added=added, updated=updated, gone=gone)


def _replay(connection: Connection, names: PointNames, most_points: int) -> _Replay:
    first = first_matrix_of_newest(connection, most_points)
    detector = Detector()
    found: list[Change] = []
    days: list[int] = []
    points = detection_points(connection, names, first=first)
    for day, of_day in groupby(points, key=lambda point: point.day):
        days.append(day)
        found += detector.add_day(
            day, sorted(set(of_day), key=lambda point: (point.time, point.series, point))
        )
    trusted_from = None
    if first is not None and days:
        trusted_from = math.ceil(days[-1] - (days[-1] - days[0]) * _TRUSTED_SHARE)
    return _Replay(files_joined(found), trusted_from)


def detection_points(
    connection: Connection, names: PointNames, *, first: MatrixId | None = None
) -> Iterator[Point]:
    """Yield the stored points as detection reads them, in the order of days.

    What is compared with one baseline is a network of its own, so that series that share the noise of a
    baseline are known; names are numbers, which do not change when labels do.
    """
    for point in points_in_order(connection, first):
        model, harness = names.model_and_harness(point.series_id)
        is_compared = point.baseline_slot is not None
        yield Point(
            series=_series_name((point.series_id, point.baseline_series_id)),
            device=point.device_id,
            network=f"{model or harness}#{point.baseline_slot if is_compared else point.slot}",
            variant=str(point.slot) if is_compared else BASELINE,
            harness=harness,
            day=point.ended_us // DAY_US,
            time=f"{point.ended_us:020d}",
            log_time=math.log(point.time_ns),
            se_time=math.nan if point.se_time is None else point.se_time,
            log_speedup=math.nan
            if point.baseline_ns is None
            else math.log(point.baseline_ns / point.time_ns),
            se_speedup=math.nan if point.se_speedup is None else point.se_speedup,
            file=names.file(point) or "",
            program=names.program(point),
            os=names.os(point) or "",
            session=str(point.matrix_id),
            method=_METHODS[point.control_level],
        )


def _series_name(pair: SeriesPair) -> str:
    return str(pair[0]) if pair[1] is None else f"{pair[0]}:{pair[1]}"


def _series_pair(name: str) -> SeriesPair:
    series_id, _, baseline_id = name.partition(":")
    return SeriesId(int(series_id)), SeriesId(int(baseline_id)) if baseline_id else None


def _begin_of_day(day: int) -> datetime:
    return from_microseconds(day * DAY_US)


def _end_of_day(day: int) -> datetime:
    return _begin_of_day(day + 1) - timedelta(microseconds=1)


def _sought(change: Change) -> SoughtChange:
    return SoughtChange(
        causes=possible_causes(change),
        delta=change.delta,
        day=_begin_of_day(change.day),
        pairs=frozenset(map(_series_pair, change.evidence)),
    )


def _is_as_recorded(sought: SoughtChange, known: KnownChange, *, is_passing: bool) -> bool:
    return (
        not known.is_gone
        and known.cause in sought.causes
        and known.is_passing == (is_passing and known.cause is ChangeCause.UNKNOWN)
        and known.delta == sought.delta
        # Series without a session since are no evidence.
        and known.pairs <= sought.pairs
    )


class _EvidenceReader:
    """Reads the sessions around changes."""

    def __init__(self, connection: Connection, names: PointNames, now: datetime) -> None:
        self._connection = connection
        self._names = names
        self._now = now

    def went_back(self, change: Change) -> bool:
        """Return whether a step of one series without a version soon went back."""
        return may_pass(change) and any(
            went_back(levels, change.delta) for levels in self._levels_around(change)
        )

    def _levels_around(self, change: Change) -> list[SeriesLevels]:
        pairs = {_series_pair(name) for name in change.evidence}
        cause = ChangeCause(change.cause)
        return levels_around(
            self._connection, self._names, pairs, cause=cause, day=change.day, version=change.version
        )

    def found(self, change: Change, *, is_passing: bool) -> FoundChange | None:
        """Return a change with its evidence; None if no series has a session since."""
        levels = self._levels_around(change)
        if not levels:
            return None
        evidence = evidence_of(levels, cause=ChangeCause(change.cause), delta=change.delta)
        since_us = to_microseconds(evidence.since_at)
        slots = {own.after[0].slot for own in levels}
        matrices = {own.after[0].matrix_id for own in levels}
        of_devices = devices_measured_since(self._connection, slots, since_us, matrices)
        cause = recorded_cause(change, evidence.versions)
        return FoundChange(
            cause=cause,
            is_passing=is_passing and cause is ChangeCause.UNKNOWN,
            scope=self._scope(change, levels),
            delta=change.delta,
            se_delta=change.se,
            before_at=evidence.before_at,
            since_at=evidence.since_at,
            told_at=max(evidence.since_at, min(self._now, _end_of_day(change.told))),
            devices=evidence.devices,
            of_devices=max(of_devices, evidence.devices),
            versions=evidence.versions,
            series=evidence.series,
        )

    def _scope(self, change: Change, levels: Sequence[SeriesLevels]) -> Mapping[str, str]:
        """Return what all changed series have in common, by the names that people know."""
        described = [self._names.model_and_harness(own.pair[0]) for own in levels]
        first = [own.after[0] for own in levels]
        values: dict[str, set[str]] = {
            "model": {model or "" for model, _ in described},
            "variant": {point.label for point in first},
            "file": {point.variant or "" for point in first},
            "harness": {harness for _, harness in described},
            "device": {point.device_id for point in first},
        }
        scope = {key: next(iter(own)) for key, own in values.items() if len(own) == 1}
        # Of one file with several settings, the name of the file.
        file = scope.pop("file", "")
        scope.setdefault("variant", file)
        return {key: value for key, value in scope.items() if value} | {
            key: change.scope[key] for key in ("program", "os") if key in change.scope
        }


def open_database(url: str) -> Database:
    """Return the database of a search."""
    return Database(url, stuck_ms=_IDLE_MS)


def main() -> None:
    """Detect in the database whose address and moment are on stdin.

    The changes, or the error of a database that went away, and the CPU time of this process, in s, go to
    stdout, pickled.
    """
    os.nice(_NICENESS)
    # A farm that has ended reads nothing: this process ends as silently.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    url, now = pickle.load(sys.stdin.buffer)
    detected: DetectedChanges | FarmError
    try:
        with closing(open_database(url)) as database:
            detected = database.read(detect_recorded, now=now)
    except FarmError as error:
        detected = error
    pickle.dump((detected, time.process_time()), sys.stdout.buffer)


if __name__ == "__main__":
    main()
