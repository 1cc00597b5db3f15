"""Causes that are recorded: what nothing common explains is unknown, what soon went back passes."""

from datetime import UTC, datetime
from typing import Any

import pytest

from farm.core.base.ids import CellId, DeviceId, MatrixId, SeriesId
from farm.core.results.history.attribution import (
    passing_changes,
    possible_causes,
    recorded_cause,
    went_back,
)
from farm.core.results.history.change_evidence import EvidencePoint, SeriesLevels
from farm.core.results.history.changes.points import Cause, Change
from farm.core.results.history.joined_changes import files_joined
from farm.core.results.history.recorded_change import ChangeCause, ChangedPart, ChangedVersion

CONTROLS = ChangedVersion(part=ChangedPart.CONTROLS, old="free", new="fixed")
OS = ChangedVersion(part=ChangedPart.OS, old="a", new="b")


def change(**values: Any) -> Change:
    usual: dict[str, Any] = {
        "series": "1:2",
        "scope": {},
        "day": 100,
        "delta": 0.1,
        "cause": Cause.DEVICE,
        "told": 103,
        "z": 6.0,
        "evidence": ["1:2"],
        "se": 0.01,
        "version": None,
    }
    return Change(**{**usual, **values})


SEVERAL = {"series": None, "evidence": ["1:2", "3:2"]}


@pytest.mark.parametrize(
    ("values", "versions", "cause"),
    [
        ({}, [], ChangeCause.UNKNOWN),
        ({}, [OS], ChangeCause.UNKNOWN),
        ({}, [CONTROLS], ChangeCause.METHOD),
        ({}, [CONTROLS, OS], ChangeCause.UNKNOWN),
        (SEVERAL, [], ChangeCause.DEVICE),
        (SEVERAL, [CONTROLS], ChangeCause.METHOD),
        ({"cause": Cause.DRIFT}, [], ChangeCause.DRIFT),
        ({"cause": Cause.DRIFT}, [CONTROLS], ChangeCause.METHOD),
        # One variant on all devices, whose file is not known: it has none.
        ({**SEVERAL, "cause": Cause.FILE}, [], ChangeCause.UNKNOWN),
        ({"cause": Cause.FILE, "version": "b"}, [], ChangeCause.FILE),
        ({"cause": Cause.OS, "version": "b"}, [CONTROLS], ChangeCause.OS),
    ],
)
def test_a_cause_is_recorded_where_something_common_explains_the_change(
    values: dict[str, Any], versions: list[ChangedVersion], cause: ChangeCause
) -> None:
    found = change(**values)
    assert recorded_cause(found, versions) is cause
    assert cause in possible_causes(found)


BACK = {"delta": -0.08, "day": 120}


@pytest.mark.parametrize(
    ("others", "passing"),
    [
        ([BACK], {0, 1}),
        ([BACK, {"delta": 0.1, "day": 125}], {0, 1}),
        ([{**BACK, "day": 131}], set()),
        ([{**BACK, "delta": -0.04}], set()),
        ([{**BACK, "delta": -0.21}], set()),
        ([{**BACK, "delta": 0.1}], set()),
        ([{**BACK, "series": "3:2", "evidence": ["3:2"]}], set()),
        ([{**BACK, "cause": Cause.FILE, "version": "b"}], set()),
        # What happened in between has changed its level.
        ([{**SEVERAL, "cause": Cause.OS, "version": "b", "delta": 0.2, "day": 110}, BACK], set()),
    ],
)
def test_what_the_next_change_of_its_series_takes_back_without_a_version_passes(
    others: list[dict[str, Any]], passing: set[int]
) -> None:
    assert passing_changes([change(), *(change(**values) for values in others)]) == passing


def levels(away: str, days: float = 1.0) -> SeriesLevels:
    """Sessions of a series: `1` are at the new level, 10 % above, and `0` at the old one."""

    def point(place: int, value: float) -> EvidencePoint:
        return EvidencePoint(
            cell_id=CellId(place),
            matrix_id=MatrixId(place),
            device_id=DeviceId("phone-1"),
            slot=1,
            day=int(place * days),
            ended_at=datetime(2026, 1, 1, tzinfo=UTC),
            log_time=value,
            log_slowdown=None,
            versions={},
            label="int8",
            variant=None,
        )

    return SeriesLevels(
        pair=(SeriesId(1), None),
        before=[point(place, 0.01 * (place % 2)) for place in range(10)],
        after=[point(10 + place, 0.1 * int(level)) for place, level in enumerate(away)],
    )


@pytest.mark.parametrize(
    ("away", "days", "is_back"),
    [
        ("111100000", 1.0, True),
        ("1101100000", 1.0, True),
        ("11110000", 1.0, False),
        ("11111111111", 1.0, False),
        # The day of the change was estimated too early.
        ("000001111111111", 1.0, False),
        ("1110000011111111111", 1.0, False),
        ("111100000", 8.0, False),
    ],
)
def test_a_level_went_back_where_five_sessions_in_a_row_and_most_behind_them_are_at_the_old_one(
    away: str, days: float, is_back: bool
) -> None:
    assert went_back(levels(away, days), 0.1) is is_back


def test_variants_without_a_known_file_are_not_joined() -> None:
    both = [change(cause=Cause.FILE, scope={"variant": name}) for name in ("7", "8")]
    assert files_joined(both) == both
