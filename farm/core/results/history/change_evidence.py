"""The evidence of a change: its first session in each series, what moved by how much, and which versions."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from farm.core.base.ids import CellId, DeviceId, MatrixId
from farm.core.results.history.recorded_change import (
    ChangeCause,
    ChangedPart,
    ChangedSeries,
    ChangedVersion,
    SeriesPair,
)

#: Sessions on each side of a change that its size in a series is computed from.
SESSIONS = 20
#: A device shows a change if the median of its series moved by this share of it.
_AGREEING_SHARE = 0.4
#: Versions that are named at most, those of most series.
_MOST_VERSIONS = 6
_PART_OF_CAUSE = {
    ChangeCause.FILE: ChangedPart.FILE,
    ChangeCause.PROGRAM: ChangedPart.PROGRAM,
    ChangeCause.OS: ChangedPart.OS,
    ChangeCause.METHOD: ChangedPart.CONTROLS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePoint:
    """A session of a series, with what it was measured with."""

    cell_id: CellId
    matrix_id: MatrixId
    device_id: DeviceId
    slot: int
    #: In days since 1970, UTC.
    day: int
    ended_at: datetime
    #: Natural logarithm of the time, and of time over baseline time; None for what is compared with none.
    log_time: float
    log_slowdown: float | None
    versions: Mapping[ChangedPart, str | None]
    label: str
    #: Name of the model file; None without one.
    variant: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesLevels:
    """The sessions of a series on both sides of a change, the oldest first; there is one since."""

    pair: SeriesPair
    before: Sequence[EvidencePoint]
    after: Sequence[EvidencePoint]

    def delta(self, *, is_absolute: bool) -> float | None:
        """Return the change of the logarithm, by medians; None without a session on both sides."""
        sides = [_values(side, is_absolute=is_absolute) for side in (self.before, self.after)]
        return None if not all(sides) else median(sides[1]) - median(sides[0])

    def values_before(self) -> list[float]:
        """Return the logarithms of the ratios of the old level, or of its times where it has none."""
        return _values(self.before, is_absolute=False)

    def values_since(self) -> list[float]:
        """Return the same of the sessions since."""
        return _values(self.after, is_absolute=False)


def _values(points: Sequence[EvidencePoint], *, is_absolute: bool) -> list[float]:
    if is_absolute:
        return [point.log_time for point in points]
    return [point.log_time if point.log_slowdown is None else point.log_slowdown for point in points]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEvidence:
    """What the sessions of all changed series show together."""

    series: Sequence[ChangedSeries]
    before_at: datetime
    since_at: datetime
    #: Devices that show it.
    devices: int
    versions: Sequence[ChangedVersion]


def levels_of(
    pair: SeriesPair, points: Sequence[EvidencePoint], *, cause: ChangeCause, day: int, version: str | None
) -> SeriesLevels | None:
    """Return the sessions around a change that began at a day; None without a session since.

    Args:
        pair: the series.
        points: its sessions, the oldest first.
        cause: of the change: a new version begins with the first session that has it.
        day: the first day of the new level in any series.
        version: the new one that the change is attributed to; a day may have several.
    """
    since = [place for place, point in enumerate(points) if point.day >= day]
    if not since:
        return None
    part = _PART_OF_CAUSE.get(cause)
    first = since[0]
    if part is not None:
        begins = [
            place
            for place in since
            if place and points[place].versions[part] != points[place - 1].versions[part]
        ]
        of_version = (place for place in begins if points[place].versions[part] == version)
        first = next(of_version, begins[0] if begins else first)
    return SeriesLevels(
        pair=pair,
        before=points[max(0, first - SESSIONS) : first],
        after=points[first : first + SESSIONS],
    )


def evidence_of(levels: Sequence[SeriesLevels], *, cause: ChangeCause, delta: float) -> ChangeEvidence:
    """Return what the sessions of the changed series show together.

    Args:
        levels: of each series, at least one.
        cause: of the change.
        delta: its size.
    """
    is_absolute = _is_absolute(levels, delta)
    series = [
        ChangedSeries(
            series_id=own.pair[0],
            baseline_series_id=own.pair[1],
            cell_id=own.after[0].cell_id,
            delta=own.delta(is_absolute=is_absolute),
        )
        for own in levels
    ]
    since_at = min(own.after[0].ended_at for own in levels)
    lasts = [own.before[-1].ended_at for own in levels if own.before]
    return ChangeEvidence(
        series=series,
        before_at=max((at for at in lasts if at <= since_at), default=since_at),
        since_at=since_at,
        devices=_agreeing(levels, series, delta),
        versions=_versions(levels, cause),
    )


def new_version(versions: Iterable[ChangedVersion], cause: ChangeCause) -> str | None:
    """Return the new version that a recorded change is attributed to; None without one."""
    part = _PART_OF_CAUSE.get(cause)
    return next((version.new for version in versions if version.part is part), None)


def _is_absolute(levels: Sequence[SeriesLevels], delta: float) -> bool:
    """Return whether times show a change of this size, rather than ratios."""
    apart = []
    for is_absolute in (False, True):
        found = [own.delta(is_absolute=is_absolute) for own in levels]
        known = [value for value in found if value is not None]
        apart.append(abs(median(known) - delta) if known else math.inf)
    return apart[1] < apart[0]


def _agreeing(levels: Sequence[SeriesLevels], series: Sequence[ChangedSeries], delta: float) -> int:
    by_device: dict[DeviceId, list[float]] = {}
    for own, changed in zip(levels, series, strict=True):
        if changed.delta is not None:
            by_device.setdefault(own.after[0].device_id, []).append(changed.delta)
    agreeing = sum(median(own) / delta >= _AGREEING_SHARE for own in by_device.values())
    return agreeing or len({own.after[0].device_id for own in levels})


def _versions(levels: Iterable[SeriesLevels], cause: ChangeCause) -> list[ChangedVersion]:
    """Return the versions that half of the series got with the change, and those of its cause."""
    counts: Counter[ChangedVersion] = Counter()
    total = 0
    for own in levels:
        if not own.before:
            continue
        total += 1
        old, new = own.before[-1].versions, own.after[0].versions
        counts.update(
            ChangedVersion(part=part, old=old[part], new=new[part])
            for part in ChangedPart
            if old[part] != new[part]
        )
    part_of_cause = _PART_OF_CAUSE.get(cause)
    often = [
        version
        for version, count in counts.most_common()
        if version.part is part_of_cause or 2 * count >= total
    ]
    order = list(ChangedPart)
    return sorted(
        often[:_MOST_VERSIONS],
        key=lambda version: (version.part is not part_of_cause, order.index(version.part)),
    )
