"""The sessions around a change, by series."""

import math
from collections.abc import Collection

from sqlalchemy.engine import Connection

from farm.core.base.microseconds import from_microseconds
from farm.core.devices.controls import ControlLevel
from farm.core.results.history.change_evidence import EvidencePoint, SeriesLevels, levels_of
from farm.core.results.history.recorded_change import ChangeCause, ChangedPart, SeriesPair
from farm.store.results.history.detection_points import DetectionPoint, PointNames, points_of_some_series

DAY_US = 86_400_000_000


def levels_around(
    connection: Connection,
    names: PointNames,
    pairs: Collection[SeriesPair],
    *,
    cause: ChangeCause,
    day: int,
    version: str | None,
) -> list[SeriesLevels]:
    """Return the sessions of some series around a change; those without a session since are left out.

    Args:
        connection: the database.
        names: of what points refer to.
        pairs: series, each with what it is compared with.
        cause: of the change.
        day: the first day of its new level, in days since 1970 (UTC).
        version: the new one that it is attributed to.
    """
    points: dict[SeriesPair, list[EvidencePoint]] = {pair: [] for pair in pairs}
    for row in points_of_some_series(connection, {series_id for series_id, _ in pairs}):
        own = points.get((row.series_id, row.baseline_series_id))
        if own is not None:
            own.append(_evidence_point(row, names))
    found = (
        levels_of(pair, points[pair], cause=cause, day=day, version=version)
        for pair in sorted(points, key=lambda pair: (pair[0], pair[1] or 0))
    )
    return [levels for levels in found if levels is not None]


def _evidence_point(row: DetectionPoint, names: PointNames) -> EvidencePoint:
    return EvidencePoint(
        cell_id=row.cell_id,
        matrix_id=row.matrix_id,
        device_id=row.device_id,
        slot=row.slot,
        day=row.ended_us // DAY_US,
        ended_at=from_microseconds(row.ended_us),
        log_time=math.log(row.time_ns),
        log_slowdown=None if row.baseline_ns is None else math.log(row.time_ns / row.baseline_ns),
        versions={
            ChangedPart.FILE: names.file(row),
            ChangedPart.PROGRAM: names.program(row),
            ChangedPart.OS: names.os(row),
            ChangedPart.CONTROLS: ControlLevel(row.control_level).word,
        },
        label=row.label,
        variant=names.variant(row),
    )
