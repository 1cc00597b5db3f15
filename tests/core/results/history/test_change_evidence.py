"""The evidence of changes: which sessions are before and since, and which versions differ."""

from datetime import UTC, datetime, timedelta

import pytest

from farm.core.base.ids import CellId, DeviceId, MatrixId, SeriesId
from farm.core.results.history.change_evidence import EvidencePoint, evidence_of, levels_of, new_version
from farm.core.results.history.recorded_change import ChangeCause, ChangedPart

PAIR = SeriesId(1), SeriesId(2)
DAY = 20_000


def session(place: int, file: str, log_slowdown: float) -> EvidencePoint:
    return EvidencePoint(
        cell_id=CellId(place),
        matrix_id=MatrixId(place),
        device_id=DeviceId("phone-1"),
        slot=1,
        day=DAY,
        ended_at=datetime(2026, 1, 31, tzinfo=UTC) + timedelta(minutes=place),
        log_time=log_slowdown,
        log_slowdown=log_slowdown,
        versions={
            ChangedPart.FILE: file,
            ChangedPart.PROGRAM: "p",
            ChangedPart.OS: "o",
            ChangedPart.CONTROLS: "free",
        },
        label="int8",
        variant="net/int8",
    )


@pytest.mark.parametrize(
    ("version", "old", "new"), [("b", "a", "b"), ("c", "b", "c"), ("never had", "a", "b"), (None, "a", "b")]
)
def test_of_several_new_files_of_a_day_a_change_is_of_its_own(
    version: str | None, old: str, new: str
) -> None:
    points = [session(place, file, size) for place, (file, size) in enumerate((("a", 0), ("b", 1), ("c", 0)))]
    levels = levels_of(PAIR, points, cause=ChangeCause.FILE, day=DAY, version=version)
    assert levels is not None
    evidence = evidence_of([levels], cause=ChangeCause.FILE, delta=0.5)
    (changed,) = evidence.versions
    assert (changed.part, changed.old, changed.new) == (ChangedPart.FILE, old, new)
    assert new_version(evidence.versions, ChangeCause.FILE) == new
    assert new_version(evidence.versions, ChangeCause.OS) is None
